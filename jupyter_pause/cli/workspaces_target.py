# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A workspace as these commands need it: an owner, as the server has it too, and what is asked only from outside.

`Target` serves every kind of owner; `KubeflowTarget` adds what a Workspace's objects tell: what a pause would keep,
whether the snapshot still fits, and whether it was restored.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from jupyter_pause.owners import kubeflow_cold, origin

from .server import CliError
from .workspaces_keep import Keeps, storage_config_of, what_a_pause_keeps
from .workspaces_outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from jupyter_pause.cluster.access import Right
    from jupyter_pause.owners.base import OwnerView, WorkspaceOwner
    from jupyter_pause.states import PodSnapshotRow

    from .workspaces_client import Cluster

Object = Mapping[str, Any]
T = TypeVar("T")


class Target:
    """One workspace. Everything may raise ClusterError or CliError."""

    def __init__(self, cluster: Cluster, owner: WorkspaceOwner, right: Right) -> None:
        """`right`: what a pause and a resume need."""
        self.owner, self.kind, self.name = owner, owner.kind, owner.name
        self.namespace = cluster.namespace
        self._cluster, self._client, self._right = cluster, cluster.client, right
        self._change = asyncio.Event()

    async def start(self) -> None:
        """Read it, and follow it from then on. Raises CliError `workspace_not_found`."""
        await self._get(self._right)
        self.owner.listen(self._change.set)
        await self.owner.start()

    async def _get(self, right: Right) -> Object:
        """The object itself, so that what is wrong is said at once and not found out by waiting."""
        from jupyter_pause.cluster.errors import ClusterError

        try:
            found: Object = await self._client.get(right.resource, self.name, self.namespace)
        except ClusterError as error:
            if error.code != "cluster_not_found" or error.params.get("missing") == "type":
                raise
            raise not_found(self.namespace, self.name, right.resource.kind) from error
        return found

    async def stop(self) -> None:
        """Stop following."""
        await self.owner.stop()

    async def changed(self, seconds: float) -> None:
        """Returns at the next change, at the latest after `seconds`."""
        with contextlib.suppress(TimeoutError):
            # Not `wait_for`: before Python 3.12 it loses a Ctrl-C that comes together with the change.
            async with asyncio.timeout(seconds):
                await self._change.wait()
        self._change.clear()

    def view(self) -> OwnerView:
        """Where it stands, as last heard."""
        return self.owner.view()

    async def pod_uid(self) -> str | None:
        """Which pod is there now; None: none, or not known. The same answer twice: it never ended."""
        return self.view().pod_uid

    def silent(self) -> str | None:
        """Why what is shown may be old: the error's code; None while the API server answers."""
        error = self.view().error
        return error.code if error is not None and error.code.startswith("cluster_") else None

    async def require_right(self, purpose: str) -> None:
        """Raises CliError that names the missing verb and resource (cases.md S47)."""
        await self._cluster.require([self._right], f"{purpose} {self.name}")

    # --- before a pause -----------------------------------------------------------------------------------------

    async def keeps(self) -> Keeps:
        """What a pause would keep."""
        stateful = self.view().stateful
        if stateful is None:
            return Keeps("unknown", "owner_says_nothing")
        return Keeps("snapshot") if stateful else Keeps("files only", "owner_without_snapshots")

    async def require_store(self) -> None:
        """Raises CliError when the place that the snapshot would go to is known not to work."""

    # --- before and after a resume ------------------------------------------------------------------------------

    async def differences(self) -> origin.Comparison:
        """What has changed since the snapshot that a resume would use."""
        return origin.Comparison(unknown="not_recorded")

    async def snapshot_problem(self) -> str | None:
        """`snapshot_gone`, `snapshot_deleting` or `snapshot_not_ready`; None: it is there, or nobody may look."""
        from jupyter_pause.cluster.errors import ClusterError
        from jupyter_pause.cluster.resources import POD_SNAPSHOTS

        name = self.view().snapshot
        if name is None:
            return None
        try:
            snapshot = await self._client.get(POD_SNAPSHOTS, name, self.namespace)
        except ClusterError as error:
            if error.code == "cluster_not_found":
                return "snapshot_gone"
            if error.code == "cluster_forbidden":
                return None
            raise
        if snapshot["metadata"].get("deletionTimestamp"):
            return "snapshot_deleting"
        return None if is_true(snapshot, "Ready") else "snapshot_not_ready"

    async def outcome(self, expected: str | None) -> Outcome:
        """How the last resume ended. `expected`: the snapshot that it was to use."""
        found = await self.owner.resumed_from()
        code = found.reason.code if found.reason is not None else None
        if found.restored:
            return Outcome("restored", found.snapshot)
        return Outcome("unknown" if found.restored is None else "fresh", expected or found.snapshot, code)

    # --- asking -------------------------------------------------------------------------------------------------

    async def pause(self) -> Literal["held", "released"]:
        """Ask. `held`: a snapshot is made first; `released`: the pod goes now."""
        return (await self.owner.release()).kind

    async def resume(self) -> None:
        """Ask. Asking twice is one resume."""
        await self.owner.reclaim()

    async def take_back(self) -> bool:
        """Undo a pause that is under way; False when it was too late."""
        return await self.owner.take_back()


class KubeflowTarget(Target):
    """A Workspace of Kubeflow, with or without the snapshot add-on."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        from jupyter_pause.clock import SYSTEM_CLOCK
        from jupyter_pause.cluster.access import Right
        from jupyter_pause.cluster.resources import WORKSPACES
        from jupyter_pause.owners.kubeflow import KubeflowOwner

        owner = KubeflowOwner(cluster.client, namespace=cluster.namespace, name=name, clock=SYSTEM_CLOCK)
        super().__init__(cluster, owner, Right("patch", WORKSPACES, cluster.namespace, name))
        self._kubeflow = owner

    async def keeps(self) -> Keeps:
        """From the Workspace, its kind and its pod. A kind that may not be read is no error."""
        workspace = await self._get(self._right)
        return what_a_pause_keeps(workspace, await self._kind_of(workspace), await self.pod())

    async def _kind_of(self, workspace: Object) -> Object | None:
        from jupyter_pause.cluster.resources import WORKSPACE_KINDS

        name = str(workspace.get("spec", {}).get("kind", ""))
        return await _allowed(self._client.get(WORKSPACE_KINDS, name))

    async def pod(self) -> Object | None:
        """Its pod; while an old one goes and a new one comes, the new one."""
        from jupyter_pause.cluster.resources import PODS

        label = f"{origin.WORKSPACE_LABEL}={self.name}"
        pods = (await self._client.list(PODS, self.namespace, label_selector=label)).items
        return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)

    async def pod_uid(self) -> str | None:
        """Which pod is there now, and not on its way out."""
        pod = await self.pod()
        return None if pod is None or pod["metadata"].get("deletionTimestamp") else str(pod["metadata"]["uid"])

    async def require_store(self) -> None:
        """A store that is known not to be ready means a snapshot that never ends. One that is not there is made by the
        add-on, and one that may not be read is taken for ready."""
        from jupyter_pause.cluster.resources import POD_SNAPSHOT_STORAGE_CONFIGS

        workspace = await self._get(self._right)
        name = storage_config_of(workspace, await self._kind_of(workspace))
        store = await _allowed(self._client.get(POD_SNAPSHOT_STORAGE_CONFIGS, name))
        if store is not None and _condition(store, "Ready") == "False":
            raise CliError(
                "storage_not_ready",
                f"The snapshot would never be finished: PodSnapshotStorageConfig {name}, where it would go, is not "
                "ready. Nothing was changed. Ask the platform team.",
                body={"params": {"storage_config": name}},
            )

    # --- starting it otherwise ----------------------------------------------------------------------------------

    async def snapshots(self) -> list[PodSnapshotRow]:
        """All of this Workspace."""
        return await self._kubeflow.snapshots()

    async def start_cold(self) -> None:
        """Unpause it without the snapshot, which stays."""
        await self._kubeflow.change(kubeflow_cold.cold_start_operations)

    async def start_from(self, snapshot: str) -> None:
        """Unpause it with this snapshot."""
        await self._kubeflow.change(lambda workspace: kubeflow_cold.restore_operations(workspace, snapshot))

    async def pause_again(self, *, broken: bool) -> bool:
        """Pause what does not run yet. False: its pod had just begun to run; it goes on."""
        pause = functools.partial(kubeflow_cold.pause_again_operations, broken=broken)
        written = await self._kubeflow.change(pause)
        if written["spec"].get("paused"):
            return True
        await self.take_back()
        return False

    async def differences(self) -> origin.Comparison:
        """What has changed since the pause left its note."""
        return origin.compare(await self._get(self._right), await pod_template(self._cluster, self.name))

    async def outcome(self, expected: str | None) -> Outcome:
        """What the pod's condition says about the snapshot that was expected."""
        from jupyter_pause.cluster.errors import ClusterError

        try:
            pod = await self.pod()
        except ClusterError as error:
            if error.code != "cluster_forbidden":
                raise
            pod = None
        return outcome_of(pod, expected)


async def pod_template(cluster: Cluster, name: str) -> Object | None:
    """The pod template of a Workspace's StatefulSet; None where that may not be read."""
    from jupyter_pause.cluster.resources import STATEFULSETS

    label = f"{origin.WORKSPACE_LABEL}={name}"
    found = await _allowed(cluster.client.list(STATEFULSETS, cluster.namespace, label_selector=label))
    if found is None or len(found.items) != 1:
        return None
    template: Object = found.items[0]["spec"]["template"]
    return template


async def _allowed(call: Awaitable[T]) -> T | None:
    """What `call` answers; None when that may not be read, or is not there."""
    from jupyter_pause.cluster.errors import ClusterError

    try:
        return await call
    except ClusterError as error:
        if error.code in ("cluster_forbidden", "cluster_not_found"):
            return None
        raise


def not_found(namespace: str, name: str, kind: str = "Workspace") -> CliError:
    """The error for a name that is not there."""
    return CliError(
        "workspace_not_found",
        f"There is no {kind} {name} in namespace {namespace}. "
        f"`jupyter pause workspaces --namespace {namespace}` lists the Workspaces that are there.",
    )


def is_true(thing: Object, condition: str) -> bool:
    """Is this condition True?"""
    return _condition(thing, condition) == "True"


def _condition(thing: Object, kind: str) -> str | None:
    """The status of a condition: True, False, Unknown; None when there is no such condition."""
    conditions = (thing.get("status") or {}).get("conditions") or []
    return next((str(item.get("status")) for item in conditions if item.get("type") == kind), None)
