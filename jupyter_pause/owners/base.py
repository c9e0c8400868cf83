# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What an owner is: whoever starts and stops the compute that kernels run on.

`Owner` holds single kernels on one machine, `WorkspaceOwner` a whole pod (docs/developers/cluster.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from jupyter_pause.clock import Clock
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.owners.detection import HubServer
    from jupyter_pause.states import OwnerKind, Phase, PodSnapshotRow, Reason, ResumeDoor, SessionRecord, State


@dataclass(frozen=True)
class Adopted:
    """A session of an earlier server that this one holds now. `live`: with its process, else paused.

    `record`: what was on disk. `server_seen`: when the earlier server last said that it lives (UTC).
    """

    kernel_id: str
    live: bool
    checkpoint: str | None
    since: datetime
    record: SessionRecord | None = None
    server_seen: datetime | None = None


class Owner(Protocol):
    """The part of an owner that the state machine uses."""

    #: The server is stopping: what ends from now on was not ended by a person.
    stopping: bool

    async def adopt_all(self) -> Sequence[Adopted]:
        """Take over everything that earlier servers left and nobody else holds."""

    async def record(self, kernel_id: str, *, state: str | None = None, checkpoint: str | None = None) -> None:
        """Write down where a session stands, now."""

    async def forget(self, kernel_id: str) -> None:
        """The session is over; its checkpoints stay."""

    def sessions(self) -> list[SessionRecord]:
        """Paused sessions, also those that somebody else holds. Blocks: call through a thread."""

    def start(self) -> None:
        """Begin to watch."""

    async def stop(self) -> None:
        """Stop watching; nothing is ended by this."""


# --- owners of a whole workspace ------------------------------------------------------------------------------------

Severity = Literal["blocks", "warns"]


@dataclass(frozen=True)
class Check:
    """Something true before the click: it stands in the way (`blocks`) or only has to be said (`warns`)."""

    code: str
    severity: Severity
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleaseAnswer:
    """What the owner makes of a release. `held`: a snapshot comes first and the pod stays until it is there;
    `released`: the pod goes now, without one. `at`: when, by the cluster's clock where it says so."""

    kind: Literal["held", "released"]
    at: datetime | None = None


@dataclass(frozen=True)
class OwnerView:
    """Where the owner has the workspace, as last heard. Derived, never asked for while looking.

    `observed_at`: when the API server last confirmed it (None: never). `stateful`: a pause makes a snapshot (None: not
    known). `waiting`: why there is no capacity yet. `error`: why the view is stale, or what failed. `timeline`: times
    by the cluster's clock.
    """

    state: State
    phase: Phase | None = None
    since: datetime | None = None
    observed_at: datetime | None = None
    stateful: bool | None = None
    waiting: Reason | None = None
    error: Reason | None = None
    pod: str | None = None
    pod_uid: str | None = None
    snapshot: str | None = None
    timeline: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class ResumedFrom:
    """What the owner says about the pod that we find ourselves in.

    `restored`: True from the snapshot named by `snapshot`, False started cold (`reason` says why where known), None
    when the owner does not say. `clock_drift`: seconds that our wall clock is ahead of the cluster's, where known.
    """

    pod: str | None = None
    pod_uid: str | None = None
    restored: bool | None = None
    snapshot: str | None = None
    reason: Reason | None = None
    clock_drift: float | None = None
    timeline: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnerContext:
    """What the module of an owner gets to make one: it has a function `open_owner(context) -> WorkspaceOwner`.

    `client` None: there is no Kubernetes here. `namespace`, `name`: as `detection.identify` found them; `pod`: our own,
    where known. `places`: folders that must outlive the pod. `hub`: the Hub's server, as the environment says.
    `workspaces_path`: where Kubeflow's page of Workspaces is, on the origin of the tab.
    """

    client: ClusterClient | None
    namespace: str | None
    name: str
    pod: str | None
    clock: Clock
    places: tuple[Path, ...] = ()
    hub: HubServer | None = None
    workspaces_path: str = "/workspaces/"


class WorkspaceOwner(Protocol):
    """Whoever starts and stops the pod. Asking may raise `ClusterError`, or another error with `code` and `params`."""

    kind: OwnerKind
    namespace: str | None
    name: str

    def door(self) -> ResumeDoor:
        """How the workspace is brought back when this server is gone; never a token."""

    def view(self) -> OwnerView:
        """The last known state; no input or output."""

    def listen(self, callback: Callable[[], None]) -> None:
        """`callback()` is called on the event loop after every change of the view."""

    async def start(self) -> None:
        """Begin to follow. Does not raise when the owner cannot be reached: the view says so."""

    async def stop(self) -> None:
        """Stop following and close every connection."""

    async def checks(self) -> list[Check]:
        """What stands in the way of a pause, and what has to be said before it. Never raises: what cannot be read is a
        check of its own."""

    async def release(self) -> ReleaseAnswer:
        """Ask for the pause. Asking again while it is under way gives the same answer."""

    async def take_back(self) -> bool:
        """Undo a release that does not end, in one short request; False when it was too late."""

    async def snapshot_failure(self) -> Reason | None:
        """Why the snapshot that was asked for did not come, where the cluster says so. Never raises."""

    async def quiet(self) -> None:
        """Close every connection that leaves the pod; nothing opens one again before `wake()`."""

    async def wake(self) -> None:
        """Follow again."""

    async def resumed_from(self) -> ResumedFrom:
        """Ask, after a thaw or a start, which pod this is and where it came from."""

    async def reclaim(self) -> None:
        """Ask for the compute again. Asking twice, also at once from two places, is one resume."""

    async def snapshots(self) -> list[PodSnapshotRow]:
        """The workspace's pod snapshots, newest first; an empty list where the owner has none."""

    async def delete_snapshot(self, snapshot_id: str, *, force: bool = False) -> None:
        """Ask the cluster to delete one. Raises `snapshot_not_found`, `snapshot_in_use`."""
