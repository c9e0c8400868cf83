# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Owners of one pod that are switched off and on by a change of their own object, and make no snapshot.

Notebook v1, a bare StatefulSet and agent-sandbox differ in where the switch is and how "gone" shows: each has a
`Switch` in its own file. What they share is here: one watch on the object, the pod only while it is on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_pause.cluster.access import Right
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import EVENTS, PODS, Resource
from jupyter_pause.owners.base import Check, OwnerContext, OwnerView, ReleaseAnswer, ResumedFrom
from jupyter_pause.owners.kubeflow_state import derive_pod, is_behind, newest_time, parse_time
from jupyter_pause.states import OwnerKind, PodSnapshotRow, Reason, ResumeDoor

if TYPE_CHECKING:
    from jupyter_pause.clock import Clock
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.cluster.watch import Follower

Object = Mapping[str, Any]
Operations = list[dict[str, Any]]

#: An unconfirmed view is the last known one for so long, then it is unknown (cases.md S48).
STALE_AFTER = timedelta(seconds=120)


@dataclass(frozen=True)
class Switch:
    """How one kind of owner is switched. All functions are pure.

    `is_on`: compute is wanted. `has_gone`: the object's status says that the pod is gone. `is_ready`: it says that the
    pod runs. `off(object, now)` and `on(object)` are JSON patches, made for the object as it was read. `since`: when it
    was switched off, where that is written down. `warn(object)`: what else has to be known before the click.
    `command(namespace, name)`: what switches it on from a laptop.
    """

    kind: OwnerKind
    resource: Resource
    is_on: Callable[[Object], bool]
    has_gone: Callable[[Object], bool]
    is_ready: Callable[[Object], bool]
    off: Callable[[Object, datetime], Operations]
    on: Callable[[Object], Operations]
    pod: Callable[[str], str]
    command: Callable[[str, str], str]
    since: Callable[[Object], datetime | None] = lambda _: None
    warn: Callable[[Object], list[Check]] = lambda _: []
    #: Where a patch of the switch goes; "" is the object itself.
    subresource: str = ""


def derive(
    switch: Switch, thing: Object | None, pod: Object | None, events: Sequence[Object], now: datetime
) -> OwnerView:
    """The view of the owner's object. `pod` None: there is none, or it is not followed (then the status counts)."""
    if thing is None:
        return OwnerView("unknown", stateful=False, error=Reason(code="workspace_missing"))
    if thing["metadata"].get("deletionTimestamp"):
        return OwnerView("unknown", stateful=False, error=Reason(code="workspace_deleted"))
    behind = is_behind(thing)  # S15: a status older than the specification never flips the state back
    if not switch.is_on(thing):
        if pod is None and not behind and switch.has_gone(thing):
            return OwnerView("paused", since=switch.since(thing), stateful=False)
        return OwnerView("pausing", "releasing", since=switch.since(thing), stateful=False, **_pod(pod))
    if pod is not None:
        return replace(derive_pod(pod, events, now), stateful=False)
    if not behind and switch.is_ready(thing):
        return OwnerView("running", stateful=False)
    return OwnerView("resuming", "starting", stateful=False)


def _pod(pod: Object | None) -> dict[str, Any]:
    if pod is None:
        return {}
    return {"pod": str(pod["metadata"]["name"]), "pod_uid": str(pod["metadata"].get("uid") or "") or None}


class SwitchedOwner:
    """See `WorkspaceOwner`. `pod_name`: our own pod, None when this is not the pod (command line)."""

    def __init__(
        self,
        switch: Switch,
        client: ClusterClient,
        *,
        namespace: str,
        name: str,
        clock: Clock,
        pod_name: str | None = None,
        places: Sequence[Path] = (),
    ) -> None:
        """`places`: folders that must outlive the pod (home, checkpoints)."""
        self.kind: OwnerKind = switch.kind
        self.namespace: str | None = namespace
        self.name = name
        self._space = namespace
        self._switch = switch
        self._client = client
        self._clock = clock
        self._inside = pod_name is not None
        self._pod_name = pod_name or switch.pod(name)
        self._places = places
        self._thing: Follower = client.follow(switch.resource, namespace=namespace, name=name)
        self._pods: Follower | None = None
        self._events: Follower | None = None
        self._own_write: Object | None = None
        self._listeners: list[Callable[[], None]] = []
        self._following = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- looking ------------------------------------------------------------------------------------------------

    def door(self) -> ResumeDoor:
        """From a laptop; no page on the tab's origin is known that could do it."""
        return ResumeDoor(kind="none", api=None, page=None, command=self._switch.command(self._space, self.name))

    def view(self) -> OwnerView:
        """The last known state, `unknown` once nobody has confirmed it for two minutes."""
        now, confirmed = self._clock.now(), self._thing.synced_at
        thing, error = self._newest(), _reason(self._thing.error)
        if thing is None and (confirmed is None or error is not None):
            return OwnerView("unknown", observed_at=confirmed, error=error or Reason(code="not_looked_yet"))
        view = derive(self._switch, thing, self._followed_pod(), self._pod_events(), now)
        if error is not None and (confirmed is None or now - confirmed > STALE_AFTER):
            return replace(view, state="unknown", phase=None, since=confirmed, observed_at=confirmed, error=error)
        return replace(view, observed_at=confirmed, error=view.error or error)

    def _newest(self) -> Object | None:
        """The object: as followed, unless our own write is newer than what the watch has brought (S15)."""
        followed, own = self._thing.objects.get(self.name), self._own_write
        if own is not None and (followed is None or _version(followed) < _version(own)):
            return own
        self._own_write = None
        return followed

    def _followed_pod(self) -> Object | None:
        if self._pods is None or self._pods.error is not None:
            return None
        return self._pods.objects.get(self._pod_name)

    def _pod_events(self) -> list[Object]:
        pod = self._followed_pod()
        if pod is None or self._events is None:
            return []
        uid = pod["metadata"].get("uid")
        return [e for e in self._events.objects.values() if (e.get("involvedObject") or {}).get("uid") == uid]

    def listen(self, callback: Callable[[], None]) -> None:
        """After every change of what is followed, or of what keeps us from seeing it."""
        self._listeners.append(callback)

    async def start(self) -> None:
        """Follow the object."""
        self._thing.listen(self._changed)
        await self._thing.start()
        self._changed()

    async def stop(self) -> None:
        """Close everything."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _changed(self) -> None:
        task = asyncio.get_running_loop().create_task(self._follow_what_is_needed())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._tell()

    def _tell(self) -> None:
        for callback in list(self._listeners):
            callback()

    async def _follow_what_is_needed(self) -> None:
        """The pod and its events while it is on its way; nothing but the object while all is well."""
        async with self._following:
            thing = self._newest()
            if thing is None or not self._client.is_connected:
                return
            needed = derive(self._switch, thing, None, [], self._clock.now()).state not in ("running", "paused")
            if needed and self._pods is None:
                await self._follow_pod()
            elif not needed and self._pods is not None:
                followers, self._pods, self._events = (self._pods, self._events), None, None
                for follower in followers:
                    if follower is not None:
                        await follower.stop()

    async def _follow_pod(self) -> None:
        self._pods = self._client.follow(PODS, namespace=self._space, name=self._pod_name)
        self._events = self._client.follow(EVENTS, namespace=self._space, field_selector="involvedObject.kind=Pod")
        for follower in (self._pods, self._events):
            follower.listen(self._tell)
            await follower.start()
        self._tell()

    # --- before the click -----------------------------------------------------------------------------------------

    def needed_rights(self) -> dict[Right, bool]:
        """Every right that is used, and whether a pause is impossible without it."""
        own, resource = {"namespace": self._space, "name": self.name}, self._switch.resource
        return {
            Right("get", resource, **own): True,
            Right("watch", resource, **own): True,
            Right("patch", resource, **own, subresource=self._switch.subresource): True,
            Right("get", PODS, namespace=self._space, name=self._pod_name): False,
        }

    async def checks(self) -> list[Check]:
        """Rights, whether the home outlives the pod, and that no memory is kept."""
        from jupyter_pause.owners.kubeflow_checks import places_to_warn_of

        found = [Check("no_snapshot", "warns")]
        needed = self.needed_rights()
        try:
            missing = await self._client.may(list(needed))
        except ClusterError as error:
            return [*found, Check(error.code, "blocks", error.params)]
        found += [Check("missing_right", "blocks" if needed[right] else "warns", right.params) for right in missing]
        thing = self._newest()
        if thing is not None:
            found += self._switch.warn(thing)
        return found + await asyncio.to_thread(places_to_warn_of, self._places)

    # --- asking -------------------------------------------------------------------------------------------------

    async def release(self) -> ReleaseAnswer:
        """Switch it off; nothing to do when somebody did already. Raises ClusterError."""
        async with self._client.briefly():
            await self._turn(lambda thing: None if not self._switch.is_on(thing) else self._off(thing))
        return ReleaseAnswer("released")

    def _off(self, thing: Object) -> Operations:
        return self._switch.off(thing, self._clock.now())

    async def take_back(self) -> bool:
        """Switch it on again: True as long as our pod has not been told to go."""
        async with self._client.briefly():
            pod = await self._own_pod()
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                return False
            await self._turn(lambda thing: None if self._switch.is_on(thing) else self._switch.on(thing))
        return True

    async def reclaim(self) -> None:
        """Switch it on; nothing to do when somebody did already. Raises ClusterError."""
        await self._turn(lambda thing: None if self._switch.is_on(thing) else self._switch.on(thing))

    async def _turn(self, make: Callable[[Object], Operations | None]) -> None:
        """Patch the switch for the object as it is; somebody else's write in between is taken into account."""
        switch = self._switch
        if not switch.subresource:
            self._own_write = await self._client.change(switch.resource, self.name, make, self._space)
            return
        thing = await self._client.get(switch.resource, self.name, self._space)
        operations = make(thing)
        if operations is not None:
            await self._client.patch(
                switch.resource, self.name, operations, self._space, subresource=switch.subresource
            )

    async def snapshot_failure(self) -> Reason | None:
        """There are none."""
        return None

    async def quiet(self) -> None:
        """Close every connection that leaves the pod."""
        await self._client.disconnect()

    async def wake(self) -> None:
        """Follow again."""
        await self._client.reconnect()
        self._changed()

    async def resumed_from(self) -> ResumedFrom:
        """The pod that we are in: always a new one, started cold. Raises ClusterError."""
        pod = await self._own_pod()
        now, at_least = self._clock.now(), newest_time(pod)
        behind = (now - at_least).total_seconds() if at_least is not None else 0.0
        created = parse_time((pod or {}).get("metadata", {}).get("creationTimestamp"))
        return ResumedFrom(
            **_pod(pod),
            restored=False,
            reason=Reason(code="cold_start"),
            clock_drift=round(behind, 3) if behind < -1.0 else None,
            timeline={"pod_created": created} if created is not None else {},
        )

    async def _own_pod(self) -> Object | None:
        try:
            return await self._client.get(PODS, self._pod_name, self._space)
        except ClusterError as error:
            if error.code not in ("cluster_forbidden", "cluster_not_found"):
                raise
            return None

    async def snapshots(self) -> list[PodSnapshotRow]:
        """There are none."""
        return []

    async def delete_snapshot(self, snapshot_id: str, *, force: bool = False) -> None:
        """There are none: raises ClusterError `snapshot_not_found`."""
        raise ClusterError("snapshot_not_found")


def open_switched(switch: Switch, context: OwnerContext) -> SwitchedOwner:
    """The owner of this server's own pod. Raises ClusterError where nothing says how to reach the cluster."""
    if context.client is None or context.namespace is None:
        raise ClusterError("cluster_not_here")
    return SwitchedOwner(
        switch,
        context.client,
        namespace=context.namespace,
        name=context.name,
        clock=context.clock,
        pod_name=context.pod,
        places=context.places,
    )


def _version(thing: Object) -> int:
    """Resource versions of one API server grow; they compare as numbers (Kubernetes KEP-5504)."""
    try:
        return int(thing["metadata"].get("resourceVersion") or 0)
    except ValueError:
        return 0


def _reason(error: ClusterError | None) -> Reason | None:
    return None if error is None else Reason(code=error.code, message=str(error), params=dict(error.params))
