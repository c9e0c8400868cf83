# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""GKE's pod snapshot controller: triggers become PodSnapshots, which are CRIU images here.

facts/cluster.md section 4. It is the one user that the admission policy lets write PodSnapshots.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

import httpx

from tests.cluster.rest import ApiError, Object

from . import pods
from .api import (
    POD,
    POLICY,
    SNAPSHOT,
    STORAGE,
    TRIGGER,
    Api,
    Cache,
    Key,
    Kind,
    condition,
    is_true,
    key_of,
    make_condition,
    with_condition,
)
from .container import CriuError, OutsideConnection
from .faults import Faults
from .kubelet import Kubelet
from .reconciler import Reconciler
from .signals import Signal

log = logging.getLogger("standin")

RESTORE = "podsnapshot.gke.io/ps-name"
TRIGGERED_BY = "gke-pod-snapshot-triggered-by"
FINALIZER = "podsnapshot.gke.io/snapshot-data"


class SnapshotImages:
    """Where the images of snapshots lie: the bucket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, key: Key) -> Path:
        """The folder of one snapshot."""
        return self._folder / key[0] / key[1]

    def images_for(self, pod: Object) -> Path | None:
        """The images of the snapshot that the pod names, if they are there and were taken of such a pod."""
        name = pod["metadata"].get("annotations", {}).get(RESTORE)
        if name is None:
            return None
        folder = self.folder((pod["metadata"]["namespace"], name))
        taken_of = folder / "pod.json"
        if not taken_of.exists() or json.loads(taken_of.read_text(encoding="utf-8")) != pods.spec_hash(pod):
            return None
        return folder / "images"

    def note(self, key: Key, pod: Object) -> None:
        """Write down what the snapshot fits: it is complete now."""
        (self.folder(key) / "pod.json").write_text(json.dumps(pods.spec_hash(pod)), encoding="utf-8")

    def remove(self, key: Key) -> None:
        """Delete the images."""
        shutil.rmtree(self.folder(key), ignore_errors=True)


class Triggers(Reconciler):
    """Takes a snapshot for each trigger."""

    def __init__(
        self, api: Api, caches: Mapping[Kind, Cache], kubelet: Kubelet, images: SnapshotImages, faults: Faults
    ) -> None:
        super().__init__()
        self._api = api
        self._triggers = caches[TRIGGER]
        self._kubelet = kubelet
        self._images = images
        self._faults = faults
        self._taken: dict[str, asyncio.Task[None]] = {}
        self._switched = Signal()
        self._triggers.listen(lambda key, _: self.enqueue(key))

    def look_again(self) -> None:
        """A fault was switched."""
        self._switched.set()

    async def stop(self) -> None:
        """End what is under way."""
        for task in self._taken.values():
            task.cancel()
        if self._taken:
            await asyncio.wait(self._taken.values())

    async def reconcile(self, key: Key) -> float | None:
        trigger = self._triggers.get(key)
        if trigger is None or condition(trigger, "Triggered") is not None:
            return None
        uid = trigger["metadata"]["uid"]
        if uid not in self._taken:
            self._taken[uid] = asyncio.get_running_loop().create_task(self._try(trigger))
        return None

    async def _try(self, trigger: Object) -> None:
        try:
            await self._take(trigger)
        except (ApiError, httpx.HTTPError) as error:
            log.warning("trigger %s: %r", key_of(trigger), error)
            await self._finish(trigger, False, "Error", str(error))

    async def _take(self, trigger: Object) -> None:
        namespace = trigger["metadata"]["namespace"]
        pod = await self._api.find(POD, trigger["spec"]["targetPod"], namespace)
        policy = None if pod is None else await self._policy_of(pod)
        if pod is None or policy is None:
            missing = "target pod not found" if pod is None else "no PodSnapshotPolicy selects the pod"
            return await self._finish(trigger, False, "Error", missing)
        if self._faults.snapshot_fails:
            return await self._finish(trigger, False, "Failed", self._faults.snapshot_fails)
        snapshot = await self._create(trigger, pod, policy)
        if self._faults.snapshot_never_ready:
            return None
        worker = self._kubelet.worker(key_of(pod))
        key = key_of(snapshot)
        try:
            if worker is None:
                raise CriuError("the pod does not run on a node")
            await worker.snapshot(self._images.folder(key) / "images")
        except (CriuError, OutsideConnection) as error:
            await self._ready(key, make_condition("Ready", False, "CheckpointFailed", str(error)))
            return await self._finish(trigger, False, "Failed", str(error))
        await self._switched.until(lambda: not self._faults.snapshot_slow)
        self._images.note(key, pod)
        await self._ready(key, make_condition("Ready", True, "SnapshotReady"))
        return await self._finish(trigger, True, "Complete", "")

    async def _policy_of(self, pod: Object) -> Object | None:
        labels = pod["metadata"].get("labels", {})
        for policy in await self._api.list(POLICY, pod["metadata"]["namespace"]):
            wanted = policy["spec"]["selector"].get("matchLabels", {})
            manual = policy["spec"]["triggerConfig"]["type"] == "manual"
            if manual and all(labels.get(name) == value for name, value in wanted.items()):
                return policy
        return None

    async def _create(self, trigger: Object, pod: Object, policy: Object) -> Object:
        metadata = {
            "name": str(uuid.uuid4()),
            "namespace": trigger["metadata"]["namespace"],
            "labels": {TRIGGERED_BY: trigger["metadata"]["name"]},
            "annotations": {
                "podsnapshot.gke.io/origin-pod": pod["metadata"]["name"],
                "podsnapshot.gke.io/origin-node": pod["spec"]["nodeName"],
            },
            "finalizers": [FINALIZER],
        }
        made = await self._api.create(
            SNAPSHOT, {"metadata": metadata, "spec": {"policyName": policy["metadata"]["name"]}}
        )
        status = {"snapshotCreated": {"name": made["metadata"]["name"]}}
        await self._api.patch(TRIGGER, key_of(trigger), {"status": status}, "status")
        return made

    async def _ready(self, key: Key, changed: Object) -> None:
        found = await self._api.find(SNAPSHOT, key[1], key[0])
        if found is not None:
            conditions = with_condition(found, changed)
            await self._api.patch(SNAPSHOT, key, {"status": {"conditions": conditions}}, "status")

    async def _finish(self, trigger: Object, done: bool, reason: str, message: str) -> None:
        found = await self._api.find(TRIGGER, trigger["metadata"]["name"], trigger["metadata"]["namespace"])
        if found is not None and found["metadata"]["uid"] == trigger["metadata"]["uid"]:
            conditions = with_condition(found, make_condition("Triggered", done, reason, message))
            await self._api.patch(TRIGGER, key_of(trigger), {"status": {"conditions": conditions}}, "status")


class Snapshots(Reconciler):
    """Deletes the images of deleted snapshots, then lets go of the object.

    The bucket is found through the policy; without it a snapshot is stuck (cases.md S28).
    """

    def __init__(self, api: Api, caches: Mapping[Kind, Cache], images: SnapshotImages, faults: Faults) -> None:
        super().__init__()
        self._api = api
        self._snapshots = caches[SNAPSHOT]
        self._policies = caches[POLICY]
        self._images = images
        self._faults = faults
        self._snapshots.listen(lambda key, _: self.enqueue(key))
        self._policies.listen(lambda *_: self.look_again())

    def look_again(self) -> None:
        """A fault was switched, or a policy changed."""
        for key in self._snapshots.objects:
            self.enqueue(key)

    async def reconcile(self, key: Key) -> float | None:
        found = self._snapshots.get(key)
        if found is None or "deletionTimestamp" not in found["metadata"]:
            return None
        finalizers = found["metadata"].get("finalizers", [])
        if FINALIZER not in finalizers or self._faults.snapshot_deletion_stuck:
            return None
        if self._policies.get((key[0], found["spec"]["policyName"])) is None:
            return None
        await asyncio.to_thread(self._images.remove, key)
        finalizers.remove(FINALIZER)
        await self._api.replace(SNAPSHOT, {**found, "metadata": {**found["metadata"], "finalizers": finalizers}})
        return None


class StorageConfigs(Reconciler):
    """Every bucket can be reached."""

    def __init__(self, api: Api, configs: Cache) -> None:
        super().__init__()
        self._api = api
        self._configs = configs
        configs.listen(lambda key, _: self.enqueue(key))

    async def reconcile(self, key: Key) -> float | None:
        found = self._configs.get(key)
        if found is not None and not is_true(found, "Ready"):
            conditions = with_condition(found, make_condition("Ready", True, "StorageConfigured"))
            await self._api.patch(STORAGE, key, {"status": {"conditions": conditions}}, "status")
        return None
