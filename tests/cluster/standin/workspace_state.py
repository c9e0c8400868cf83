# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""How Kubeflow's controller computes a Workspace's state from its pod: facts/cluster.md section 2, "State is computed
from the pod", and the order of its public source (workspace_controller.go, branch notebooks-v2)."""

from __future__ import annotations

from collections.abc import Iterable

from tests.cluster.rest import Object

from .api import condition, is_true

#: Reasons of a PodScheduled condition that are errors, and what the state message says of them.
UNSCHEDULED = {
    "Unschedulable": "Workspace Pod is unschedulable: {}",
    "SchedulingGated": "Workspace Pod is waiting for scheduling gate: {}",
    "SchedulerError": "Workspace Pod has scheduler error: {}",
}
WAITING = {
    "CrashLoopBackOff": "Workspace Container is not running (CrashLoopBackOff)",
    "ImagePullBackOff": "Workspace Container is not running (ImagePullBackOff)",
}


def state(paused: bool, pod: Object | None, events: Iterable[Object]) -> tuple[str, str]:
    """State and state message.

    Args:
        paused: `spec.paused`.
        pod: the StatefulSet's pod, None when there is none.
        events: of this pod.
    """
    if pod is None:
        return ("Paused", "Workspace is paused") if paused else ("Unknown", "Workspace is in an unknown state")
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating", "Workspace is terminating"
    phase = pod.get("status", {}).get("phase")
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled["status"] != "True" and scheduled.get("reason") in UNSCHEDULED:
        return "Error", UNSCHEDULED[scheduled["reason"]].format(scheduled.get("message", ""))
    if phase == "Running" and is_true(pod, "Ready"):
        return "Running", "Workspace is running"
    waiting = _waiting_reason(pod)
    if waiting in WAITING:
        return "Error", WAITING[waiting]
    warning = _last_warning(events)
    if warning is not None:
        return "Error", f"Workspace Pod has warning event: {warning['message']}"
    if phase == "Pending":
        return "Pending", "Workspace is pending"
    return "Unknown", "Workspace is in an unknown state"


def _waiting_reason(pod: Object) -> str:
    statuses = pod.get("status", {}).get("containerStatuses", [])
    main: Object = next((status for status in statuses if status["name"] == "main"), {})
    reason: str = main.get("state", {}).get("waiting", {}).get("reason", "")
    return reason


def _last_warning(events: Iterable[Object]) -> Object | None:
    warnings = [event for event in events if event["type"] == "Warning"]
    return max(warnings, key=lambda event: str(event.get("lastTimestamp") or ""), default=None)
