# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What to know before a Workspace is paused: what stands in the way, and what only has to be said.

What a snapshot needs: the add-on of gke-labs/workspaces and the documentation of GKE Pod Snapshots. Nothing is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from jupyter_pause.cluster.access import Right
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import POD_SNAPSHOT_STORAGE_CONFIGS, PODS, WORKSPACES
from jupyter_pause.inventory.files import mount_of, read_mounts
from jupyter_pause.inventory.gpu import gpu_items
from jupyter_pause.owners.base import Check
from jupyter_pause.owners.kubeflow_state import ENABLED, STORAGE_CONFIG, PodFacts

if TYPE_CHECKING:
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.states import InventoryItem

#: What the add-on takes where neither Workspace nor kind names one.
DEFAULT_STORAGE_CONFIG = "kubeflow-pod-snapshot-storage-config"
GVISOR = "gvisor"
TPU = "google.com/tpu"
#: The only model of which several can be snapshotted together.
SEVERAL_OF = "L4"
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Surroundings:
    """What the checks look at. `places`: folders that must outlive the pod."""

    namespace: str
    name: str
    pod_name: str | None
    workspace: Mapping[str, Any] | None
    pod: Mapping[str, Any] | None
    places: Sequence[Path]


async def look(client: ClusterClient, here: Surroundings) -> list[Check]:
    """All checks. Never raises: what cannot be found out is a check of its own."""
    pod = PodFacts.of(here.pod)
    found = [*await _rights(client, here), *_snapshot(here, pod)]
    if pod is not None and pod.has_gate:
        found += await _storage(client, here)
        found += await _gpus()
        found += await asyncio.to_thread(_exec_processes)
    found += await asyncio.to_thread(places_to_warn_of, here.places)
    return found


# --- rights -------------------------------------------------------------------------------------------------------


def needed_rights(namespace: str, name: str, pod_name: str | None) -> dict[Right, bool]:
    """Every right that is used, and whether a pause is impossible without it."""
    own = {"namespace": namespace, "name": name}
    return {
        Right("get", WORKSPACES, **own): True,
        Right("watch", WORKSPACES, **own): True,
        Right("patch", WORKSPACES, **own): True,
        Right("get", PODS, namespace=namespace, name=pod_name): False,
    }


async def _rights(client: ClusterClient, here: Surroundings) -> list[Check]:
    """S47: a right that is missing is named by verb and resource."""
    needed = needed_rights(here.namespace, here.name, here.pod_name)
    try:
        missing = await client.may(list(needed))
    except ClusterError as error:
        return [Check(error.code, "blocks", error.params)]
    return [Check("missing_right", "blocks" if needed[right] else "warns", right.params) for right in missing]


# --- will there be a snapshot -------------------------------------------------------------------------------------


def _snapshot(here: Surroundings, pod: PodFacts | None) -> list[Check]:
    """Whether the add-on will hold the pause back; without it the pod simply goes (its hooks are optional)."""
    if pod is None:
        return [Check("pod_not_readable", "warns")]
    spec = pod.pod.get("spec") or {}
    if not pod.has_gate:
        return [Check(_why_stateless(here, spec), "warns")]
    if spec.get("runtimeClassName") != GVISOR:
        return [Check("not_gvisor", "warns")]
    return []


def _why_stateless(here: Surroundings, spec: Mapping[str, Any]) -> str:
    annotations = ((here.workspace or {}).get("metadata") or {}).get("annotations") or {}
    for container in spec.get("containers") or []:
        resources = container.get("resources") or {}
        if TPU in (resources.get("limits") or {}) or TPU in (resources.get("requests") or {}):
            return "tpu"
    return "snapshots_off" if annotations.get(ENABLED) == "false" else "addon_missing"


async def _storage(client: ClusterClient, here: Surroundings) -> list[Check]:
    """Whether the bucket can be used. The kind is cluster-wide, so that a Role in one namespace may not read it."""
    annotations = ((here.workspace or {}).get("metadata") or {}).get("annotations") or {}
    name = annotations.get(STORAGE_CONFIG) or DEFAULT_STORAGE_CONFIG
    try:
        config = await client.get(POD_SNAPSHOT_STORAGE_CONFIGS, name)
    except ClusterError as error:
        if error.code == "cluster_not_found":
            # The kind may name another; only a Workspace's own choice is known to be wrong.
            return [Check("storage_not_ready", "blocks", {"name": name})] if annotations.get(STORAGE_CONFIG) else []
        return [Check("storage_unknown", "warns", {"name": name})]
    conditions = {str(c.get("type")): c for c in (config.get("status") or {}).get("conditions") or []}
    ready = conditions.get("Ready")
    if ready is None:
        return [Check("storage_unknown", "warns", {"name": name})]
    if str(ready.get("status")) != "True":
        return [Check("storage_not_ready", "blocks", {"name": name})]
    return []


# --- GPU and memory -----------------------------------------------------------------------------------------------


async def _gpus() -> list[Check]:
    devices = [item for item in await gpu_items(()) if item.kind == "device"]
    free = await asyncio.to_thread(memory_headroom)
    return gpu_checks(devices, free)


def gpu_checks(devices: Sequence[InventoryItem], free: int | None) -> list[Check]:
    """What the GPUs mean for a snapshot. `free`: bytes that the pod may still use, None without a limit."""
    if not devices:
        return []
    if any(device.details.get("mig") for device in devices):
        return [Check("mig", "blocks")]
    if len(devices) > 1 and not all(SEVERAL_OF in device.name.split() for device in devices):
        models = sorted({device.name for device in devices})
        return [Check("several_gpus", "blocks", {"count": len(devices), "models": models})]
    used = [device.bytes for device in devices if device.bytes is not None]
    if len(used) < len(devices):
        return [Check("vram_unknown", "warns")]
    if free is not None and sum(used) > free:
        return [Check("vram_headroom", "blocks", {"needed": sum(used), "free": free})]
    return []


def memory_headroom(cgroup: Path = CGROUP) -> int | None:
    """Bytes that this container may still use: its limit less what it cannot give back; None without a limit."""
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        current = int((cgroup / "memory.current").read_text())
        lines = (cgroup / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):
        return None
    if not limit.isdigit():
        return None
    stat = dict(line.split(" ", 1) for line in lines if " " in line)
    reclaimable = int(stat.get("inactive_file", "0"))
    return int(limit) - max(0, current - reclaimable)


# --- processes and places -----------------------------------------------------------------------------------------


def _exec_processes() -> list[Check]:
    """Processes whose parent is outside this pid namespace: `kubectl exec` made them, no snapshot has them."""
    names = foreign_roots()
    return [Check("exec_processes", "warns", {"count": len(names), "names": names})] if names else []


def foreign_roots() -> list[str]:
    """Names of programs in this pid namespace that neither are process 1 nor come from it. Blocks."""
    found = []
    for process in psutil.process_iter():
        try:
            # Parent 0 is "outside"; kernel threads of a whole machine have it too, and no command line.
            if process.pid > 1 and process.ppid() == 0 and process.cmdline():
                found.append(process.name())
        except (psutil.Error, OSError):
            continue
    return sorted(set(found))


def places_to_warn_of(places: Sequence[Path]) -> list[Check]:
    """Whether home and checkpoints outlive the pod (S37). Blocks."""
    mounts = read_mounts()
    for place in places:
        mount = mount_of(place.resolve(), mounts)
        if mount is not None and mount.storage == "temporary":
            return [Check("home_not_on_volume", "warns")]
    return []
