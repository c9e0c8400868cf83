# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The scheduler, and the cluster autoscaler's events: binds pods to the one node, or says why it cannot."""

from __future__ import annotations

from tests.cluster.rest import Object

from .api import NODE, POD, Api, Cache, Key, condition, make_condition, with_condition
from .events import Events
from .faults import Faults
from .kubelet import NODE as NODE_NAME
from .reconciler import Reconciler

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible."


class Scheduler(Reconciler):
    """Binds what is not bound."""

    def __init__(self, api: Api, pods: Cache, events: Events, faults: Faults) -> None:
        super().__init__()
        self._api = api
        self._pods = pods
        self._events = events
        self._faults = faults
        self._said: set[tuple[str, str]] = set()
        pods.listen(lambda key, pod: self.enqueue(key) if pod and not pod["spec"].get("nodeName") else None)

    async def make_node(self) -> None:
        """The node's object."""
        await self._api.apply(NODE, {"metadata": {"name": NODE_NAME}, "spec": {}})

    def look_again(self) -> None:
        """A fault was switched."""
        for key, pod in self._pods.objects.items():
            if not pod["spec"].get("nodeName"):
                self.enqueue(key)

    async def reconcile(self, key: Key) -> float | None:
        pod = self._pods.get(key)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            return None
        first_size = not pod["spec"].get("nodeSelector")
        if self._faults.no_capacity or (self._faults.first_size_taken and first_size):
            await self._cannot(pod, key)
            return None
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key[1], "namespace": key[0]},
            "target": target,
        }
        await self._api.request("POST", POD.path(*key, "binding"), binding)
        return None

    async def _cannot(self, pod: Object, key: Key) -> None:
        found = condition(pod, "PodScheduled")
        if found is None or found.get("reason") != "Unschedulable":
            changed = make_condition("PodScheduled", False, "Unschedulable", NO_ROOM)
            status = {"phase": "Pending", "conditions": with_condition(pod, changed)}
            await self._api.patch(POD, key, {"status": status}, "status")
            await self._events.warning(pod, "FailedScheduling", NO_ROOM, "default-scheduler")
        await self._scale_up(pod)

    async def _scale_up(self, pod: Object) -> None:
        if self._faults.silent_scale_up:
            return
        reason = "FailedScaleUp" if self._faults.no_scale_up else "TriggeredScaleUp"
        said = (pod["metadata"]["uid"], reason)
        if said in self._said:
            return
        self._said.add(said)
        if self._faults.no_scale_up:
            text = "Node scale up in zones associated with this pod failed: out of resources."
            await self._events.warning(pod, reason, text, "cluster-autoscaler")
        else:
            text = "pod triggered scale-up: [{pool-1 0->1 (max: 4)}]"
            await self._events.normal(pod, reason, text, "cluster-autoscaler")
