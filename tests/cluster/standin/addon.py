# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The GKE Workspaces snapshot add-on: two mutating webhooks and a controller.

facts/cluster.md section 3, with its weak spots; order and names as in its public source (gke-labs/workspaces,
providers/gke/internal/snapshot). Where it has no failure path, there is none here.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping

from tests.cluster.rest import ApiError, Object

from .api import (
    CONFIG_MAP,
    POD,
    POLICY,
    SNAPSHOT,
    STORAGE,
    TRIGGER,
    WORKSPACE,
    WORKSPACE_KIND,
    Api,
    Cache,
    Key,
    Kind,
    condition,
    is_true,
    key_of,
    make_condition,
    owner_reference,
    with_condition,
)
from .faults import Faults
from .reconciler import Reconciler

log = logging.getLogger("standin")

PREFIX = "podsnapshot.gke.kubeflow.org/"
ENABLED = PREFIX + "enabled"
STORAGE_CONFIG = PREFIX + "storage-config"
STATE = PREFIX + "checkpoint-state"
STARTED = PREFIX + "checkpoint-started-at"
LAST = PREFIX + "last-checkpoint-name"
GATE = PREFIX + "active"
RESTORE = "podsnapshot.gke.io/ps-name"
LABEL = "notebooks.kubeflow.org/workspace-name"
TRIGGERED_BY = "gke-pod-snapshot-triggered-by"
DEFAULT_STORAGE = "kubeflow-pod-snapshot-storage-config"
IPC = "jupyter-ipc-config"
IPC_FILE = "jupyter_server_config.py"
TPU = "google.com/tpu"

#: Weak spot 8: kernels over Unix sockets, and an event loop on poll().
IPC_CONFIG = """\
import asyncio, selectors
class _Poll(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        return asyncio.SelectorEventLoop(selectors.PollSelector())
asyncio.set_event_loop_policy(_Poll())
c.KernelManager.transport = "ipc"
"""


class AddOn(Reconciler):
    """Controller and webhooks.

    Args:
        settle: seconds between closing the gate and the snapshot; the add-on's own is 3.
    """

    def __init__(self, api: Api, caches: Mapping[Kind, Cache], faults: Faults, settle: float) -> None:
        super().__init__()
        self._api = api
        self._caches = caches
        self._faults = faults
        self._settle = settle
        caches[WORKSPACE].listen(lambda key, _: self.enqueue(key))
        caches[POD].listen(lambda key, pod: self._of_pod(key, pod))
        caches[TRIGGER].listen(lambda key, _: self._of_derived(key, "-trigger"))
        caches[POLICY].listen(lambda key, _: self._of_derived(key, "-policy"))
        caches[SNAPSHOT].listen(lambda key, snapshot: self._of_snapshot(key, snapshot))

    def look_again(self) -> None:
        """A fault was switched."""
        for key in self._caches[WORKSPACE].objects:
            self.enqueue(key)

    def _of_pod(self, key: Key, pod: Object | None) -> None:
        name = (pod or {}).get("metadata", {}).get("labels", {}).get(LABEL)
        if name:
            self.enqueue((key[0], name))
        elif pod is None:
            self.look_again()

    def _of_derived(self, key: Key, suffix: str) -> None:
        if key[1].startswith("ws-") and key[1].endswith(suffix):
            self.enqueue((key[0], key[1].removeprefix("ws-").removesuffix(suffix)))

    def _of_snapshot(self, key: Key, snapshot: Object | None) -> None:
        if snapshot is not None:
            self._of_derived((key[0], snapshot["metadata"].get("labels", {}).get(TRIGGERED_BY, "")), "-trigger")

    # The controller.

    async def reconcile(self, key: Key) -> float | None:
        if self._faults.addon_down:
            return None
        workspace = self._caches[WORKSPACE].get(key)
        if workspace is None:
            return await self._after_deletion(key)
        if not self.enabled(workspace):
            return None
        await self._ensure(workspace)
        if _annotations(workspace).get(STATE) == "Checkpointing":
            return await self._checkpointing(key, workspace)
        if workspace["spec"].get("paused", False):
            return None
        return await self._active(key, workspace)

    def enabled(self, workspace: Object) -> bool:
        """Whether a pause of it is stateful: asked for by the Workspace or its kind, and no TPU (weak spot 5)."""
        kind = self._caches[WORKSPACE_KIND].get(("", workspace["spec"]["kind"])) or {}
        of_kind = kind.get("metadata", {}).get("annotations", {})
        asked = _annotations(workspace).get(ENABLED, of_kind.get(ENABLED))
        return asked == "true" and not _kind_has_tpu(workspace, kind)

    async def _checkpointing(self, key: Key, workspace: Object) -> float | None:
        pod = self._pod(key)
        if pod is None:
            await self._pause(key, True, {STATE: "Ready", STARTED: None})
            return None
        await self._set_gate(pod, False)
        stamp = _annotations(workspace).get(STARTED, "")
        remaining = self._settle - _age(stamp)
        if remaining > 0:
            return remaining
        trigger = await self._trigger(workspace, pod, stamp)
        name = (trigger or {}).get("status", {}).get("snapshotCreated", {}).get("name")
        snapshot = self._caches[SNAPSHOT].get((key[0], name)) if name else None
        if snapshot is not None and is_true(snapshot, "Ready"):
            await self._pause(key, True, {LAST: name, STATE: "Ready", STARTED: None})
        return None

    async def _trigger(self, workspace: Object, pod: Object, stamp: str) -> Object | None:
        """This pause's trigger; one of an earlier pause goes first."""
        namespace, name = workspace["metadata"]["namespace"], f"ws-{workspace['metadata']['name']}-trigger"
        found = await self._api.find(TRIGGER, name, namespace)
        if found is not None and _annotations(found).get(STARTED) == stamp:
            return found
        if found is not None:
            await self._api.delete(TRIGGER, (namespace, name))
            return None
        metadata = {
            "name": name,
            "namespace": namespace,
            "annotations": {STARTED: stamp},
            "ownerReferences": [owner_reference(workspace, controller=False)],
        }
        return await self._api.create(TRIGGER, {"metadata": metadata, "spec": {"targetPod": pod["metadata"]["name"]}})

    async def _active(self, key: Key, workspace: Object) -> float | None:
        pod = self._pod(key)
        if pod is None or pod.get("status", {}).get("phase") != "Running" or not _containers_ready(pod):
            return None
        await self._set_gate(pod, True)
        annotations = _annotations(workspace)
        if not (annotations.get(STATE) or annotations.get(LAST)) or not is_true(pod, "Ready"):
            return None
        await self._delete_snapshots(key)
        await self._api.delete(TRIGGER, (key[0], f"ws-{key[1]}-trigger"))
        await self._pause(key, False, {LAST: None, STATE: None, STARTED: None})
        return None

    async def _pause(self, key: Key, paused: bool, annotations: dict[str, str | None]) -> None:
        patch = {"spec": {"paused": paused}, "metadata": {"annotations": annotations}}
        await self._api.patch(WORKSPACE, key, patch)

    async def _delete_snapshots(self, key: Key) -> None:
        query = f"?labelSelector={TRIGGERED_BY}%3Dws-{key[1]}-trigger"
        await self._api.request("DELETE", SNAPSHOT.path(key[0]) + query)

    async def _ensure(self, workspace: Object) -> None:
        """ConfigMap, storage config and policy."""
        metadata = workspace["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        if self._caches[CONFIG_MAP].get((namespace, IPC)) is None:
            await self._ensure_config_map(namespace)
        storage = self._storage_name(workspace)
        if self._caches[STORAGE].get(("", storage)) is None:
            gcs = {"bucket": "snapshots", "path": "kubeflow-notebooks"}
            spec: Object = {"snapshotStorageConfig": {"gcs": gcs}}
            await self._create_if_missing(STORAGE, {"metadata": {"name": storage}, "spec": spec})
        if self._caches[POLICY].get((namespace, f"ws-{name}-policy")) is None:
            spec = {
                "storageConfigName": storage,
                "selector": {"matchLabels": {LABEL: name}},
                "triggerConfig": {"type": "manual", "postCheckpoint": "stop"},
                "retentionConfig": {"lastAccessTimeout": "7d"},
            }
            policy = {"metadata": {"name": f"ws-{name}-policy", "namespace": namespace}, "spec": spec}
            await self._create_if_missing(POLICY, policy)

    def _storage_name(self, workspace: Object) -> str:
        kind = self._caches[WORKSPACE_KIND].get(("", workspace["spec"]["kind"])) or {}
        of_kind = kind.get("metadata", {}).get("annotations", {}).get(STORAGE_CONFIG, DEFAULT_STORAGE)
        name: str = _annotations(workspace).get(STORAGE_CONFIG, of_kind)
        return name

    async def _ensure_config_map(self, namespace: str) -> None:
        metadata = {"name": IPC, "namespace": namespace}
        await self._create_if_missing(CONFIG_MAP, {"metadata": metadata, "data": {IPC_FILE: IPC_CONFIG}})

    async def _create_if_missing(self, kind: Kind, document: Object) -> None:
        try:
            await self._api.create(kind, document)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _after_deletion(self, key: Key) -> float | None:
        """A Workspace is gone: its snapshots first, then, once they are gone, the policy."""
        policy = (key[0], f"ws-{key[1]}-policy")
        if self._caches[POLICY].get(policy) is None:
            return None
        left = [
            snapshot
            for at, snapshot in self._caches[SNAPSHOT].objects.items()
            if at[0] == key[0] and snapshot["metadata"].get("labels", {}).get(TRIGGERED_BY) == f"ws-{key[1]}-trigger"
        ]
        if any("deletionTimestamp" not in snapshot["metadata"] for snapshot in left):
            await self._delete_snapshots(key)
        if left:
            return 1.0
        await self._api.delete(POLICY, policy)
        await self._api.delete(TRIGGER, (key[0], f"ws-{key[1]}-trigger"))
        return None

    def _pod(self, key: Key) -> Object | None:
        """The Workspace's pod, unless it is being deleted."""
        for at, pod in self._caches[POD].objects.items():
            named = pod["metadata"].get("labels", {}).get(LABEL) == key[1]
            if at[0] == key[0] and named and "deletionTimestamp" not in pod["metadata"]:
                return pod
        return None

    async def _set_gate(self, pod: Object, active: bool) -> None:
        """Set the readiness gate, and Ready with it in the same write, so that Kubeflow sees it at once."""
        if not active and self._faults.gate_never_false:
            return
        if _gate_is(pod, active):
            return
        fresh = await self._api.find(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])
        if fresh is None or _gate_is(fresh, active):
            return
        reason = ("WorkspaceActive", "Workspace pod is active") if active else _CHECKPOINTING
        conditions = with_condition(fresh, make_condition(GATE, active, *reason))
        changed = {**fresh, "status": {**fresh["status"], "conditions": conditions}}
        ready = condition(changed, "Ready")
        if ready is not None and (not active or _containers_ready(fresh)):
            now_ready = make_condition("Ready", active, *(() if active else _CHECKPOINTING))
            changed["status"]["conditions"] = with_condition(changed, now_ready)
        await self._api.replace(POD, changed, "status")

    # The webhooks.

    async def mutate_workspace(self, request: Object) -> list[Object]:
        """JSON patch for an update of a Workspace: holds a pause back, marks a resume."""
        before = (request.get("oldObject") or {}).get("spec", {}).get("paused", False)
        workspace: Object = request["object"]
        after = workspace["spec"].get("paused", False)
        if before == after or not self.enabled(workspace):
            return []
        annotations = dict(_annotations(workspace))
        ready = annotations.get(STATE) == "Ready"
        if before:
            if not ready:
                return []
            annotations[STATE] = "Restoring"
            return [{"op": "add", "path": "/metadata/annotations", "value": annotations}]
        pod = self._pod(key_of(workspace))
        if ready or pod is None or pod.get("status", {}).get("phase") != "Running":
            # The add-on's own write; or nothing runs (weak spot 3): a pause without a snapshot.
            return []
        await self._set_gate_from_webhook(pod)
        annotations |= {STATE: "Checkpointing", STARTED: _stamp()}
        return [
            {"op": "add", "path": "/spec/paused", "value": False},
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
        ]

    async def _set_gate_from_webhook(self, pod: Object) -> None:
        try:
            await self._set_gate(pod, False)
        except ApiError as error:
            log.warning("gate of %s: %s", key_of(pod), error)

    async def mutate_pod(self, request: Object) -> list[Object]:
        """JSON patch for a new pod of an enabled Workspace: gVisor, the gate, ipc, and what to restore."""
        pod: Object = request["object"]
        name, namespace = pod["metadata"].get("labels", {}).get(LABEL), request["namespace"]
        workspace = await self._api.find(WORKSPACE, name, namespace) if name else None
        if workspace is None or not self.enabled(workspace) or _has_tpu(pod):
            return []
        await self._ensure_config_map(namespace)
        spec = pod["spec"]
        mounts = spec["containers"][0].get("volumeMounts", [])
        mount = {"name": IPC, "mountPath": f"/etc/jupyter/{IPC_FILE}", "subPath": IPC_FILE}
        volume = {"name": IPC, "configMap": {"name": IPC}}
        patches: list[Object] = [
            {"op": "add", "path": "/spec/runtimeClassName", "value": "gvisor"},
            {
                "op": "add",
                "path": "/spec/readinessGates",
                "value": [*spec.get("readinessGates", []), {"conditionType": GATE}],
            },
            {"op": "add", "path": "/spec/volumes", "value": [*spec.get("volumes", []), volume]},
            {"op": "add", "path": "/spec/containers/0/volumeMounts", "value": [*mounts, mount]},
        ]
        last = _annotations(workspace).get(LAST)
        if last:
            annotations = {**_annotations(pod), RESTORE: last}
            patches.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
        return patches


_CHECKPOINTING = ("CheckpointingInProgress", "Pausing: taking GKE PodSnapshot")


def _annotations(document: Object) -> dict[str, str]:
    found: dict[str, str] = document["metadata"].get("annotations") or {}
    return found


def _gate_is(pod: Object, active: bool) -> bool:
    found = condition(pod, GATE)
    return found is not None and (found["status"] == "True") == active


def _containers_ready(pod: Object) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return bool(statuses) and all(status["ready"] for status in statuses)


def _has_tpu(pod: Object) -> bool:
    resources = [container.get("resources", {}) for container in pod["spec"]["containers"]]
    return any(TPU in resource.get(part, {}) for resource in resources for part in ("limits", "requests"))


def _kind_has_tpu(workspace: Object, kind: Object) -> bool:
    chosen = workspace["spec"]["podTemplate"]["options"]["podConfig"]
    values = kind.get("spec", {}).get("podTemplate", {}).get("options", {}).get("podConfig", {}).get("values", [])
    resources = [value["spec"].get("resources", {}) for value in values if value["id"] == chosen]
    return any(TPU in resource.get(part, {}) for resource in resources for part in ("limits", "requests"))


def _stamp() -> str:
    # Whole seconds in the add-on; here with microseconds, so that two pauses of a quick test are two.
    return dt.datetime.now(dt.UTC).isoformat().replace("+00:00", "Z")


def _age(stamp: str) -> float:
    """Seconds since; endless for none."""
    try:
        at = dt.datetime.fromisoformat(stamp)
    except ValueError:
        return float("inf")
    return (dt.datetime.now(dt.UTC) - at).total_seconds()
