# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""When pausing a whole workspace goes wrong the person gets the pod again, and is told why."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from .standin.cluster import StandIn
from .workspace_driver import API, SECRET_CELL, Workspace, resume_kernel, workspace

#: Seconds after which a snapshot counts as overdue in these tests.
LIMIT = 4


def ended(w: Workspace, operation: dict[str, Any]) -> dict[str, Any]:
    """The operation once it is over; the gate is closed for a while, so the server is away."""
    state = w.wait_for(
        lambda s: s["workspace"]["operation"] is None and s["workspace"]["state"] == "running", "it ends"
    )
    assert state["operation"] is None
    return w.operation(operation["id"])


@pytest.mark.parametrize(
    ("fault", "value", "code"),
    [
        ("snapshot_never_ready", True, "snapshot_overdue"),
        ("snapshot_fails", "no room in the bucket", "snapshot_failed"),
    ],
)
def test_a_snapshot_that_does_not_come_is_taken_back_and_everything_goes_on(
    standin: StandIn, fault: str, value: Any, code: str
) -> None:
    """Weak spot 1: nothing but the process inside can open the gate again."""
    with workspace(standin, f"--PauseApp.snapshot_timeout={LIMIT}") as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        setattr(standin.faults, fault, value)
        record = ended(w, w.ask())
        assert record["state"] == "failed" and record["error"]["code"] == code, record
        if code == "snapshot_failed":
            assert "no room in the bucket" in record["error"]["params"]["detail"]
        state = w.state()
        assert state["workspace"]["reason"]["code"] == code and state["can_pause"], state
        assert [row["state"] for row in state["kernels"]] == ["running"]
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before, "the kernel is no longer held"
        annotations = standin.workspace("w")["metadata"]["annotations"]
        assert "podsnapshot.gke.kubeflow.org/checkpoint-state" not in annotations

        standin.faults.clear()  # a failure can be left: the next pause works
        w.ask()
        w.paused()
        w.resume()
        assert w.report()["outcome"] == "restored"
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before


def test_a_pause_that_is_held_can_still_be_cancelled(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        standin.faults.snapshot_never_ready = True
        standin.faults.gate_never_false = True  # so that the tab is still there to cancel
        operation = w.ask()
        w.wait_for(lambda s: s["workspace"]["phase"] == "snapshotting", "the snapshot is waited for")
        again = w.ask()
        assert (again["code"], again["operation"]) == ("operation_in_progress", operation["id"]), again
        w.tab.request("DELETE", API + f"operations/{operation['id']}")
        assert ended(w, operation)["state"] == "cancelled"
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before


def test_with_the_addon_down_the_pod_goes_at_once_and_what_was_saved_is_offered(standin: StandIn) -> None:
    """Weak spot 7: both webhooks are optional, so nothing holds the pause back."""
    with workspace(standin) as w:
        kernel = w.notebook()
        printed = w.tab.execute(kernel, SECRET_CELL).split()
        standin.faults.addon_down = True
        w.ask()
        w.paused()
        w.resume()
        report = w.report()
        assert report["outcome"] == "fresh" and report["kernels"][0]["checkpoint"], report
        [row] = w.state()["kernels"]
        assert (row["id"], row["state"]) == (kernel, "paused")
        assert printed


def test_a_server_killed_in_the_middle_is_followed_by_one_that_tells_the_truth(standin: StandIn) -> None:
    """The dead server's promise is void; the pause that the owner still holds is joined, with marks of the living."""
    with workspace(standin) as w:
        kernel = w.notebook()
        printed = w.tab.execute(kernel, SECRET_CELL).split()
        standin.faults.snapshot_never_ready = True
        standin.faults.gate_never_false = True
        w.ask()
        w.wait_for(lambda s: s["workspace"]["phase"] == "snapshotting", "the snapshot is waited for")
        kill_container(standin)
        state = w.wait_for(
            lambda s: s["workspace"] and s["workspace"]["phase"] == "snapshotting" and s["operation"],
            "the next server has joined the pause",
        )
        [row] = state["kernels"]
        assert (row["id"], row["state"]) == (kernel, "paused") and row["checkpoint"], "its process died with the server"
        assert state["workspace"]["last_resume"] is None, "nothing is claimed about a pause that was cut short"

        w.tab.request("DELETE", API + f"operations/{state['operation']['id']}")
        w.wait_for(lambda s: s["workspace"]["state"] == "running" and s["operation"] is None, "it was taken back")
        resume_kernel(w, kernel)
        assert w.tab.execute(kernel, "print(token)").strip() == printed[0]


def test_a_server_killed_before_anybody_was_asked_leaves_a_workspace_that_runs(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        w.tab.execute(kernel, "x = 1")
        kill_container(standin)
        state = w.wait_for(lambda s: s["workspace"] and not w.is_looking(s), "the next server knows its owner")
        assert state["workspace"]["state"] == "running" and state["workspace"]["last_resume"] is None
        assert state["can_pause"], state


def kill_container(standin: StandIn) -> None:
    """SIGKILL of process 1: everything in the container dies, and the kubelet starts it anew in the same pod."""
    pod = standin.pod("w")
    assert pod is not None
    process = standin.pod_process(pod["metadata"]["name"])
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    psutil.wait_procs([process], timeout=30)


def test_s48_while_the_api_server_is_away_the_last_state_is_shown_and_the_page_stays_quick(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        standin.faults.api_unreachable = True
        state = w.wait_for(lambda s: s["workspace"]["reason"], "that it is away is told")
        assert state["workspace"]["reason"]["code"] == "cluster_unreachable"
        assert state["workspace"]["state"] == "running" and state["workspace"]["observed_at"], (
            "last known, with its age"
        )
        refused = w.ask()
        assert (refused["status"], refused["code"]) == (409, "workspace_blocked"), refused
        assert {reason["code"] for reason in refused["params"]["blocked_by"]} == {"cluster_unreachable"}
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before
        standin.faults.api_unreachable = False
        w.wait_for(lambda s: s["workspace"]["reason"] is None, "it recovers alone")


def test_s27_a_snapshot_that_takes_long_is_not_given_up_while_the_pod_is_frozen(standin: StandIn) -> None:
    """Frozen time does not count towards the limit, which is shorter than this snapshot takes."""
    with workspace(standin, f"--PauseApp.snapshot_timeout={LIMIT}") as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        standin.faults.snapshot_slow = True
        w.ask()
        pod = standin.pod("w")
        assert pod is not None
        frozen = datetime.now(UTC)
        standin.wait_for(lambda: standin.pod_process(pod["metadata"]["name"]) is None, "the process is frozen")
        standin.wait_for(lambda: datetime.now(UTC) - frozen > timedelta(seconds=LIMIT + 2), "the limit has passed")
        standin.faults.snapshot_slow = False
        w.paused()
        w.resume()
        report = w.report()
        assert report["outcome"] == "restored" and report["paused_seconds"] > LIMIT, report
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before
