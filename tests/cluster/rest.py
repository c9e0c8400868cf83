# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A small synchronous client of the Kubernetes API: what a test asks does not go through the code under test."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx
import yaml

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
#: Seconds for one request; a test that stops the API server sees httpx.TimeoutException after it.
LIMIT = 30.0


class ApiError(Exception):
    """An answer of the API server that is not a success: `status` (HTTP), `reason` and `message` of its Status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        super().__init__(f"{status} {reason}: {message}")


class Rest:
    """The API as one user.

    A kind is named by group, version and kind, as in a manifest: `v1/Pod`, `kubeflow.org/v1beta1/Workspace`.
    """

    def __init__(self, url: str, ca: str, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        context = ssl.create_default_context(cafile=ca)
        self._http = httpx.Client(base_url=url, verify=context, headers=headers, timeout=LIMIT, trust_env=False)
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    @property
    def timeout(self) -> float:
        """Seconds for one request."""
        return self._http.timeout.read or LIMIT

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._http.timeout = httpx.Timeout(seconds)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def request(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """One request by path. A watch answers, when it ends, with the list of its events.

        Raises:
            ApiError: the answer is not a success.
        """
        answer = self._http.request(
            verb,
            path,
            content=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type} if body is not None else None,
            params=query,
        )
        if answer.is_success:
            is_json = answer.headers.get("Content-Type", "").startswith("application/json")
            if "watch" in (query or {}):
                return [json.loads(line) for line in answer.text.splitlines()]
            return answer.json() if is_json else answer.text
        raise _error(answer)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """One object."""
        found: Object = self.request("GET", self.path(kind, namespace, name))
        return found

    def list(self, kind: str, namespace: str | None = None, *, labels: str | None = None) -> Sequence[Object]:
        """All objects of a kind, in one namespace or (None) in all."""
        query = {"labelSelector": labels} if labels else None
        items: Sequence[Object] = self.request("GET", self.path(kind, namespace), query=query)["items"]
        return items

    def create(self, document: Object, namespace: str | None = None) -> Object:
        """Create one object; the namespace is the document's own unless given."""
        made: Object = self.request("POST", self.path(*_address(document, namespace)[:2]), document)
        return made

    def replace(self, document: Object, *, subresource: str | None = None) -> Object:
        """Replace an object; with its resourceVersion, only if it is still that one."""
        made: Object = self.request("PUT", self.path(*_address(document, None), subresource), document)
        return made

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        content_type: str | None = None,
    ) -> Object:
        """Merge patch (a mapping) or JSON patch (a list of operations), also of `status` or `scale`."""
        content_type = content_type or (JSON_PATCH if isinstance(patch, list) else MERGE)
        path = self.path(kind, namespace, name, subresource)
        patched: Object = self.request("PATCH", path, patch, content_type=content_type)
        return patched

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """Ask for an object's deletion. Finalizers hold it back as in any cluster."""
        self.request("DELETE", self.path(kind, namespace, name))

    def apply(self, documents: str | Object | Iterable[Object], namespace: str | None = None) -> Sequence[Object]:
        """Server-side apply, in the given order. After a CRD it waits until the API serves the new kind.

        Args:
            documents: YAML text (several documents allowed), or parsed documents.
            namespace: for documents of namespaced kinds that name none.

        Raises:
            ApiError: one was refused; those before it stay.
        """
        if isinstance(documents, str):
            documents = [document for document in yaml.safe_load_all(documents) if document]
        elif isinstance(documents, dict):
            documents = [documents]
        return [self._apply(document, namespace) for document in documents]

    def _apply(self, document: Object, namespace: str | None) -> Object:
        path = self.path(*_address(document, namespace))
        query = {"fieldManager": "tests", "force": "true"}
        made: Object = self.request("PATCH", path, document, content_type=APPLY, query=query)
        if made["kind"] == "CustomResourceDefinition":
            self._wait_until_served(made)
        return made

    def can(self, verb: str, group: str, resource: str, namespace: str, **more: str) -> bool:
        """Whether this user may, by SelfSubjectAccessReview. `more`: name, subresource."""
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, **more}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        return bool(self.create(review)["status"]["allowed"])

    def path(
        self, kind: str, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path of a kind or an object, found by discovery.

        Raises:
            LookupError: the API serves no such kind.
        """
        version, _, short = kind.rpartition("/")
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = self._plural(base, short)
        if namespaced and namespace:
            base += f"/namespaces/{namespace}"
        return "/".join([base, plural, *(part for part in (name, subresource) if part)])

    def _plural(self, base: str, kind: str) -> tuple[str, bool]:
        if kind not in self._plurals.get(base, {}):
            resources = self.request("GET", base)["resources"]
            self._plurals[base] = {r["kind"]: (r["name"], r["namespaced"]) for r in resources if "/" not in r["name"]}
        try:
            return self._plurals[base][kind]
        except KeyError:
            raise LookupError(f"{base} has no {kind}") from None

    def _wait_until_served(self, definition: Object) -> None:
        spec = definition["spec"]
        kinds = [f"{spec['group']}/{version['name']}/{spec['names']['kind']}" for version in spec["versions"]]
        end = time.monotonic() + LIMIT
        while True:
            try:
                for kind in kinds:
                    self.list(kind)
                return
            except (ApiError, LookupError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


def _address(document: Object, namespace: str | None) -> tuple[str, str | None, str | None]:
    metadata = document.get("metadata", {})
    kind = f"{document['apiVersion']}/{document['kind']}"
    return kind, metadata.get("namespace") or namespace, metadata.get("name")


def _error(answer: httpx.Response) -> ApiError:
    try:
        status = answer.json()
        return ApiError(answer.status_code, status.get("reason", ""), status.get("message", ""))
    except (ValueError, AttributeError):
        return ApiError(answer.status_code, "", answer.text)
