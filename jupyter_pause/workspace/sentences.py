# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What is said about a whole workspace, as one English sentence per code; the frontend has its own, translated ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_pause.states import Reason

SENTENCES = {
    # before the click
    "missing_right": "This account may not {verb} {resource} in namespace {namespace}. Ask for that right.",
    "addon_missing": "No snapshot add-on prepared this pod: a pause keeps files and kernel checkpoints, not memory.",
    "snapshots_off": "Snapshots are switched off for this workspace: a pause keeps files and kernel checkpoints.",
    "not_gvisor": "This pod does not run in gVisor, so no snapshot of its memory can be made.",
    "pod_not_readable": "This account may not read its own pod, so whether a pause makes a snapshot is not known.",
    "storage_not_ready": "The place for snapshots ({name}) is not ready.",
    "storage_unknown": "Whether the place for snapshots ({name}) is ready may not be read.",
    "tpu": "Pods with a TPU are never snapshotted: files and kernel checkpoints are kept, memory is not.",
    "mig": "This pod has a slice of a GPU (MIG), which snapshots do not support. Pause kernels one by one instead.",
    "several_gpus": "Snapshots do not support {count} GPUs of this model together. Pause kernels one by one instead.",
    "vram_headroom": "GPU memory is copied through the pod's memory: {needed} bytes are needed, {free} are free.",
    "vram_unknown": "How much GPU memory is in use cannot be read; a snapshot needs as much free memory in the pod.",
    "home_not_on_volume": "The home folder or the checkpoint folder is not on a volume: after a cold start it is gone.",
    "environment_on_container_disk": "The environment of {names} is on the container's own disk: kept in a snapshot, "
    "gone after a cold start unless the image has it.",
    "exec_processes": "{count} program(s) started with kubectl exec are not part of a snapshot and will be gone.",
    "no_snapshot": "A pause here makes no snapshot: files and kernel checkpoints are kept, memory is not.",
    "hub_scope_missing": "This server's token may not stop it: an administrator adds {scope} to {setting}.",
    "hub_pending": "JupyterHub is doing something else with this server ({detail}).",
    "several_replicas": "The StatefulSet has {count} replicas; only one of a single pod can be paused from inside.",
    "not_looked_yet": "The cluster has not been asked yet.",
    # after it came back
    "restore_not_confirmed": "The cluster does not say that it restored the snapshot; the marks in memory prove it.",
    "other_snapshot": "The cluster says that this pod was restored from another snapshot than the one of this pause.",
    "restore_refused": "The cluster says that restoring the snapshot failed ({why}).",
    "clock_jumped": "The clock jumped by {seconds} seconds: timeouts may fire, tokens and leases may have expired.",
    "clock_behind": "The clock is at least {seconds} seconds behind the cluster's.",
    "random_state_repeats": "Random numbers go on where they were; restored twice from one snapshot, they repeat.",
    "connections_closed": "{count} connection(s) to other machines were closed. Open them again before use.",
    "cold_start": "The pod started cold: the same files, new processes. What was in memory did not come back.",
    "mark_mismatch": "A kernel's mark is not the one from before the pause: it is not the same process.",
    "marks_unknown": "Some kernels have no mark that was noted before the pause; nothing is claimed about them.",
    "samples_differ": "Some values are not what they were before the pause.",
    "tokens_renewed": "Token variables of kernels were renewed from the live server.",
    "tokens_stale": "Token variables in the environment are from before the pause and may have expired.",
    "gpu_changed": "The GPUs are not the ones from before the pause.",
}


def reason(code: str, params: Mapping[str, Any] | None = None) -> Reason:
    """A reason with its sentence, if there is one here."""
    values = dict(params or {})
    words = {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in values.items()}
    try:
        message = SENTENCES.get(code, "").format(**{"why": "no reason given", **words})
    except (KeyError, IndexError):
        message = ""
    return Reason(code=code, message=message, params=values)
