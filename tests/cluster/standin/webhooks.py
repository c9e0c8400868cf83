# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The add-on's webhooks as the API server calls them: HTTPS, AdmissionReview, failurePolicy Ignore."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path

from tests.cluster.rest import Object

from .addon import AddOn
from .api import Api, Kind
from .faults import Faults
from .http_server import Answer, Head, port_of, serve

CONFIGURATION = Kind(
    "admissionregistration.k8s.io/v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
NAME = "gke-workspace-snapshot-addon"


class Webhooks:
    """Serves them and registers them."""

    def __init__(
        self, api: Api, addon: AddOn, faults: Faults, certificate: tuple[Path, Path], ca: str, namespace: str
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._addon = addon
        self._faults = faults
        self._certificate = certificate
        self._ca = ca
        self._server: asyncio.Server | None = None
        self._port = 0
        self._switching = asyncio.Lock()

    @property
    def _name(self) -> str:
        # Tests share an API server: each stand-in has its own registration, for its own namespace.
        return f"{NAME}-{self._namespace}"

    async def start(self) -> None:
        """Serve, and tell the API server about it."""
        await self._open()
        await self._api.apply(CONFIGURATION, self._configuration())

    async def stop(self) -> None:
        """Unregister and close."""
        await self._api.delete(CONFIGURATION, ("", self._name))
        await self._close()

    async def look_again(self) -> None:
        """Open or close, as the fault says. Down means that nothing listens on the port."""
        async with self._switching:
            if self._faults.addon_down:
                await self._close()
            elif self._server is None:
                await self._open()

    async def _open(self) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self._certificate)
        self._server = await serve(self._handle, port=self._port, tls=context)
        self._port = port_of(self._server)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _handle(self, head: Head, body: bytes) -> Answer:
        request = json.loads(body)["request"]
        mutate = {"/mutate-workspace": self._addon.mutate_workspace, "/mutate-pod": self._addon.mutate_pod}[head.path]
        patch = await mutate(request)
        response: Object = {"uid": request["uid"], "allowed": True}
        if patch:
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return Answer(200, review)

    def _configuration(self) -> Object:
        bundle = base64.b64encode(Path(self._ca).read_bytes()).decode()

        def hook(name: str, path: str, group: str, version: str, operation: str, resource: str) -> Object:
            rule = {"apiGroups": [group], "apiVersions": [version], "operations": [operation], "resources": [resource]}
            return {
                "name": name,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "NoneOnDryRun",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 10,
                "clientConfig": {"url": f"https://127.0.0.1:{self._port}{path}", "caBundle": bundle},
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            }

        workspaces = hook(
            "workspaces.addon.standin.test", "/mutate-workspace", "kubeflow.org", "v1beta1", "UPDATE", "workspaces"
        )
        pods = hook("pods.addon.standin.test", "/mutate-pod", "", "v1", "CREATE", "pods")
        return {"metadata": {"name": self._name}, "webhooks": [workspaces, pods]}
