# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A Workspace started without its snapshot: the JSON patches, and which pod stands in the way. No input, no output.

The snapshot add-on (gke-labs/workspaces, providers/gke/internal/snapshot/webhook.go) tells a new pod what to be
restored from by the Workspace's annotation `last-checkpoint-name`, read when the pod is made: without it the pod starts
fresh. A pause goes straight through, without a snapshot, where no pod runs, and where `checkpoint-state` is `Ready`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_pause.owners.kubeflow_state import (
    CHECKPOINT_STARTED_AT,
    CHECKPOINT_STATE,
    LAST_CHECKPOINT,
    PodFacts,
)

Object = Mapping[str, Any]
Operations = list[dict[str, Any]]


def annotation_path(name: str) -> str:
    """The JSON pointer of an annotation (RFC 6901)."""
    return "/metadata/annotations/" + name.replace("~", "~0").replace("/", "~1")


def cold_start_operations(workspace: Object) -> Operations | None:
    """Forget which snapshot the next pod is to be restored from, and unpause, in one request.

    Each value that is taken away is tested first, so that a snapshot made meanwhile is never the one that is forgotten.
    None: it is not paused.
    """
    if not workspace["spec"].get("paused"):
        return None
    annotations = workspace["metadata"].get("annotations") or {}
    operations: Operations = []
    for name in (LAST_CHECKPOINT, CHECKPOINT_STATE, CHECKPOINT_STARTED_AT):
        if name in annotations:
            path = annotation_path(name)
            operations.append({"op": "test", "path": path, "value": annotations[name]})
            operations.append({"op": "remove", "path": path})
    operations.append({"op": "replace", "path": "/spec/paused", "value": False})
    return operations


def pause_again_operations(workspace: Object, *, broken: bool) -> Operations | None:
    """Pause what was asked for again and does not run. None: it is paused.

    Args:
        broken: its container crashes again and again. Such a pod's phase is Running, so the add-on would hold the pause
            back for a snapshot of it that never comes, unless it is told that the snapshot is there, which it is: the
            one that it was to be restored from is deleted only once the pod is ready.
    """
    if workspace["spec"].get("paused"):
        return None
    annotations = workspace["metadata"].get("annotations") or {}
    operations: Operations = []
    if broken and LAST_CHECKPOINT in annotations:
        path = annotation_path(LAST_CHECKPOINT)
        operations.append({"op": "test", "path": path, "value": annotations[LAST_CHECKPOINT]})
        operations.append({"op": "add", "path": annotation_path(CHECKPOINT_STATE), "value": "Ready"})
    operations.append({"op": "add", "path": "/spec/paused", "value": True})
    return operations


def restore_operations(workspace: Object, snapshot: str) -> Operations | None:
    """Have the next pod restored from this snapshot, and unpause. None: it is not paused."""
    if not workspace["spec"].get("paused"):
        return None
    operations: Operations = []
    if not workspace["metadata"].get("annotations"):
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    operations.append({"op": "add", "path": annotation_path(LAST_CHECKPOINT), "value": snapshot})
    operations.append({"op": "add", "path": annotation_path(CHECKPOINT_STATE), "value": "Ready"})
    operations.append({"op": "replace", "path": "/spec/paused", "value": False})
    return operations


def runs(pod: Object | None) -> bool:
    """Whether a container of the pod runs: it has memory of its own, or is being given its memory back."""
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or []
    return any((status.get("state") or {}).get("running") is not None for status in statuses)


def crashes(pod: Object | None) -> bool:
    """Whether the pod's phase is Running although its container ends as soon as it starts."""
    facts = PodFacts.of(pod)
    return facts is not None and facts.phase == "Running" and not runs(pod)
