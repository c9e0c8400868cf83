# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Deriving a Workspace's state from its objects: one table, no cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jupyter_pause.owners.kubeflow_state import ACTIVE_GATE, PREFIX, derive

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)


def at(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def workspace(paused: bool, state: str, checkpoint: str | None = None, **more: Any) -> dict[str, Any]:
    annotations = {PREFIX + "enabled": "true"}
    if checkpoint:
        annotations[PREFIX + "checkpoint-state"] = checkpoint
        annotations[PREFIX + "checkpoint-started-at"] = at(1)
    return {
        "metadata": {"name": "w", "annotations": annotations, "generation": more.pop("generation", 2)},
        "spec": {"paused": paused},
        "status": {"state": state, **more},
    }


def pod(phase: str, *conditions: tuple[str, str], waiting: str | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "ws-w-0", "uid": "u1", "creationTimestamp": at(12), **metadata},
        "spec": {"readinessGates": [{"conditionType": ACTIVE_GATE}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": t, "status": s, "lastTransitionTime": at(12)} for t, s in conditions],
            "containerStatuses": [{"state": {"waiting": {"reason": waiting}}}] if waiting else [],
        },
    }


def event(reason: str, minutes: float) -> dict[str, Any]:
    return {"reason": reason, "message": "why", "lastTimestamp": at(minutes)}


UNSCHEDULABLE = pod("Pending", ("PodScheduled", "False"))
SCHEDULED = pod("Pending", ("PodScheduled", "True"))
READY = pod("Running", ("PodScheduled", "True"), ("Ready", "True"))
UNREADY = pod("Running", ("PodScheduled", "True"), ("Ready", "False"))

TABLE = [
    ("running", workspace(False, "Running"), None, [], ("running", None, None, None)),
    ("running, with its pod", workspace(False, "Running"), READY, [], ("running", None, None, None)),
    ("snapshot", workspace(False, "Unknown", "Checkpointing"), UNREADY, [], ("pausing", "snapshotting", None, None)),
    ("snapshot done", workspace(True, "Running", "Ready"), UNREADY, [], ("pausing", "releasing", None, None)),
    ("pod goes", workspace(True, "Terminating"), READY, [], ("pausing", "releasing", None, None)),
    ("paused", workspace(True, "Paused", "Ready"), None, [], ("paused", None, None, None)),
    ("asked for again", workspace(False, "Paused"), None, [], ("resuming", "starting", None, None)),
    (
        "S14 an Error that is only a missing node",
        workspace(False, "Error"),
        pod("Pending", ("PodScheduled", "False"), creationTimestamp=at(1)),
        [event("TriggeredScaleUp", 1)],
        ("waiting", None, "node_coming", None),
    ),
    (
        "S14 no node can come",
        workspace(False, "Error"),
        UNSCHEDULABLE,
        [event("TriggeredScaleUp", 9), event("FailedScaleUp", 3)],
        ("waiting", None, "no_scale_up", None),
    ),
    (
        "S14 the autoscaler has been silent for ten minutes",
        workspace(False, "Error"),
        UNSCHEDULABLE,
        [],
        ("waiting", None, "no_scale_up", None),
    ),
    (
        "S16 the volume hangs on another node",
        workspace(False, "Error"),
        SCHEDULED,
        [event("FailedAttachVolume", 2)],
        ("waiting", None, "volume_attached_elsewhere", None),
    ),
    (
        "S16 the volume came after all",
        workspace(False, "Pending"),
        SCHEDULED,
        [event("FailedAttachVolume", 5), event("SuccessfulAttachVolume", 1), event("Pulling", 1)],
        ("waiting", None, "pulling_image", None),
    ),
    (
        "image is here",
        workspace(False, "Pending"),
        SCHEDULED,
        [event("Pulled", 1)],
        ("resuming", "starting", None, None),
    ),
    (
        "a real error",
        workspace(False, "Error"),
        pod("Pending", ("PodScheduled", "True"), waiting="ImagePullBackOff"),
        [],
        ("failed", None, None, "pod_broken"),
    ),
    ("restoring", workspace(False, "Pending", "Restoring"), UNREADY, [], ("resuming", "restoring", None, None)),
    (
        "restoring waits for a node first",
        workspace(False, "Error", "Restoring"),
        pod("Pending", ("PodScheduled", "False"), creationTimestamp=at(2)),
        [event("TriggeredScaleUp", 1)],
        ("waiting", None, "node_coming", None),
    ),
    ("Ready turned False", workspace(False, "Unknown"), UNREADY, [], ("unknown", None, None, "pod_not_ready")),
    ("an error without its pod", workspace(False, "Error"), None, [], ("unknown", None, None, "workspace_error")),
    (
        "the old pod is still going",
        workspace(False, "Terminating"),
        pod("Running", ("Ready", "True"), deletionTimestamp=at(0)),
        [],
        ("resuming", "starting", None, None),
    ),
    ("gone", None, None, [], ("unknown", None, None, "workspace_missing")),
]


@pytest.mark.parametrize(("what", "owner", "its_pod", "events", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_state_of_a_workspace(what: str, owner: Any, its_pod: Any, events: Any, expected: Any) -> None:
    view = derive(owner, its_pod, events, NOW)
    waiting = view.waiting.code if view.waiting else None
    error = view.error.code if view.error else None
    assert (view.state, view.phase, waiting, error) == expected


@pytest.mark.parametrize("stale", ["Running", "Paused", "Error"])
def test_s15_a_status_older_than_the_specification_never_flips_the_state_back(stale: str) -> None:
    pausing = derive(workspace(True, stale, generation=3, observedGeneration=2), None, [], NOW)
    assert (pausing.state, pausing.phase) == ("pausing", "releasing")
    resuming = derive(workspace(False, stale, generation=4, observedGeneration=3), None, [], NOW)
    assert (resuming.state, resuming.phase) == ("resuming", "starting")


def test_s15_after_the_status_caught_up_it_counts() -> None:
    view = derive(workspace(True, "Paused", generation=3, observedGeneration=3, pauseTime=1764525600000), None, [], NOW)
    assert view.state == "paused" and view.since == datetime(2025, 11, 30, 18, 0, tzinfo=UTC)


def test_whether_a_pause_makes_a_snapshot_is_read_from_the_pod() -> None:
    bare = {**READY, "spec": {}}
    assert derive(workspace(False, "Running"), READY, [], NOW).stateful is True
    assert derive(workspace(False, "Running"), bare, [], NOW).stateful is False
    assert derive(workspace(False, "Running"), None, [], NOW).stateful is None


def test_times_come_from_the_cluster() -> None:
    view = derive(workspace(False, "Running", "Restoring", pauseTime=0), READY, [], NOW)
    assert set(view.timeline) == {"snapshot_started", "pod_created", "scheduled", "ready"}
