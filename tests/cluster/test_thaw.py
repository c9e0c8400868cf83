# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S24: a freeze is noticed whatever the clocks do, and nothing else is taken for one."""

from __future__ import annotations

import base64
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jupyter_pause.workspace.intent import (
    Intent,
    IntentFile,
    KernelPromise,
    OwnerName,
    Sample,
    ServerMark,
    fits,
    mismatches,
)
from jupyter_pause.workspace.thaw import Gap, GapWatch, PodIdentity, Whereabouts, judge, pod_of_token


class TwoClocks:
    """A wall clock and a steady clock that a test moves apart."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
        self.steady = 1000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    async def sleep(self, seconds: float) -> None:
        self.pass_by(seconds, seconds)

    def pass_by(self, wall: float, steady: float) -> None:
        self.wall += timedelta(seconds=wall)
        self.steady += steady


NIGHT = 12 * 3600.0


@pytest.mark.parametrize(
    ("what", "wall", "steady", "frozen"),
    [
        ("a snapshot: the steady clock stood still", NIGHT, 0.0, NIGHT),
        ("both clocks ran on", NIGHT, NIGHT, NIGHT),
        ("another machine's steady clock, started later", NIGHT, -900.0, NIGHT),
        ("the wall clock wakes up with the old time", 0.0, NIGHT, NIGHT),
        ("a wall clock that was set back", -3600.0, 0.0, None),
    ],
)
async def test_s24_a_gap_shows_in_either_clock(what: str, wall: float, steady: float, frozen: float | None) -> None:
    clock = TwoClocks()
    watch = GapWatch(clock)
    await clock.sleep(2.0)
    assert not watch.look(2.0).is_suspicious
    clock.pass_by(2.0 + wall, 2.0 + steady)
    gap = watch.look(2.0)
    assert gap.is_suspicious and gap.frozen_seconds == frozen
    await clock.sleep(2.0)
    assert not watch.look(2.0).is_suspicious, "one gap is told once"


def test_s24_a_slow_tick_means_nothing() -> None:
    clock = TwoClocks()
    watch = GapWatch(clock)
    clock.pass_by(5.0, 5.0)
    assert not watch.look(2.0).is_suspicious


HERE = Whereabouts("pod-1", "ns")
UNKNOWN = Whereabouts(None, "ns")
NOTHING, LONG = Gap(0.1, 0.1), Gap(NIGHT, 0.0)


@pytest.mark.parametrize(
    ("before", "now", "gap", "verdict"),
    [
        (HERE, Whereabouts("pod-2", "ns"), LONG, "thawed"),
        (HERE, Whereabouts("pod-2", "ns"), NOTHING, "thawed"),  # no clock shows anything: the pod does
        (HERE, HERE, LONG, "same_pod"),  # a laptop lid, a blocked loop, a snapshot that lets the pod go on
        (HERE, HERE, NOTHING, "same_pod"),
        (UNKNOWN, UNKNOWN, LONG, "ask"),
        (UNKNOWN, UNKNOWN, NOTHING, "same_pod"),
    ],
)
def test_s24_the_pod_decides_and_a_gap_is_only_a_reason_to_look(
    before: Whereabouts, now: Whereabouts, gap: Gap, verdict: str
) -> None:
    assert judge(before, now, gap) == verdict


def token_for(uid: str | None) -> str:
    claims = {"kubernetes.io": {"pod": {"uid": uid}} if uid else {}}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.signature"


def test_the_pod_is_read_from_the_mounted_token_and_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token_for("uid-1"))
    identity = PodIdentity(file)
    assert identity.look().pod_uid == "uid-1"
    fresh = tmp_path / "new"
    fresh.write_text(token_for("uid-2"))
    os.replace(fresh, file)  # as the kubelet does it
    assert identity.look().pod_uid == "uid-2"
    file.unlink()
    assert identity.look().pod_uid == "uid-2", "a file that is just being replaced says nothing new"


@pytest.mark.parametrize("token", ["", "abc", "a.b.c", token_for(None), "a.%%%.c", "e30.W10.x"])
def test_a_token_that_names_no_pod_is_no_answer(token: str) -> None:
    assert pod_of_token(token) is None


def promise() -> Intent:
    return Intent(
        id="i",
        operation="o",
        owner=OwnerName(kind="kubeflow", namespace="n", name="w"),
        pod_uid="uid-1",
        requested=datetime(2026, 11, 30, 18, 0, tzinfo=UTC),
        stateful=True,
        server_mark=ServerMark().digest,
        kernels=[KernelPromise(kernel_id="k", mark="m", samples=[Sample(name="x", digest="d", bytes=8)])],
    )


def test_a_promise_survives_and_is_owner_only(tmp_path: Path) -> None:
    file = IntentFile(tmp_path)
    assert file.read() is None
    file.write(promise())
    assert (file.path.stat().st_mode & 0o777, file.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    again = IntentFile(tmp_path).read()
    assert (
        again is not None
        and again.model_dump() == promise().model_copy(update={"server_mark": again.server_mark}).model_dump()
    )


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"state": "who knows"}'])
def test_a_promise_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    file = IntentFile(tmp_path)
    file.path.parent.mkdir(mode=0o700)
    file.path.write_text(content)
    file.path.chmod(0o600)
    assert file.read() is None


def test_a_server_mark_is_known_to_its_process_only() -> None:
    mark = ServerMark()
    noted = mark.renew()
    assert mark.digest == noted and ServerMark().digest != noted
    assert fits("00" * 32, noted) is False and fits("no hex", noted) is False and fits(None, noted) is False


def test_samples_that_differ_or_are_gone_are_named() -> None:
    before = [Sample(name="same", digest="1"), Sample(name="changed", digest="2"), Sample(name="gone", digest="3")]
    now = [{"name": "same", "digest": "1"}, {"name": "changed", "digest": "9"}, {"name": "new", "digest": "4"}]
    assert mismatches(before, now) == ["changed", "gone"]
