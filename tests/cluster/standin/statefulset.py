# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The StatefulSet controller for sets of at most one pod, and the garbage collector."""

from __future__ import annotations

import copy
import hashlib
import json

from tests.cluster.rest import Object

from .api import POD, STATEFUL_SET, Api, Cache, Key, is_true, key_of, owner_reference
from .reconciler import Reconciler

REVISION = "controller-revision-hash"


class StatefulSets(Reconciler):
    """One pod for `replicas: 1`, none for 0, a new one when the template changed."""

    def __init__(self, api: Api, sets: Cache, pods: Cache) -> None:
        super().__init__()
        self._api = api
        self._sets = sets
        self._pods = pods
        sets.listen(lambda key, _: self.enqueue(key))
        pods.listen(lambda key, _: self.enqueue((key[0], key[1].removesuffix("-0"))))

    async def reconcile(self, key: Key) -> float | None:
        found = self._sets.get(key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        pod_key = (key[0], f"{key[1]}-0")
        pod = self._pods.get(pod_key)
        wanted = found["spec"].get("replicas", 1) > 0
        revision = _revision(found["spec"]["template"])
        if wanted and pod is None:
            await self._api.create(POD, _pod(found, pod_key, revision))
        elif pod is not None and "deletionTimestamp" not in pod["metadata"]:
            outdated = pod["metadata"].get("labels", {}).get(REVISION) != revision
            if not wanted or outdated:
                await self._api.delete(POD, pod_key, {"preconditions": {"uid": pod["metadata"]["uid"]}})
        await self._status(found, pod, revision)
        return None

    async def _status(self, found: Object, pod: Object | None, revision: str) -> None:
        there = int(pod is not None)
        status = {
            "observedGeneration": found["metadata"]["generation"],
            "replicas": there,
            "currentReplicas": there,
            "readyReplicas": int(pod is not None and is_true(pod, "Ready")),
            "availableReplicas": int(pod is not None and is_true(pod, "Ready")),
            "currentRevision": revision,
            "updateRevision": revision,
        }
        before = found.get("status", {})
        # Zeros are left out by the API server.
        if any(before.get(name, 0) != value for name, value in status.items()):
            await self._api.patch(STATEFUL_SET, key_of(found), {"status": status}, "status")


class GarbageCollector(Reconciler):
    """Deletes what names an owner that is gone."""

    def __init__(self, api: Api, owners: list[Cache], dependents: list[Cache]) -> None:
        super().__init__()
        self._api = api
        self._owners = owners
        self._dependents = dependents
        for cache in owners:
            cache.listen(lambda key, found: self.enqueue(key) if found is None else None)

    async def reconcile(self, key: Key) -> float | None:
        alive = {found["metadata"]["uid"] for cache in self._owners for found in cache.objects.values()}
        kinds = {cache.kind.name for cache in self._owners}
        for cache in self._dependents:
            for found in list(cache.objects.values()):
                references = [r for r in found["metadata"].get("ownerReferences", []) if r["kind"] in kinds]
                orphan = bool(references) and all(reference["uid"] not in alive for reference in references)
                if orphan and "deletionTimestamp" not in found["metadata"]:
                    await self._api.delete(cache.kind, key_of(found))
        return None


def _revision(template: Object) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


def _pod(owner: Object, key: Key, revision: str) -> Object:
    template = copy.deepcopy(owner["spec"]["template"])
    metadata = template.get("metadata", {})
    labels = {
        **metadata.get("labels", {}),
        REVISION: revision,
        "statefulset.kubernetes.io/pod-name": key[1],
        "apps.kubernetes.io/pod-index": "0",
    }
    return {
        "metadata": {
            "name": key[1],
            "namespace": key[0],
            "labels": labels,
            "annotations": metadata.get("annotations", {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {**template["spec"], "hostname": key[1], "restartPolicy": "Always"},
    }
