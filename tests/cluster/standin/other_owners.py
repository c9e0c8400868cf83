# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The other owners of a notebook's pod: Kubeflow's Notebook v1 controller and agent-sandbox's.

facts/cluster.md section 6. A bare StatefulSet needs nothing of its own: statefulset.py is its controller.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from tests.cluster.rest import Object

from .api import (
    NOTEBOOK,
    POD,
    SANDBOX,
    STATEFUL_SET,
    Api,
    Cache,
    Key,
    Kind,
    is_true,
    key_of,
    make_condition,
    owner_reference,
    with_condition,
)
from .reconciler import Reconciler

STOPPED = "kubeflow-resource-stopped"
NOTEBOOK_LABEL = "notebook-name"


class Notebooks(Reconciler):
    """Kubeflow Notebook v1: a StatefulSet of its name, with no pod while the annotation is there."""

    def __init__(self, api: Api, caches: Mapping[Kind, Cache]) -> None:
        super().__init__()
        self._api = api
        self._notebooks, self._sets, self._pods = caches[NOTEBOOK], caches[STATEFUL_SET], caches[POD]
        self._notebooks.listen(lambda key, _: self.enqueue(key))
        self._sets.listen(lambda key, _: self.enqueue(key))
        self._pods.listen(lambda key, _: self.enqueue((key[0], key[1].removesuffix("-0"))))

    async def reconcile(self, key: Key) -> float | None:
        notebook = self._notebooks.get(key)
        if notebook is None or "deletionTimestamp" in notebook["metadata"]:
            return None
        replicas = 0 if STOPPED in notebook["metadata"].get("annotations", {}) else 1
        found = self._sets.get(key)
        if found is None:
            await self._api.create(STATEFUL_SET, _notebook_set(notebook, replicas))
        elif found["spec"]["replicas"] != replicas:
            await self._api.patch(STATEFUL_SET, key, {"spec": {"replicas": replicas}})
        await self._status(notebook, self._pods.get((key[0], f"{key[1]}-0")))
        return None

    async def _status(self, notebook: Object, pod: Object | None) -> None:
        statuses = (pod or {}).get("status", {}).get("containerStatuses", [])
        status = {
            "readyReplicas": int(pod is not None and is_true(pod, "Ready")),
            "containerState": statuses[0]["state"] if statuses else {},
        }
        before = notebook.get("status", {})
        if any(before.get(name) != value for name, value in status.items()):
            conditions = before.get("conditions", [])
            await self._api.replace(NOTEBOOK, {**notebook, "status": {"conditions": conditions, **status}}, "status")


class Sandboxes(Reconciler):
    """agent-sandbox: a pod of the sandbox's own name, none while `operatingMode` is Suspended."""

    def __init__(self, api: Api, caches: Mapping[Kind, Cache]) -> None:
        super().__init__()
        self._api = api
        self._sandboxes, self._pods = caches[SANDBOX], caches[POD]
        self._sandboxes.listen(lambda key, _: self.enqueue(key))
        self._pods.listen(lambda key, _: self.enqueue(key))

    async def reconcile(self, key: Key) -> float | None:
        sandbox = self._sandboxes.get(key)
        if sandbox is None or "deletionTimestamp" in sandbox["metadata"]:
            return None
        pod = self._pods.get(key)
        wanted = sandbox["spec"].get("operatingMode", "Running") == "Running"
        if wanted and pod is None:
            await self._api.create(POD, _sandbox_pod(sandbox))
        elif not wanted and pod is not None and "deletionTimestamp" not in pod["metadata"]:
            await self._api.delete(POD, key, {"preconditions": {"uid": pod["metadata"]["uid"]}})
        ready = wanted and pod is not None and is_true(pod, "Ready")
        if is_true(sandbox, "Ready") != ready or not sandbox.get("status"):
            reason, message = (
                ("DependenciesReady", "Pod is Ready") if ready else ("DependenciesNotReady", "no Pod is Ready")
            )
            conditions = with_condition(sandbox, make_condition("Ready", ready, reason, message))
            await self._api.patch(SANDBOX, key_of(sandbox), {"status": {"conditions": conditions}}, "status")
        return None


def _notebook_set(notebook: Object, replicas: int) -> Object:
    metadata = notebook["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    template = copy.deepcopy(notebook["spec"]["template"])
    labels = {"statefulset": name, NOTEBOOK_LABEL: name}
    container = template["spec"]["containers"][0]
    container["env"] = [*container.get("env", []), {"name": "NB_PREFIX", "value": f"/notebook/{namespace}/{name}"}]
    return {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner_reference(notebook)]},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"statefulset": name}},
            "template": {"metadata": {"labels": {**metadata.get("labels", {}), **labels}}, **template},
        },
    }


def _sandbox_pod(sandbox: Object) -> Object:
    metadata, template = sandbox["metadata"], sandbox["spec"]["podTemplate"]
    given = template.get("metadata", {})
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": given.get("labels", {}),
            "annotations": given.get("annotations", {}),
            "ownerReferences": [owner_reference(sandbox)],
        },
        "spec": copy.deepcopy(template["spec"]),
    }
