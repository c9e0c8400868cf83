# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""One Workspace as these commands need it: what it is doing, and the two requests (pause, resume) with their way back.

`Target` is what the commands are written against; `KubeflowTarget` is a Workspace of Kubeflow. Owners of another kind
stand behind the same protocol in `cli_workspaces_owner`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .cli_server import CliError
from .cli_workspaces_keep import Keeps, annotations_of, storage_config_of, what_a_pause_keeps
from .cli_workspaces_outcome import Outcome, outcome_of
from .clock import SYSTEM_CLOCK
from .owners import origin
from .owners.kubeflow_state import CHECKPOINT_STATE, derive

if TYPE_CHECKING:
    from .cli_workspaces_client import Cluster
    from .cluster.watch import Follower
    from .owners.base import OwnerView
    from .states import OwnerKind

Object = Mapping[str, Any]
#: States of the add-on in which a pause is under way although `spec.paused` may be false.
PAUSE_ASKED = ("Checkpointing", "Ready")
ESCAPED_SLASH = "~1"


class Target(Protocol):
    """A workspace that can be paused and resumed. Everything may raise ClusterError or CliError."""

    kind: OwnerKind
    namespace: str
    name: str

    async def start(self) -> None:
        """Read it, and follow it from then on."""

    async def stop(self) -> None:
        """Stop following."""

    async def changed(self, seconds: float) -> None:
        """Returns at the next change, at the latest after `seconds`."""

    def view(self) -> OwnerView:
        """Where it stands, as last heard."""

    def silent(self) -> str | None:
        """Why what is shown may be old: a code; None while the API server answers."""

    def wants_pause(self) -> bool:
        """Is a pause asked for, or done?"""

    async def keeps(self) -> Keeps:
        """What a pause would keep."""

    async def before_pause(self) -> None:
        """Raises CliError when a pause cannot work: rights, a store that is not ready."""

    async def before_resume(self) -> None:
        """Raises CliError when rights for a resume are missing."""

    async def pause(self) -> Literal["held", "released"]:
        """Ask. `held`: a snapshot is made first; `released`: the pod goes now."""

    async def resume(self) -> None:
        """Ask. Asking twice is one resume."""

    async def take_back(self) -> bool:
        """Undo a pause that is under way; False when it was too late."""

    async def differences(self) -> origin.Comparison:
        """What has changed since the snapshot that a resume would use."""

    async def snapshot_problem(self) -> str | None:
        """Why the snapshot that a resume would use is of no use (a code); None: it is there, or there is none."""

    def outcome(self, expected: str | None) -> Outcome:
        """How the last resume ended."""


class KubeflowTarget:
    """A Workspace of Kubeflow, with or without the snapshot add-on."""

    kind: OwnerKind = "kubeflow"

    def __init__(self, cluster: Cluster, name: str) -> None:
        from .cluster.resources import PODS, WORKSPACES

        self._cluster, self._client = cluster, cluster.client
        self.namespace, self.name = cluster.namespace, name
        self._change = asyncio.Event()
        #: Our own last write: what the watch says may be older (cases.md S15).
        self._written: Object = {}
        self._kind: Object | None = None
        self._workspaces = self._client.follow(WORKSPACES, namespace=self.namespace, name=name)
        label = f"{origin.WORKSPACE_LABEL}={name}"
        self._pods = self._client.follow(PODS, namespace=self.namespace, label_selector=label)
        self._events: Follower | None = None
        self._following: list[Follower] = []

    # --- looking ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Read it, and follow it and its pod from then on. Raises CliError `workspace_not_found`."""
        from .cluster.resources import WORKSPACES

        self._written = await self._get(WORKSPACES, self.name)
        await self._follow(self._workspaces)
        await self._follow(self._pods)
        await self._follow_events_if_needed()

    async def _get(self, resource: Any, name: str) -> Object:
        from .cluster.errors import ClusterError

        try:
            found: Object = await self._client.get(resource, name, self.namespace)
        except ClusterError as error:
            if error.code != "cluster_not_found" or error.params.get("missing") == "type":
                raise
            raise CliError(
                "workspace_not_found",
                f"There is no Workspace {name} in namespace {self.namespace}. "
                f"`jupyter pause workspaces --namespace {self.namespace}` lists those that are there.",
            ) from error
        return found

    async def _follow(self, follower: Follower) -> None:
        follower.listen(self._change.set)
        self._following.append(follower)
        await follower.start()

    async def _follow_events_if_needed(self) -> None:
        """The pod's events say why it waits; a pod that runs needs none."""
        from .cluster.resources import EVENTS

        pod = self.pod()
        if self._events is None and pod is not None and self.view().state in ("resuming", "waiting", "failed"):
            selector = f"involvedObject.name={pod['metadata']['name']}"
            self._events = self._client.follow(EVENTS, namespace=self.namespace, field_selector=selector)
            await self._follow(self._events)

    async def stop(self) -> None:
        """Stop following."""
        for follower in self._following:
            await follower.stop()

    async def changed(self, seconds: float) -> None:
        """Returns at the next change, at the latest after `seconds`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._change.wait(), seconds)
        self._change.clear()
        await self._follow_events_if_needed()

    def workspace(self) -> Object | None:
        """The newest that is known: the watch's, unless our own write is newer; None once it is gone."""
        followed = self._workspaces.objects.get(self.name)
        if followed is None:
            return None if self._workspaces.synced_at is not None else self._written
        return max((followed, self._written), key=_version)

    def pod(self) -> Object | None:
        """Its pod; while an old one goes and a new one comes, the new one."""
        pods = list(self._pods.objects.values())
        return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)

    def view(self) -> OwnerView:
        """Where it stands, as last heard."""
        pod = self.pod()
        known = [] if self._events is None or pod is None else list(self._events.objects.values())
        events = [event for event in known if pod is not None and _is_about(event, pod)]
        return derive(self.workspace(), pod, events, SYSTEM_CLOCK.now())

    def silent(self) -> str | None:
        """Why what is shown may be old: the error's code; None while the API server answers."""
        errors = [follower.error for follower in (self._workspaces, self._pods) if follower.error is not None]
        return errors[0].code if errors else None

    def wants_pause(self) -> bool:
        """Is a pause asked for, or done?"""
        return wants_pause(self.workspace() or {})

    def outcome(self, expected: str | None) -> Outcome:
        """What the pod's condition says about the snapshot that was expected."""
        return outcome_of(None if self._pods.synced_at is None else self.pod(), expected)

    # --- before asking ------------------------------------------------------------------------------------------

    async def keeps(self) -> Keeps:
        """What a pause would keep. A kind that may not be read is no error: then the pod itself counts."""
        self._kind = await self._kind_object()
        return what_a_pause_keeps(self.workspace() or {}, self._kind, self.pod())

    async def _kind_object(self) -> Object | None:
        from .cluster.errors import ClusterError
        from .cluster.resources import WORKSPACE_KINDS

        name = str((self.workspace() or {}).get("spec", {}).get("kind", ""))
        try:
            return await self._client.get(WORKSPACE_KINDS, name)
        except ClusterError as error:
            if error.code in ("cluster_forbidden", "cluster_not_found"):
                return None
            raise

    async def before_pause(self) -> None:
        """Raises CliError when the right is missing, or when the snapshot's store is known to be not ready."""
        from .cluster.access import Right
        from .cluster.resources import WORKSPACES

        right = Right("patch", WORKSPACES, self.namespace, self.name)
        await self._cluster.require([right], f"pause {self.name}")
        if what_a_pause_keeps(self.workspace() or {}, self._kind, self.pod()).memory == "snapshot":
            await self._require_store()

    async def _require_store(self) -> None:
        """A store that is not ready means a snapshot that never ends. One that may not be read is taken for ready."""
        from .cluster.errors import ClusterError
        from .cluster.resources import POD_SNAPSHOT_STORAGE_CONFIGS

        name = storage_config_of(self.workspace() or {}, self._kind)
        ready, why = False, "it does not exist"
        try:
            store = await self._client.get(POD_SNAPSHOT_STORAGE_CONFIGS, name)
            conditions = (store.get("status") or {}).get("conditions") or []
            ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
            why = "it is not ready"
        except ClusterError as error:
            ready = error.code == "cluster_forbidden"
            if error.code not in ("cluster_forbidden", "cluster_not_found"):
                raise
        if not ready:
            raise CliError(
                "storage_not_ready",
                f"The snapshot would never be finished: PodSnapshotStorageConfig {name}, where it would go: {why}. "
                "Nothing was changed. Ask the platform team.",
                body={"params": {"storage_config": name}},
            )

    async def before_resume(self) -> None:
        """Raises CliError when the right is missing."""
        from .cluster.access import Right
        from .cluster.resources import WORKSPACES

        right = Right("patch", WORKSPACES, self.namespace, self.name)
        await self._cluster.require([right], f"resume {self.name}")

    async def differences(self) -> origin.Comparison:
        """What has changed since the pause left its note."""
        return origin.compare(self.workspace() or {}, await self._template())

    async def _template(self) -> Object | None:
        """The pod template of its StatefulSet; None where that may not be read."""
        from .cluster.errors import ClusterError
        from .cluster.resources import STATEFULSETS

        label = f"{origin.WORKSPACE_LABEL}={self.name}"
        try:
            found = await self._client.list(STATEFULSETS, self.namespace, label_selector=label)
        except ClusterError as error:
            if error.code == "cluster_forbidden":
                return None
            raise
        templates: list[Object] = [item["spec"]["template"] for item in found.items]
        return templates[0] if len(templates) == 1 else None

    async def snapshot_problem(self) -> str | None:
        """`snapshot_gone`, `snapshot_deleting` or `snapshot_not_ready`; None: it is there, or it may not be read."""
        from .cluster.errors import ClusterError
        from .cluster.resources import POD_SNAPSHOTS

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
        conditions = (snapshot.get("status") or {}).get("conditions") or []
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        return None if ready else "snapshot_not_ready"

    # --- asking -------------------------------------------------------------------------------------------------

    async def pause(self) -> Literal["held", "released"]:
        """Set `spec.paused`. The add-on answers `paused: false` when it makes a snapshot first: that is success."""
        from .cluster.resources import WORKSPACES

        template = await self._template()

        def patch(workspace: dict[str, Any]) -> list[dict[str, Any]] | None:
            if wants_pause(workspace):
                return None
            return [*_note(workspace, template), {"op": "add", "path": "/spec/paused", "value": True}]

        self._written = await self._client.change(WORKSPACES, self.name, patch, self.namespace)
        held = annotations_of(self._written).get(CHECKPOINT_STATE) == PAUSE_ASKED[0]
        return "held" if held else "released"

    async def resume(self) -> None:
        """Clear `spec.paused`; nothing is sent when it is clear already."""
        from .cluster.resources import WORKSPACES

        def patch(workspace: dict[str, Any]) -> list[dict[str, Any]] | None:
            if not workspace.get("spec", {}).get("paused"):
                return None
            return [{"op": "replace", "path": "/spec/paused", "value": False}]

        self._written = await self._client.change(WORKSPACES, self.name, patch, self.namespace)

    async def take_back(self) -> bool:
        """Remove the add-on's state, so that it opens the pod's gate again. False when the pod is gone already."""
        from .cluster.resources import WORKSPACES

        late = False

        def patch(workspace: dict[str, Any]) -> list[dict[str, Any]] | None:
            nonlocal late
            state = annotations_of(workspace).get(CHECKPOINT_STATE)
            late = workspace.get("status", {}).get("state") == "Paused" or state == "Ready"
            if late or not wants_pause(workspace):
                return None
            path = f"/metadata/annotations/{CHECKPOINT_STATE.replace('/', ESCAPED_SLASH)}"
            operations: list[dict[str, Any]] = [] if state is None else [{"op": "remove", "path": path}]
            return [*operations, {"op": "add", "path": "/spec/paused", "value": False}]

        self._written = await self._client.change(WORKSPACES, self.name, patch, self.namespace)
        return not late


def wants_pause(workspace: Object) -> bool:
    """Is a pause asked for, or done? The add-on holds `spec.paused` back while it makes the snapshot."""
    state = annotations_of(workspace).get(CHECKPOINT_STATE)
    return bool(workspace.get("spec", {}).get("paused")) or state in PAUSE_ASKED


def _note(workspace: Object, template: Object | None) -> list[dict[str, Any]]:
    """Operations that leave the note of `origin` on the Workspace."""
    value = origin.note(workspace, template)
    if not annotations_of(workspace):
        return [{"op": "add", "path": "/metadata/annotations", "value": {origin.ANNOTATION: value}}]
    path = f"/metadata/annotations/{origin.ANNOTATION.replace('/', ESCAPED_SLASH)}"
    return [{"op": "add", "path": path, "value": value}]


def _is_about(event: Object, pod: Object) -> bool:
    """Is it an event of this very pod? A pod of the same name from before the pause has another uid."""
    about = event.get("involvedObject") or {}
    return about.get("name") == pod["metadata"]["name"] and about.get("uid") in (None, "", pod["metadata"].get("uid"))


def _version(thing: Object) -> int:
    """Resource versions of one kind grow; one that is no number counts as old."""
    version = str(thing.get("metadata", {}).get("resourceVersion", ""))
    return int(version) if version.isdigit() else -1
