# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What is promised before a pause, and what is said after a resume: pure functions of objects."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_pause.cli.workspaces_keep import what_a_pause_keeps
from jupyter_pause.cli.workspaces_outcome import outcome_of
from jupyter_pause.owners.kubeflow_state import ACTIVE_GATE, ENABLED, LAST_CHECKPOINT, RESTORE_ANNOTATION

Object = dict[str, Any]
ON = {ENABLED: "true"}
OFF = {ENABLED: "false"}


def workspace(annotations: Object | None = None, kind: str = "jupyterlab") -> Object:
    return {"metadata": {"name": "ada", "annotations": annotations}, "spec": {"kind": kind}}


def kind(annotations: Object | None = None) -> Object:
    return {"metadata": {"name": "jupyterlab", "annotations": annotations}}


def pod(*, prepared: bool = True, phase: str = "Running", **container: Any) -> Object:
    spec: Object = {"containers": [{"name": "main", "image": "lab:1", **container}]}
    if prepared:
        spec |= {"runtimeClassName": "gvisor", "readinessGates": [{"conditionType": ACTIVE_GATE}]}
    return {"metadata": {"name": "ada-0"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("a_workspace", "a_kind", "a_pod", "memory", "code"),
    [
        (workspace(ON), kind(), pod(), "snapshot", None),
        (workspace(), kind(ON), pod(), "snapshot", None),
        # The Workspace's own word wins over its kind's.
        (workspace(OFF), kind(ON), pod(), "files only", "snapshots_off"),
        (workspace(), kind(), pod(), "files only", "snapshots_off"),
        (workspace(ON), kind(), pod(prepared=False), "files only", "pod_not_prepared"),
        (workspace(ON), kind(), pod(resources={"limits": {"google.com/tpu": "4"}}), "files only", "tpu"),
        (workspace(ON), kind(), pod(phase="Pending"), "files only", "nothing_runs"),
        (workspace(ON), kind(), None, "files only", "nothing_runs"),
        (workspace({**ON, LAST_CHECKPOINT: "s1"}), kind(), None, "unknown", "earlier_snapshot"),
        (workspace(ON, "codeserver"), kind(), pod(), "files only", "vscode"),
        (workspace(ON), kind(), pod(image="reg/VSCode-python:1"), "files only", "vscode"),
        # A kind that may not be read: the pod says whether the add-on prepared it.
        (workspace(), None, pod(), "snapshot", None),
        (workspace(), None, pod(prepared=False), "unknown", "kind_not_readable"),
        (workspace(OFF), None, pod(), "files only", "snapshots_off"),
    ],
)
def test_what_a_pause_keeps(a_workspace: Object, a_kind: Any, a_pod: Any, memory: str, code: str | None) -> None:
    keeps = what_a_pause_keeps(a_workspace, a_kind, a_pod)
    assert (keeps.memory, keeps.code) == (memory, code)
    assert bool(keeps.why) == (code is not None)


def resumed(status: str | None, message: str = "", wanted: str | None = None) -> Object:
    conditions = [] if status is None else [{"type": "PodRestored", "status": status, "message": message}]
    annotations = {RESTORE_ANNOTATION: wanted} if wanted else {}
    return {"metadata": {"name": "ada-0", "annotations": annotations}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("a_pod", "expected", "outcome", "code"),
    [
        (resumed("True", "Restored from snapshot ws-1."), "ws-1", "restored", None),
        (resumed("True", "ws-1", wanted="ws-1"), None, "restored", None),
        # One whose name only begins or ends like it is another.
        (resumed("True", "restored from ws-10"), "ws-1", "fresh", "other_snapshot"),
        (resumed("True", "restored from my-ws-1"), "ws-1", "fresh", "other_snapshot"),
        (resumed("True", "restored from ws-1.2"), "ws-1", "fresh", "other_snapshot"),
        (resumed("False", "ws-1: hash differs"), "ws-1", "fresh", "restore_refused"),
        (resumed("Unknown", "ws-1"), "ws-1", "unknown", "restore_not_known"),
        (resumed(None), "ws-1", "fresh", "not_restored"),
        (resumed(None), None, "fresh", "no_snapshot"),
        (resumed("True", "restored from ws-1"), None, "unknown", "snapshot_not_known"),
        (None, "ws-1", "unknown", "pod_not_readable"),
    ],
)
def test_s20_restored_only_when_the_condition_names_the_snapshot(
    a_pod: Any, expected: str | None, outcome: str, code: str | None
) -> None:
    found = outcome_of(a_pod, expected)
    assert (found.outcome, found.code) == (outcome, code)
