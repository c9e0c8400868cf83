# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Updates of a Workspace by Kubeflow's backend, and the choices that a kind offers.

From the public source (kubeflow/notebooks, branch notebooks-v2, workspaces/backend/internal):
models/workspaces/types_write.go (`WorkspaceUpdate`), models/common/funcs.go (`CalculateRevision`),
repositories/workspaces/repo.go (`UpdateWorkspace`), models/workspacekinds/podtemplate/options (`ListValuesRequest`,
`PodTemplateOptions`). A podConfig that the kind lacks is refused by the controller's webhook
(workspaces/controller/internal/webhook/workspace_webhook.go).
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any

from tests.cluster.rest import Object

from .backend_answers import BODY, INTERNAL, KUBERNETES, conflict, error, invalid
from .http_server import Answer

UPDATE = {"revision", "paused", "podTemplate"}
TEMPLATE = {"podMetadata", "volumes", "options"}
#: An option that the backend denies says so in this label here, in place of a kind's `filterRules`.
DENIED = "denied"


def model(workspace: Object) -> Object:
    """`WorkspaceUpdate`: what GET answers and PUT takes."""
    spec = workspace["spec"]
    template, metadata = spec["podTemplate"], spec["podTemplate"].get("podMetadata", {})
    volumes = template["volumes"]
    return {
        "revision": revision(workspace),
        "paused": spec.get("paused", False),
        "podTemplate": {
            "podMetadata": {"labels": metadata.get("labels", {}), "annotations": metadata.get("annotations", {})},
            "volumes": {name: volumes[name] for name in ("home", "data", "secrets") if volumes.get(name)},
            "options": dict(template["options"]),
        },
    }


def revision(workspace: Object) -> str:
    """It changes with the spec, not with annotations or status."""
    about = workspace["metadata"]
    return hashlib.sha256(f"{about['uid']}:{about['name']}:{about['generation']}".encode()).hexdigest()


def validate(document: Any) -> Answer | None:
    """What is wrong with the body of a PUT."""
    if not isinstance(document, dict) or document.keys() - {"data"}:
        return error(400, "error decoding request body: json: unknown field")
    data = document.get("data")
    if data is None:
        return invalid(BODY, "data", "FieldValueRequired", "data is required")
    if not isinstance(data, dict) or data.keys() - UPDATE or set(data.get("podTemplate", {})) - TEMPLATE:
        return error(400, "error decoding request body: json: unknown field")
    if not data.get("revision"):
        return invalid(BODY, "data.revision", "FieldValueRequired", "revision is required")
    options = data.get("podTemplate", {}).get("options", {})
    for name in ("imageConfig", "podConfig"):
        if not options.get(name):
            return invalid(BODY, f"data.podTemplate.options.{name}", "FieldValueRequired", "Required value")
    return None


def applied(data: Object, workspace: Object, kind: Object | None, *, mountable: bool) -> Object | Answer:
    """The Workspace as it is to be written, or why not. What the update leaves out is gone from it."""
    if data["revision"] != revision(workspace):
        return conflict("current workspace revision does not match request", "INTERNAL")
    wanted = data["podTemplate"]
    size = wanted["options"]["podConfig"]
    before = workspace["spec"]["podTemplate"]["options"]["podConfig"]
    refused = _denied(kind, size) if size != before else None
    if refused is not None:
        return invalid(INTERNAL, "podTemplate.options.podConfig", "FieldValueForbidden", refused)
    if not mountable:
        field, home = "podTemplate.volumes.home", wanted.get("volumes", {}).get("home")
        return invalid(INTERNAL, field, "FieldValueInvalid", f'Invalid value: "{home}": PVC is not mountable')
    if kind is None or size not in (value["id"] for value in _values(kind, "podConfig")):
        text = f'podConfig with id "{size}" not found in workspace kind "{workspace["spec"]["kind"]}"'
        return invalid(KUBERNETES, "spec.podTemplate.options.podConfig", "FieldValueInvalid", text, "KUBERNETES")
    changed = copy.deepcopy(workspace)
    changed["spec"]["paused"] = bool(data.get("paused", False))
    changed["spec"]["podTemplate"] = wanted
    return changed


def chosen(workspace: Object, kind: Object | None) -> Object:
    """`podTemplate.options` of an item of the list: what is chosen, with its words."""
    options = workspace["spec"]["podTemplate"]["options"]
    return {name: {"current": _info(kind, name, options[name])} for name in ("imageConfig", "podConfig")}


def _info(kind: Object | None, name: str, chosen_id: str) -> Object:
    found = next((value for value in _values(kind, name) if value["id"] == chosen_id), None)
    if found is None:
        return {"id": chosen_id, "displayName": "__UNKNOWN__", "description": "__UNKNOWN__", "labels": []}
    return {field: _option(found)[field] for field in ("id", "displayName", "description", "labels")}


def kind_item(kind: Object) -> Object:
    """`WorkspaceKindListItem`, as far as choices go."""
    return {"name": kind["metadata"]["name"], "podTemplate": {"options": _options(kind, None)}}


def list_values(kind: Object | None, document: Any) -> Answer:
    """`podtemplate/options/listvalues`: an imageConfig in the context is the only one listed; all pod sizes are."""
    data = document.get("data") if isinstance(document, dict) else None
    if data is None:
        return invalid(BODY, "data", "FieldValueRequired", "data is required")
    context = data.get("context", {})
    if kind is None:
        return error(404)
    image = (context.get("imageConfig") or {}).get("id")
    if image is not None and image not in (value["id"] for value in _values(kind, "imageConfig")):
        text = f'provided image config id "{image}" not found in workspace kind "{kind["metadata"]["name"]}"'
        return invalid(INTERNAL, "context.imageConfig.id", "FieldValueInvalid", text)
    return Answer(200, {"data": _options(kind, image)})


def _options(kind: Object, image: str | None) -> Object:
    listed = {}
    for name, only in (("imageConfig", image), ("podConfig", None)):
        values = [_option(value) for value in _values(kind, name) if only in (None, value["id"])]
        default = kind["spec"]["podTemplate"]["options"][name]["spawner"]["default"]
        listed[name] = {"default": default, "values": values}
    return listed


def _option(value: Object) -> Object:
    spawner = value["spawner"]
    denied = next((label["value"] for label in spawner.get("labels", []) if label["key"] == DENIED), None)
    return {
        "id": value["id"],
        "displayName": spawner["displayName"],
        "description": spawner.get("description", ""),
        "labels": spawner.get("labels", []),
        "hidden": spawner.get("hidden", False),
        "restrictions": {"deny": True, "denyMessage": {"text": denied}} if denied else {"deny": False},
    }


def _denied(kind: Object | None, size: str) -> str | None:
    found = next((value for value in _values(kind, "podConfig") if value["id"] == size), None)
    restrictions = {} if found is None else _option(found)["restrictions"]
    return restrictions["denyMessage"]["text"] if restrictions.get("deny") else None


def _values(kind: Object | None, name: str) -> list[Object]:
    return [] if kind is None else list(kind["spec"]["podTemplate"]["options"][name]["values"])
