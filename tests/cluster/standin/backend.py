# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Kubeflow's backend REST: facts/cluster.md section 2, "Backend REST"; envelopes and checks as in its public source
(workspaces/backend/api, branch notebooks-v2).

`GET .../workspaces/{namespace}/{name}` answers what an update would send back: no state in it. That is in the list.
Updates and the kinds' choices are in `backend_update.py`.
"""

from __future__ import annotations

import re
from typing import Any

from tests.cluster.rest import ApiError, Object

from . import backend_update as update
from .api import WORKSPACE, Api, Cache
from .backend_answers import conflict, decoded, error, invalid
from .faults import Faults
from .http_server import Answer, Head
from .kubeflow import connect_path, image_config

BASE = "/workspaces/api/v1"
NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")


class Backend:
    """Answers for everybody who has come through the gateway's login."""

    def __init__(self, api: Api, kinds: Cache, faults: Faults) -> None:
        self._api = api
        self._kinds = kinds
        self._faults = faults

    async def handle(self, head: Head, body: bytes) -> Answer:
        """One request below BASE."""
        if self._faults.login_ended:
            return error(401)
        if self._faults.not_authorized:
            return error(403)
        try:
            return await self._route(head, body)
        except ApiError as refused:
            return error(404 if refused.status == 404 else 500)

    async def _route(self, head: Head, body: bytes) -> Answer:
        parts = head.path.removeprefix(BASE).strip("/").split("/")
        if parts[0] == "workspacekinds":
            return self._of_kind(parts[1:], head, body)
        if parts[0] != "workspaces" or len(parts) not in (2, 3, 5):
            return error(404)
        if len(parts) == 5 and parts[3:] != ["actions", "pause"]:
            return error(404)
        wrong = [name for name in parts[1:3] if not NAME.match(name)]
        if wrong:
            return invalid("path parameters were invalid", "name", "FieldValueInvalid", "must be a DNS-1123 label")
        allowed = {2: ["GET"], 3: ["GET", "PUT"], 5: ["POST"]}[len(parts)]
        if head.method not in allowed:
            return error(405, f"the {head.method} method is not supported for this resource")
        if len(parts) == 2:
            return await self._list(parts[1])
        if head.method == "PUT":
            return await self._update(parts[1], parts[2], head, body)
        if len(parts) == 3:
            return Answer(200, {"data": update.model(await self._api.get(WORKSPACE, parts[2], parts[1]))})
        return await self._pause(parts[1], parts[2], head, body)

    def _of_kind(self, parts: list[str], head: Head, body: bytes) -> Answer:
        """workspacekind_podtemplate_options_handler.go and workspacekinds_handler.go."""
        listing = parts[1:] == ["podtemplate", "options", "listvalues"]
        if not parts or not (listing or len(parts) == 1):
            return error(404)
        if head.method != ("POST" if listing else "GET"):
            return error(405, f"the {head.method} method is not supported for this resource")
        if self._faults.kinds_forbidden:
            return error(403)
        kind = self._kinds.get(("", parts[0]))
        if not listing:
            return error(404) if kind is None else Answer(200, {"data": update.kind_item(kind)})
        document = decoded(head, body)
        return document if isinstance(document, Answer) else update.list_values(kind, document)

    async def _list(self, namespace: str) -> Answer:
        found = await self._api.list(WORKSPACE, namespace)
        return Answer(200, {"data": [self._item(workspace) for workspace in found]})

    async def _update(self, namespace: str, name: str, head: Head, body: bytes) -> Answer:
        """workspaces_handler.go, UpdateWorkspaceHandler, and UpdateWorkspace of repositories/workspaces/repo.go."""
        if self._faults.updates_forbidden:
            return error(403)
        document = decoded(head, body)
        if isinstance(document, Answer):
            return document
        wrong = update.validate(document)
        if wrong is not None:
            return wrong
        workspace = await self._api.get(WORKSPACE, name, namespace)
        kind = self._kinds.get(("", workspace["spec"]["kind"]))
        changed = update.applied(document["data"], workspace, kind, mountable=not self._faults.volume_not_mountable)
        if isinstance(changed, Answer):
            return changed
        return Answer(200, {"data": update.model(await self._api.replace(WORKSPACE, changed))})

    async def _pause(self, namespace: str, name: str, head: Head, body: bytes) -> Answer:
        document = decoded(head, body)
        if isinstance(document, Answer):
            return document
        try:
            wanted = _wanted(document)
        except (ValueError, TypeError) as problem:
            return error(400, f"error decoding request body: {problem}")
        if wanted is None:
            return invalid("request body was invalid", "data", "FieldValueRequired", "data is required")
        patch: list[Object] = [{"op": "test", "path": "/spec/paused", "value": not wanted}]
        if not wanted:
            patch.append({"op": "test", "path": "/status/state", "value": "Paused"})
        patch.append({"op": "replace", "path": "/spec/paused", "value": wanted})
        try:
            changed = await self._api.patch(WORKSPACE, (namespace, name), patch)
        except ApiError as refused:
            if refused.status == 422:
                return conflict("workspace is not in a valid state for the requested operation", "KUBERNETES")
            raise
        return Answer(200, {"data": {"paused": changed["spec"].get("paused", False)}})

    def _item(self, workspace: Object) -> Object:
        metadata, status = workspace["metadata"], workspace.get("status", {})
        kind = self._kinds.get(("", workspace["spec"]["kind"]))
        activity = status.get("activity", {})
        return {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "workspaceKind": {"name": workspace["spec"]["kind"], "missing": kind is None},
            "paused": workspace["spec"].get("paused", False),
            "pausedTime": status.get("pauseTime", 0),
            "lastRunningTime": status.get("lastRunningTime", 0),
            "state": status.get("state", "Unknown"),
            "stateMessage": status.get("stateMessage", ""),
            "podTemplate": {"options": update.chosen(workspace, kind)},
            "activity": {
                "lastActivity": activity.get("lastActivity", 0),
                "lastUpdate": activity.get("lastUpdate", 0),
            },
            "services": [] if kind is None else _services(workspace, kind),
        }


def _services(workspace: Object, kind: Object) -> list[Object]:
    metadata = workspace["metadata"]
    return [
        {
            "httpService": {
                "displayName": port.get("displayName", "JupyterLab"),
                "httpPath": connect_path(metadata["namespace"], metadata["name"], port["id"]),
            }
        }
        for port in image_config(workspace, kind)["ports"]
    ]


def _wanted(document: Any) -> bool | None:
    """`data.paused`; False where `data` does not say (the Go field's zero value); None without `data`.

    Raises:
        TypeError, ValueError: not such a document.
    """
    if not isinstance(document, dict):
        raise TypeError("json: cannot unmarshal into an object")
    unknown = document.keys() - {"data"}
    data = document.get("data")
    if data is None and not unknown:
        return None
    if not isinstance(data, dict):
        raise TypeError("json: cannot unmarshal `data`")
    unknown |= data.keys() - {"paused"}
    if unknown:
        raise ValueError(f"json: unknown field {sorted(unknown)[0]!r}")
    paused = data.get("paused", False)
    if not isinstance(paused, bool):
        raise TypeError("json: cannot unmarshal `paused` into a bool")
    return paused
