# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which outcome is said for which proof, what a pod's start is called, and what stands in the way before the click."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.owners.base import ResumedFrom
from jupyter_pause.owners.kubeflow_checks import gpu_checks, memory_headroom
from jupyter_pause.owners.kubeflow_state import LAST_CHECKPOINT, RESTORE_ANNOTATION, newest_time, origin_of
from jupyter_pause.states import InventoryItem, KernelProof, Reason
from jupyter_pause.workspace.intent import Intent, KernelPromise, OwnerName
from jupyter_pause.workspace.proving import cold_report, judge

GOOD = KernelProof(kernel="a", mark=True, compared=2)
OTHER = KernelProof(kernel="b", mark=False)
DAMAGED = KernelProof(kernel="c", mark=True, compared=2, mismatched=["x"])
FOREIGN = KernelProof(kernel="d")
SAID = ResumedFrom(restored=True, snapshot="s")
SILENT = ResumedFrom(restored=None, reason=Reason(code="not_restored"))
CONTRADICTS = ResumedFrom(restored=False, snapshot="s", reason=Reason(code="other_snapshot"))


@pytest.mark.parametrize(
    ("server", "kernels", "said", "outcome", "codes"),
    [
        (True, [GOOD], SAID, "restored", set()),
        (True, [], SAID, "restored", set()),
        (True, [GOOD], SILENT, "restored", {"restore_not_confirmed"}),
        (True, [GOOD], None, "restored", {"restore_not_confirmed"}),
        (True, [GOOD], CONTRADICTS, "partial", {"other_snapshot"}),
        (True, [GOOD, OTHER], SAID, "partial", {"mark_mismatch"}),
        (True, [GOOD, DAMAGED], SAID, "partial", {"samples_differ"}),
        (True, [GOOD, FOREIGN], SAID, "restored", {"marks_unknown"}),
        (False, [GOOD], SAID, "partial", {"mark_mismatch"}),
        (False, [OTHER], SAID, "fresh", {"mark_mismatch"}),
        (False, [], SAID, "fresh", {"mark_mismatch"}),
    ],
)
def test_s20_only_marks_make_it_restored(server: bool, kernels: Any, said: Any, outcome: str, codes: set[str]) -> None:
    found, warnings = judge(server, kernels, said)
    assert (found, {warning.code for warning in warnings}) == (outcome, codes)


def pod(wanted: str | None, condition: dict[str, str] | None) -> dict[str, Any]:
    annotations = {RESTORE_ANNOTATION: wanted} if wanted else {}
    conditions = [{"type": "PodRestored", **condition}] if condition else []
    return {"metadata": {"name": "p", "annotations": annotations}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("wanted", "condition", "expected"),
    [
        ("snap-1", {"status": "True", "message": "restored from snap-1"}, (True, "snap-1", None)),
        ("snap-1", {"status": "True", "message": "restored from ns/snap-1."}, (True, "snap-1", None)),
        ("snap-1", {"status": "True", "message": "restored from snap-12"}, (False, "snap-1", "other_snapshot")),
        ("snap-1", {"status": "True", "message": "restored from old-snap-1"}, (False, "snap-1", "other_snapshot")),
        ("snap-1", {"status": "True", "message": "restored from snap-1.2"}, (False, "snap-1", "other_snapshot")),
        ("snap-1", {"status": "False", "reason": "ImageMismatch"}, (False, "snap-1", "restore_refused")),
        ("snap-1", None, (None, "snap-1", "not_restored")),
        (None, {"status": "True", "message": "restored from snap-1"}, (None, None, "snapshot_not_known")),
        (None, None, (None, None, "no_snapshot")),
    ],
)
def test_s20_what_the_cluster_says_about_a_start(wanted: Any, condition: Any, expected: Any) -> None:
    found = origin_of({"metadata": {}}, pod(wanted, condition))
    assert (found.restored, found.snapshot, found.code) == expected


def test_s20_the_workspace_names_the_snapshot_where_the_pod_does_not() -> None:
    workspace = {"metadata": {"annotations": {LAST_CHECKPOINT: "snap-1"}}}
    found = origin_of(workspace, pod(None, {"status": "True", "message": "snap-1"}))
    assert (found.restored, found.snapshot) == (True, "snap-1")
    assert origin_of(workspace, None).code == "pod_not_readable"


def test_s24_a_clock_that_is_behind_the_cluster_shows() -> None:
    thing = {"status": {"conditions": [{"lastTransitionTime": "2026-11-30T18:00:00Z"}]}}
    other = {"metadata": {"managedFields": [{"time": "2026-11-30T18:05:00Z"}]}}
    assert newest_time(thing, other, None) == datetime(2026, 11, 30, 18, 5, tzinfo=UTC)
    assert newest_time(None, {}) is None


def test_a_cold_start_offers_only_checkpoints_that_are_there() -> None:
    asked = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
    promises = [
        KernelPromise(kernel_id="a", checkpoint="1", mark="m"),
        KernelPromise(kernel_id="b", checkpoint="2", mark="m"),
        KernelPromise(kernel_id="c", paused=True, checkpoint="1"),
    ]
    intent = Intent(
        id="i",
        operation="o",
        owner=OwnerName(kind="kubeflow", name="w"),
        requested=asked,
        stateful=True,
        server_mark="x",
        kernels=promises,
    )
    report = cold_report(intent, asked + timedelta(hours=14), {"1"})
    assert (report.outcome, report.via, report.paused_seconds) == ("fresh", None, 50400.0)
    assert [(k.kernel, k.mark, k.checkpoint) for k in report.kernels] == [
        ("a", False, "1"),
        ("b", False, None),
        ("c", None, "1"),
    ]
    assert cold_report(intent, asked - timedelta(hours=1), set()).paused_seconds is None, "S24: a clock that is behind"


def gpu(name: str, used: int | None, **details: Any) -> InventoryItem:
    return InventoryItem(name=name, kind="device", bytes=used, fate="unknown", details=details)


GIB = 1 << 30


@pytest.mark.parametrize(
    ("devices", "free", "expected"),
    [
        ([], 0, None),
        ([gpu("Tesla T4", 4 * GIB)], 6 * GIB, None),
        ([gpu("Tesla T4", 4 * GIB)], None, None),
        ([gpu("Tesla T4", 4 * GIB)], 3 * GIB, ("vram_headroom", "blocks")),
        ([gpu("Tesla T4", None)], 3 * GIB, ("vram_unknown", "warns")),
        ([gpu("NVIDIA A100", 1, mig=True)], 6 * GIB, ("mig", "blocks")),
        ([gpu("NVIDIA L4", GIB), gpu("NVIDIA L4", GIB)], 6 * GIB, None),
        ([gpu("Tesla T4", GIB), gpu("Tesla T4", GIB)], 6 * GIB, ("several_gpus", "blocks")),
    ],
)
def test_what_the_gpus_mean_for_a_snapshot(devices: Any, free: int | None, expected: Any) -> None:
    found = gpu_checks(devices, free)
    assert [(check.code, check.severity) for check in found] == ([expected] if expected else [])


def test_the_room_for_gpu_memory_is_read_from_the_control_group(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 250\n")
    assert memory_headroom(tmp_path) == 550, "what the page cache can give back counts as free"
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_headroom(tmp_path) is None
    assert memory_headroom(tmp_path / "nothing") is None
