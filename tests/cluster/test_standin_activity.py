# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in's idle rule against facts/cluster.md section 2, "Idle rule"."""

from __future__ import annotations

import asyncio
import datetime as dt

import pytest

from .rest import Object
from .standin import activity
from .standin.api import milliseconds
from .standin.cluster import StandIn
from .standin.http_server import Answer, Head, port_of, serve
from .test_standin_kubeflow import PROGRAM

HOUR = 3600 * 1000


def kind(*rules: Object) -> Object:
    """A WorkspaceKind as far as the idle rule looks at it."""
    probe = {"minProbeIntervalSeconds": 100, "probeIntervalSeconds": 300, "jupyter": {"lastActivity": True}}
    return {"spec": {"podTemplate": {"activityProbe": probe}, "activityRules": list(rules)}}


def rule(pause: bool = True, match: Object | None = None, **config: int) -> Object:
    made: Object = {"config": {"secondsSinceActive": 1800, **config}, "effect": {"pauseWorkspace": pause}}
    return made if match is None else {**made, "match": match}


def look(idle_hours: float, running_hours: float, of: Object, *, status: int = 200) -> activity.Verdict:
    """One look at a server that was used so many hours ago."""
    at = dt.datetime.now(dt.UTC) - dt.timedelta(hours=idle_hours)
    asked: list[str] = []

    async def answer(head: Head, _: bytes) -> Answer:
        asked.append(head.target)
        return Answer(status, {"last_activity": at.isoformat().replace("+00:00", "Z")})

    async def run() -> activity.Verdict | None:
        server = await serve(answer)
        try:
            running_since = milliseconds() - int(running_hours * HOUR)
            workspace = {"status": {"lastRunningTime": running_since}}
            labels = {"namespace": {}, "podConfig": {"accelerator": "cpu"}}
            return await activity.look(workspace, of, {}, f"http://127.0.0.1:{port_of(server)}/base/", labels)
        finally:
            server.close()

    verdict = asyncio.run(run())
    assert verdict is not None and asked == ["/base/api/status"]
    return verdict


def test_idle_long_enough_is_paused() -> None:
    """ "reads `GET /api/status` field `last_activity` and believes it unconditionally"."""
    verdict = look(1, 2, kind(rule()))
    assert verdict.pause
    assert verdict.activity["lastProbe"]["result"] == "Success"
    assert verdict.activity["rules"]["pauseWorkspace"]["eligibleAfter"] < milliseconds()


def test_used_a_moment_ago_is_not_paused() -> None:
    """`eligibleAfter` says when it would be."""
    verdict = look(0, 2, kind(rule()))
    assert not verdict.pause
    assert verdict.activity["rules"]["pauseWorkspace"]["eligibleAfter"] > milliseconds()


def test_activity_of_an_earlier_run_does_not_count() -> None:
    """The public source: clamped to `lastRunningTime`."""
    assert not look(72, 0.1, kind(rule())).pause


def test_min_running_seconds() -> None:
    """ "config{secondsSinceActive, minRunningSeconds}"."""
    assert not look(1, 2, kind(rule(minRunningSeconds=3 * 3600))).pause


def test_first_match_wins() -> None:
    """ "first match wins"; "effect{pauseWorkspace: bool}"."""
    never = rule(False, {"matchPodConfig": {"selector": {"matchLabels": {"accelerator": "cpu"}}}})
    other = rule(False, {"matchPodConfig": {"selector": {"matchLabels": {"accelerator": "gpu"}}}})
    assert not look(1, 2, kind(never, rule())).pause
    assert look(1, 2, kind(other, rule())).pause


def test_a_failed_probe_never_pauses() -> None:
    """The public source: only right after a fresh probe that succeeded; asked again sooner."""
    verdict = look(1, 2, kind(rule()), status=403)
    assert not verdict.pause
    assert (verdict.activity["lastProbe"]["result"], verdict.again) == ("Failure", 100)


def test_the_controller_probes_what_runs(standin: StandIn) -> None:
    """`status.activity{lastActivity, lastUpdate, lastProbe{result}}` in milliseconds."""
    standin.create_workspace("w", PROGRAM, {"LAST_ACTIVITY": "2999-01-01T00:00:00Z"}, stateful=False, probe_seconds=1)

    def probed() -> Object | None:
        found: Object = standin.workspace("w").get("status", {}).get("activity", {})
        return found if found.get("lastProbe", {}).get("result") == "Success" else None

    found = standin.wait_for(probed, "a probe that succeeded")
    assert found["lastActivity"] == pytest.approx(dt.datetime(2999, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)
    assert found["lastUpdate"] > 0
