# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The Kubernetes API for the stand-in's own parts: asynchronous requests, and caches that follow a kind."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.cluster.rest import APPLY, JSON_PATCH, MERGE, ApiError, Object

log = logging.getLogger("standin")

STRATEGIC = "application/strategic-merge-patch+json"
#: Namespace and name.
Key = tuple[str, str]
#: Seconds until a broken watch is tried again.
AGAIN = 0.2


@dataclass(frozen=True)
class Kind:
    """A kind of the API and where it lies."""

    version: str
    plural: str
    name: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection or of one object."""
        base = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        if self.namespaced and namespace:
            base += f"/namespaces/{namespace}"
        return "/".join([base, self.plural, *(part for part in (name, subresource) if part)])


POD = Kind("v1", "pods", "Pod")
NODE = Kind("v1", "nodes", "Node", namespaced=False)
EVENT = Kind("v1", "events", "Event")
NAMESPACE = Kind("v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAP = Kind("v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNT = Kind("v1", "serviceaccounts", "ServiceAccount")
STATEFUL_SET = Kind("apps/v1", "statefulsets", "StatefulSet")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding")
WORKSPACE = Kind("kubeflow.org/v1beta1", "workspaces", "Workspace")
WORKSPACE_KIND = Kind("kubeflow.org/v1beta1", "workspacekinds", "WorkspaceKind", namespaced=False)
NOTEBOOK = Kind("kubeflow.org/v1", "notebooks", "Notebook")
SANDBOX = Kind("agents.x-k8s.io/v1beta1", "sandboxes", "Sandbox")
SNAPSHOT = Kind("podsnapshot.gke.io/v1", "podsnapshots", "PodSnapshot")
TRIGGER = Kind("podsnapshot.gke.io/v1", "podsnapshotmanualtriggers", "PodSnapshotManualTrigger")
POLICY = Kind("podsnapshot.gke.io/v1", "podsnapshotpolicies", "PodSnapshotPolicy")
STORAGE = Kind("podsnapshot.gke.io/v1", "podsnapshotstorageconfigs", "PodSnapshotStorageConfig", namespaced=False)


class Api:
    """The API as one user."""

    def __init__(self, url: str, ca: str, token: str) -> None:
        context = ssl.create_default_context(cafile=ca)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.AsyncClient(
            base_url=url, verify=context, headers=headers, timeout=30.0, trust_env=False, limits=limits
        )

    async def close(self) -> None:
        """Close its connections."""
        await self.http.aclose()

    async def request(self, verb: str, path: str, body: object = None, content_type: str = "application/json") -> Any:
        """One request.

        Raises:
            ApiError: the answer is not a success.
        """
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type} if content is not None else {}
        answer = await self.http.request(verb, path, content=content, headers=headers)
        if answer.is_success:
            return answer.json()
        raise _error(answer)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """One object."""
        found: Object = await self.request("GET", kind.path(namespace, name))
        return found

    async def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """One object, or None when there is none."""
        try:
            return await self.get(kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: Kind, namespace: str | None = None) -> list[Object]:
        """All objects of a kind, in one namespace or in all."""
        return [_typed(item, kind) for item in (await self.request("GET", kind.path(namespace)))["items"]]

    async def create(self, kind: Kind, document: Object) -> Object:
        """Create an object."""
        made: Object = await self.request(
            "POST", kind.path(document["metadata"].get("namespace")), _typed(document, kind)
        )
        return made

    async def replace(self, kind: Kind, document: Object, subresource: str | None = None) -> Object:
        """Replace an object; with its resourceVersion only if it is still that one (else ApiError 409)."""
        metadata = document["metadata"]
        path = kind.path(metadata.get("namespace"), metadata["name"], subresource)
        made: Object = await self.request("PUT", path, document)
        return made

    async def patch(
        self, kind: Kind, key: Key, patch: object, subresource: str | None = None, content_type: str | None = None
    ) -> Object:
        """Merge patch (a mapping) or JSON patch (a list), or another by its content type."""
        content_type = content_type or (JSON_PATCH if isinstance(patch, list) else MERGE)
        made: Object = await self.request("PATCH", kind.path(*key, subresource), patch, content_type)
        return made

    async def apply(self, kind: Kind, document: Object) -> Object:
        """Server-side apply."""
        metadata = document["metadata"]
        path = kind.path(metadata.get("namespace"), metadata["name"]) + "?fieldManager=standin&force=true"
        made: Object = await self.request("PATCH", path, _typed(document, kind), APPLY)
        return made

    async def delete(self, kind: Kind, key: Key, options: Object | None = None) -> None:
        """Delete an object; one that is gone already is no error."""
        try:
            await self.request("DELETE", kind.path(*key), options)
        except ApiError as error:
            if error.status != 404:
                raise


class Cache:
    """All objects of one kind in a namespace, followed by list and watch: what informers are to real controllers."""

    def __init__(self, api: Api, kind: Kind, namespace: str) -> None:
        self.kind = kind
        self._path = kind.path(namespace)
        self.objects: dict[Key, Object] = {}
        self.synced = asyncio.Event()
        self._api = api
        self._listeners: list[Callable[[Key, Object | None], None]] = []

    def listen(self, callback: Callable[[Key, Object | None], None]) -> None:
        """Call back after every change with the key and the object, None when it is gone."""
        self._listeners.append(callback)

    def get(self, key: Key) -> Object | None:
        """The object, as far as it is known here."""
        return self.objects.get(key)

    def owned_by(self, owner: Object) -> list[Object]:
        """The objects that name this one as an owner."""
        return [found for found in self.objects.values() if _names_owner(found, owner["metadata"]["uid"])]

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._watch(await self._list())
            except (ApiError, httpx.HTTPError, OSError) as error:
                log.debug("watch of %s: %r", self.kind.plural, error)
                await asyncio.sleep(AGAIN)

    async def _list(self) -> str:
        answer = await self._api.request("GET", self._path)
        found = {key_of(item): _typed(item, self.kind) for item in answer["items"]}
        for key in self.objects.keys() - found.keys():
            self._set(key, None)
        for key, item in found.items():
            if self.objects.get(key) != item:
                self._set(key, item)
        self.synced.set()
        version: str = answer["metadata"]["resourceVersion"]
        return version

    async def _watch(self, version: str) -> None:
        query = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion={version}"
        timeout = httpx.Timeout(30.0, read=None)
        async with self._api.http.stream("GET", self._path + query, timeout=timeout) as answer:
            if not answer.is_success:
                await answer.aread()
                raise _error(answer)
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "BOOKMARK":
                    gone = event["type"] == "DELETED"
                    self._set(key_of(event["object"]), None if gone else event["object"])

    def _set(self, key: Key, value: Object | None) -> None:
        if value is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = value
        for callback in self._listeners:
            callback(key, value)


def key_of(document: Object) -> Key:
    """Namespace ("" for none) and name."""
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


def owner_reference(owner: Object, *, controller: bool = True) -> Object:
    """What a dependent says about its owner."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def now() -> str:
    """RFC 3339, whole seconds, as Kubernetes writes times."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def milliseconds() -> int:
    """Since the UNIX epoch."""
    return int(dt.datetime.now(dt.UTC).timestamp() * 1000)


def condition(document: Object, kind: str) -> Object | None:
    """The condition of that type in the status."""
    found: Iterable[Object] = document.get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == kind), None)


def is_true(document: Object, kind: str) -> bool:
    """Whether the condition is there and True."""
    found = condition(document, kind)
    return found is not None and found["status"] == "True"


def make_condition(kind: str, status: bool, reason: str = "", message: str = "") -> Object:
    """A condition that begins now."""
    made = {"type": kind, "status": "True" if status else "False", "lastTransitionTime": now()}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def with_condition(document: Object, changed: Object) -> list[Object]:
    """All conditions of a status with one of them set; the time stays when its status stays."""
    before = condition(document, changed["type"])
    if before is not None and before["status"] == changed["status"]:
        changed = {**changed, "lastTransitionTime": before.get("lastTransitionTime", changed["lastTransitionTime"])}
    others = [one for one in document.get("status", {}).get("conditions", []) if one["type"] != changed["type"]]
    return [*others, changed]


def _names_owner(document: Object, uid: str) -> bool:
    return any(reference["uid"] == uid for reference in document["metadata"].get("ownerReferences", []))


def _typed(document: Object, kind: Kind) -> Object:
    # Items of a list come without them.
    return {"apiVersion": kind.version, "kind": kind.name, **document}


def _error(answer: httpx.Response) -> ApiError:
    try:
        status = answer.json()
        return ApiError(answer.status_code, status.get("reason", ""), status.get("message", ""))
    except (ValueError, AttributeError):
        return ApiError(answer.status_code, "", answer.text)
