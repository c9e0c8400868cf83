# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The whole stand-in in one namespace: starts all parts in a thread with an event loop of its own, and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tests.cluster.apiserver import ApiServer
from tests.cluster.resources import gke_token
from tests.cluster.rest import Object

from . import addon, kubeflow, manifests
from .api import (
    CONFIG_MAP,
    EVENT,
    NOTEBOOK,
    POD,
    POLICY,
    SANDBOX,
    SNAPSHOT,
    STATEFUL_SET,
    STORAGE,
    TRIGGER,
    WORKSPACE,
    WORKSPACE_KIND,
    Api,
    Cache,
    Kind,
)
from .api_relay import ApiRelay
from .backend import Backend
from .events import Events
from .faults import Faults
from .gateway import Gateway
from .gke import SnapshotImages, Snapshots, StorageConfigs, Triggers
from .kubelet import Kubelet, Node
from .other_owners import Notebooks, Sandboxes
from .scheduler import Scheduler
from .statefulset import GarbageCollector, StatefulSets
from .volumes import Volumes
from .webhooks import Webhooks

log = logging.getLogger("standin")

T = TypeVar("T")
KINDS = (
    POD,
    EVENT,
    CONFIG_MAP,
    STATEFUL_SET,
    WORKSPACE,
    WORKSPACE_KIND,
    NOTEBOOK,
    SANDBOX,
    SNAPSHOT,
    TRIGGER,
    POLICY,
    STORAGE,
)
#: The service account of pods that are no Workspace's.
EDITOR = "default-editor"
#: Seconds that a test waits for something before it fails. Nothing is decided by it.
LIMIT = 60.0


class StandIn:
    """A cluster's other parts, for one namespace.

    Args:
        api_server: running, with the CRDs.
        folder: where volumes, snapshots and logs lie.
        criu: None: no snapshots; every trigger fails.
        settle: seconds of the add-on between closing the gate and the snapshot.
        gateway_port: 0: a free one.
    """

    def __init__(
        self,
        api_server: ApiServer,
        folder: Path,
        *,
        criu: Path | None,
        faults: Faults | None = None,
        settle: float = 3.0,
        gateway_port: int = 0,
    ) -> None:
        self.api_server = api_server
        self.folder = folder
        self.faults = faults or Faults()
        self.namespace = api_server.namespace("standin")
        self._criu = criu
        self._settle = settle
        self._gateway_port = gateway_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="standin", daemon=True)
        self._parts: _Parts | None = None

    def __enter__(self) -> StandIn:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all parts and wait until they have seen the cluster."""
        server = self.api_server
        server.apply([manifests.RUNTIME_CLASS, manifests.KUBEFLOW_EDIT, manifests.SNAPSHOT_USER])
        tokens = (server.admin_token, gke_token(server))
        self._thread.start()
        self._parts = _Parts(self, tokens, self._criu, self._settle)
        self.run(self._parts.start(self._gateway_port))

    def stop(self) -> None:
        """End everything: containers first, by pid; then the loop."""
        if self._parts is not None:
            self.run(self._parts.stop())
            self._parts = None
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the stand-in's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def parts(self) -> _Parts:
        """What runs."""
        assert self._parts is not None, "not started"
        return self._parts

    @property
    def origin(self) -> str:
        """The one origin of Kubeflow's backend and of the servers in the pods."""
        return f"http://127.0.0.1:{self.parts.gateway.port}"

    def url(self, workspace: str) -> str:
        """Where a browser opens the workspace; ends with a slash."""
        return self.origin + kubeflow.connect_path(self.namespace, workspace, manifests.PORT_ID)

    def create_workspace(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        stateful: bool = True,
        roles: Sequence[str] = ("kubeflow-edit", "snapshot-user"),
        resources: Object | None = None,
        activity_rules: Sequence[Object] = (),
        probe_seconds: int | None = None,
    ) -> Object:
        """A WorkspaceKind and a Workspace of it.

        Args:
            command: what its image runs; `$(NAME)` stands for an environment variable, `$(POD_IP)` and `$(NB_PREFIX)`
                among them.
            env: more environment.
            stateful: whether it has the add-on's annotation.
            roles: cluster roles of its service account.
        """
        image = f"{self.namespace}/{name}:1"
        self.parts.node.images[image] = list(command)
        kind = f"{self.namespace}-{name}"
        self.api_server.apply(
            manifests.workspace_kind(
                kind,
                image,
                env or {},
                roles=roles,
                resources=resources or {},
                activity_rules=activity_rules,
                probe_seconds=probe_seconds,
            )
        )
        return self.api_server.as_admin.create(manifests.workspace(self.namespace, name, kind, stateful=stateful))

    def create_notebook_v1(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Object:
        """A Kubeflow Notebook v1, whose pod `<name>-0` runs as `default-editor`."""
        return self._create_other(manifests.notebook_v1, name, command, env)

    def create_sandbox(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Object:
        """An agent-sandbox Sandbox, whose pod has its name."""
        return self._create_other(manifests.sandbox, name, command, env)

    def create_stateful_set(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Object:
        """A bare StatefulSet."""
        return self._create_other(manifests.stateful_set, name, command, env)

    def _create_other(
        self,
        make: Callable[[str, str, Object], Object],
        name: str,
        command: Sequence[str],
        env: Mapping[str, str] | None,
    ) -> Object:
        image = f"{self.namespace}/{name}:1"
        self.parts.node.images[image] = list(command)
        self.api_server.apply(manifests.account(self.namespace, EDITOR))
        spec = manifests.pod_spec(image, name, env or {}, EDITOR)
        return self.api_server.as_admin.create(make(self.namespace, name, spec))

    def change_image(self, workspace: str, command: Sequence[str] | None = None) -> str:
        """Give the workspace's kind another image (S19). Returns its name."""
        kind = self.api_server.get("kubeflow.org/v1beta1/WorkspaceKind", f"{self.namespace}-{workspace}")
        value = kind["spec"]["podTemplate"]["options"]["imageConfig"]["values"][0]
        before: str = value["spec"]["image"]
        value["spec"]["image"] = image = f"{before.rsplit(':', 1)[0]}:{int(before.rsplit(':', 1)[1]) + 1}"
        self.parts.node.images[image] = list(command or self.parts.node.images[before])
        self.api_server.as_admin.replace(kind)
        return image

    def workspace(self, name: str) -> Object:
        """The Workspace, from the API server."""
        return self.api_server.get("kubeflow.org/v1beta1/Workspace", name, self.namespace)

    def state(self, name: str) -> str:
        """`status.state`, "" while there is none."""
        state: str = self.workspace(name).get("status", {}).get("state", "")
        return state

    def pause(self, name: str, paused: bool = True) -> Object:
        """Patch `spec.paused` as an administrator would."""
        patch = {"spec": {"paused": paused}}
        return self.api_server.patch("kubeflow.org/v1beta1/Workspace", name, patch, self.namespace)

    def pod(self, workspace: str) -> Object | None:
        """The workspace's pod, from the API server."""
        selector = f"{kubeflow.LABEL}={workspace}"
        found = self.api_server.as_admin.list("v1/Pod", self.namespace, labels=selector)
        return found[0] if found else None

    def find_pod(self, name: str) -> Object | None:
        """The pod of that name, from the API server."""
        found = self.api_server.as_admin.list("v1/Pod", self.namespace)
        return next((pod for pod in found if pod["metadata"]["name"] == name), None)

    def pod_process(self, pod: str) -> psutil.Process | None:
        """Process 1 of the pod's container, as this machine counts; None while nothing runs."""
        worker = self.parts.kubelet.worker((self.namespace, pod))
        if worker is None or worker.container is None or not worker.container.running:
            return None
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(worker.container.pid)
        return None

    def exec_in_pod(self, pod: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """`kubectl exec`: a process in the container's namespaces that is nobody's child there (weak spot 4)."""
        process = self.pod_process(pod)
        assert process is not None, "no container runs"
        # The way in, so that the process is really inside: nsenter forks after it has joined the pid namespace.
        words = ["nsenter", f"--target={process.pid}", "--pid", "--mount", "--uts", "--", *command]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def home(self, workspace: str) -> Path:
        """The folder that is the workspace's home volume."""
        return self.parts.node.volumes.claim(self.namespace, f"home-{workspace}")

    def log(self, workspace: str) -> str:
        """What the running container has written."""
        pod = self.pod(workspace)
        path = self.folder / "pods" / (pod["metadata"]["uid"] if pod else "") / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def cut_watches(self) -> None:
        """Cut every connection from pods to the API server, once; new ones work."""
        self._loop.call_soon_threadsafe(self.parts.relay.cut)

    def renew_token(self, workspace: str) -> None:
        """A new token in the pod's service account folder; the old one goes on until it ends."""
        pod = self.pod(workspace)
        assert pod is not None
        worker = self.parts.kubelet.workers[pod["metadata"]["uid"]]
        self.run(self.parts.node.volumes.write_service_account(pod, worker.folder))

    def wait_for(self, check: Callable[[], T], what: str, limit: float = LIMIT) -> T:
        """The first true value of `check`.

        Raises:
            AssertionError: it stayed false.
        """
        end = time.monotonic() + limit
        while True:
            value = check()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"never happened: {what}\n{self.describe()}")
            time.sleep(0.05)

    def wait_for_state(self, workspace: str, state: str, limit: float = LIMIT) -> Object:
        """The Workspace once its state is this one."""

        def check() -> Object | None:
            found = self.workspace(workspace)
            return found if found.get("status", {}).get("state") == state else None

        found = self.wait_for(check, f"{workspace} is {state}", limit)
        assert found is not None
        return found

    def describe(self) -> str:
        """Workspaces and pods in few lines, for the message of a failed test."""
        lines = []
        for kind in ("kubeflow.org/v1beta1/Workspace", "v1/Pod", "v1/Event"):
            for found in self.api_server.list(kind, self.namespace):
                about = {name: found.get(name) for name in ("spec", "status", "reason", "message") if name in found}
                if kind == "v1/Pod":
                    about.pop("spec")
                lines.append(f"{kind} {found['metadata']['name']} {found['metadata'].get('annotations')} {about}")
        return "\n".join(lines)


class _Parts:
    """All parts, wired."""

    def __init__(self, standin: StandIn, tokens: tuple[str, str], criu: Path | None, settle: float) -> None:
        server, faults = standin.api_server, standin.faults
        self.api = Api(server.url, server.ca, tokens[0])
        self.gke_api = Api(server.url, server.ca, tokens[1])
        self.caches = {kind: Cache(self.api, kind, standin.namespace) for kind in KINDS}
        events = Events(self.api)
        self.relay = ApiRelay(server.port, faults)
        self.node = Node(
            api=self.api,
            pods=self.caches[POD],
            faults=faults,
            events=events,
            volumes=Volumes(self.api, standin.folder, server.ca),
            folder=standin.folder,
            criu=criu,
            api_address=("127.0.0.1", 0),
        )
        images = SnapshotImages(standin.folder / "snapshots")
        self.kubelet = Kubelet(self.node, images)
        self.scheduler = Scheduler(self.api, self.caches[POD], events, faults)
        self.triggers = Triggers(self.gke_api, self.caches, self.kubelet, images, faults)
        self.snapshots = Snapshots(self.gke_api, self.caches, images, faults)
        self.addon = addon.AddOn(self.api, self.caches, faults, settle)
        certificate = server.certificate("127.0.0.1")
        self.webhooks = Webhooks(self.api, self.addon, faults, certificate, server.ca, standin.namespace)
        self.workspaces = kubeflow.Workspaces(self.api, self.caches, faults)
        self.gateway = Gateway(Backend(self.api, self.caches[WORKSPACE_KIND], faults), self.caches[POD])
        owners = [self.caches[kind] for kind in (WORKSPACE, STATEFUL_SET, NOTEBOOK, SANDBOX)]
        dependents = [self.caches[kind] for kind in (STATEFUL_SET, POD, TRIGGER)]
        self._reconcilers = [
            self.scheduler,
            StatefulSets(self.api, self.caches[STATEFUL_SET], self.caches[POD]),
            GarbageCollector(self.api, owners, dependents),
            self.workspaces,
            Notebooks(self.api, self.caches),
            Sandboxes(self.api, self.caches),
            self.triggers,
            self.snapshots,
            StorageConfigs(self.gke_api, self.caches[STORAGE]),
            self.addon,
        ]
        self._faults = faults
        self._tasks: list[asyncio.Task[None]] = []
        self._pending: set[asyncio.Task[None]] = set()

    async def start(self, gateway_port: int) -> None:
        """Start all; returns when the caches are filled."""
        loop = asyncio.get_running_loop()
        await self.relay.start()
        self.node.api_address = self.relay.address
        await self.webhooks.start()
        await self.gateway.start(gateway_port)
        await self.scheduler.make_node()
        self._tasks = [loop.create_task(cache.run()) for cache in self.caches.values()]
        for cache in self.caches.values():
            await cache.synced.wait()
        self._tasks += [loop.create_task(reconciler.run()) for reconciler in self._reconcilers]

        def switched() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._switched)

        self._faults.listen(switched)

    async def stop(self) -> None:
        """End all."""
        for task in (*self._tasks, *self._pending):
            task.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks, *self._pending])
        await self.triggers.stop()
        await self.kubelet.stop()
        await self.gateway.stop()
        await self.relay.stop()
        await self.webhooks.stop()
        await self.api.close()
        await self.gke_api.close()

    def _switched(self) -> None:
        for part in (self.kubelet, self.scheduler, self.workspaces, self.triggers, self.snapshots, self.addon):
            part.look_again()
        for listener in (self.webhooks, self.relay):
            task = asyncio.get_running_loop().create_task(listener.look_again())
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)


__all__ = ["Faults", "Kind", "StandIn"]
