# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Kubeflow's backend REST: facts/cluster.md section 2, "Backend REST"; envelopes and checks as in its public source
(workspaces/backend/api, branch notebooks-v2).

`GET .../workspaces/{namespace}/{name}` answers what an update would send back: no state in it. That is in the list.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from tests.cluster.rest import ApiError, Object

from .api import WORKSPACE, Api, Cache
from .faults import Faults
from .http_server import Answer, Head
from .kubeflow import connect_path, image_config

BASE = "/workspaces/api/v1"
BODY_LIMIT = 1024 * 1024
NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")

MESSAGES = {
    401: "authentication is required to access this resource",
    403: "you are not authorized to access this resource",
    404: "the requested resource could not be found",
    500: "the server encountered a problem and could not process your request",
}


class Backend:
    """Answers for everybody who has come through the gateway's login."""

    def __init__(self, api: Api, kinds: Cache, faults: Faults) -> None:
        self._api = api
        self._kinds = kinds
        self._faults = faults

    async def handle(self, head: Head, body: bytes) -> Answer:
        """One request below BASE."""
        if self._faults.login_ended:
            return _error(401)
        if self._faults.not_authorized:
            return _error(403)
        try:
            return await self._route(head, body)
        except ApiError as error:
            return _error(404 if error.status == 404 else 500)

    async def _route(self, head: Head, body: bytes) -> Answer:
        parts = head.path.removeprefix(BASE).strip("/").split("/")
        if parts[0] != "workspaces" or len(parts) not in (2, 3, 5):
            return _error(404)
        if len(parts) == 5 and parts[3:] != ["actions", "pause"]:
            return _error(404)
        wrong = [name for name in parts[1:3] if not NAME.match(name)]
        if wrong:
            return _invalid("path parameters were invalid", "name", "FieldValueInvalid", "must be a DNS-1123 label")
        allowed = "POST" if len(parts) == 5 else "GET"
        if head.method != allowed:
            return _error(405, f"the {head.method} method is not supported for this resource")
        if len(parts) == 2:
            return await self._list(parts[1])
        if len(parts) == 3:
            return await self._get(parts[1], parts[2])
        return await self._pause(parts[1], parts[2], head, body)

    async def _list(self, namespace: str) -> Answer:
        found = await self._api.list(WORKSPACE, namespace)
        return Answer(200, {"data": [self._item(workspace) for workspace in found]})

    async def _get(self, namespace: str, name: str) -> Answer:
        workspace = await self._api.get(WORKSPACE, name, namespace)
        metadata, spec = workspace["metadata"], workspace["spec"]
        revision = hashlib.sha256(f"{metadata['uid']}{metadata['generation']}".encode()).hexdigest()
        template = {"podMetadata": {"labels": {}, "annotations": {}}, **spec["podTemplate"]}
        data = {"revision": revision, "paused": spec.get("paused", False), "podTemplate": template}
        return Answer(200, {"data": data})

    async def _pause(self, namespace: str, name: str, head: Head, body: bytes) -> Answer:
        if head.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return _error(415, "Only application/json is supported")
        if len(body) > BODY_LIMIT:
            return _error(413, "http: request body too large")
        try:
            wanted = _wanted(json.loads(body))
        except (ValueError, TypeError) as error:
            return _error(400, f"error decoding request body: {error}")
        if wanted is None:
            return _invalid("request body was invalid", "data", "FieldValueRequired", "data is required")
        patch: list[Object] = [{"op": "test", "path": "/spec/paused", "value": not wanted}]
        if not wanted:
            patch.append({"op": "test", "path": "/status/state", "value": "Paused"})
        patch.append({"op": "replace", "path": "/spec/paused", "value": wanted})
        try:
            changed = await self._api.patch(WORKSPACE, (namespace, name), patch)
        except ApiError as error:
            if error.status == 422:
                return _conflict("workspace is not in a valid state for the requested operation")
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


def _error(status: int, message: str | None = None, cause: Object | None = None) -> Answer:
    error: Object = {"code": str(status), "message": message or MESSAGES[status]}
    if cause is not None:
        error["cause"] = cause
    return Answer(status, {"error": error})


def _conflict(message: str) -> Answer:
    cause = {"conflict_cause": [{"origin": "KUBERNETES", "message": message}]}
    return _error(409, "kubernetes conflict error (see .cause.conflict_cause[] for details)", cause)


def _invalid(message: str, field: str, kind: str, detail: str) -> Answer:
    found = {"origin": "INTERNAL", "type": kind, "field": field, "message": detail}
    return _error(422, message, {"validation_errors": [found]})
