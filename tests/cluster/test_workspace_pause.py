# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pausing a whole workspace with a snapshot, and what is said of it afterwards: real servers, kernels and CRIU."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import httpx
import pytest

from .apiserver import Request
from .standin.cluster import StandIn
from .workspace_driver import API, SECRET_CELL, resume_kernel, send, workspace

#: Questions about our own rights; they are created, and change nothing.
REVIEWS = "selfsubjectaccessreviews"


def test_s01_a_workspace_comes_back_with_its_memory_and_the_proof(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        state = w.state()
        assert (state["scope"], state["owner"], state["can_pause"]) == ("workspace", "kubeflow", True), state
        assert state["workspace"]["stateful"] is True and state["workspace"]["door"]["kind"] == "kubeflow"

        assert "A pause takes a snapshot: memory, processes and terminals are kept." in w.command("status")
        operation = w.ask()
        assert operation["scope"] == "workspace" and operation["kernels"] == [kernel], operation
        w.paused()
        assert standin.pod("w") is None
        w.resume()
        report = w.report()
        assert (report["outcome"], report["via"], report["server_mark"]) == ("restored", "snapshot", True), report
        assert report["confirmed"] is True and report["snapshot"], report
        [proof] = report["kernels"]
        assert proof["mark"] is True and proof["mismatched"] == [] and proof["compared"] >= 2, report
        assert proof["checkpoint"], "the second net was written too"
        codes = {warning["code"] for warning in report["warnings"]}
        assert "random_state_repeats" in codes and "restore_not_confirmed" not in codes

        assert w.tab.execute(kernel, "print(token, os.getpid())") == before
        after = w.wait_for(lambda s: s["workspace"]["state"] == "running", "the first cell makes it running")
        assert after["workspace"]["outcome"] == "restored"
        assert {"asked", "proven"} <= set(after["workspace"]["timeline"])


def test_the_requests_of_one_pause_and_one_resume_are_few(standin: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    with workspace(standin) as w:
        w.notebook()
        user = f"system:serviceaccount:{standin.namespace}:ws-w"
        quiet = len(standin.api_server.audit(user=user))
        w.state()
        assert len(standin.api_server.audit(user=user)) == quiet, "looking asks nobody"
        w.ask()
        w.paused()
        pause = standin.api_server.audit(user=user)[quiet:]
        w.resume()
        w.report()
        w.wait_for(lambda s: not w.is_looking(s) and s["operation"] is None, "it is over")
        resume = standin.api_server.audit(user=user)[quiet + len(pause) :]
        with capsys.disabled():
            for title, requests in (("pause", pause), ("resume", resume)):
                print(f"\n{title}: {len(requests)} requests")
                for line, count in Counter(as_line(standin, request) for request in requests).items():
                    print(f"  {count} x {line}")
        writes = [r for r in pause if r.verb in ("patch", "update", "create", "delete") and REVIEWS not in r.uri]
        assert [r.verb for r in writes] == ["patch"], "one write, and it is the request itself"
        assert len(pause) <= 14 and len(resume) <= 30
        assert all(REVIEWS in r.uri for r in resume if r.verb == "create"), "a resume changes nothing from inside"
        assert {r.verb for r in resume} <= {"get", "list", "watch", "create"}


def as_line(standin: StandIn, request: Request) -> str:
    """Verb and path, without what differs from run to run."""
    path = request.uri.partition("?")[0].replace(standin.namespace, "NS")
    return f"{request.verb} {re.sub(r'ws-w-[a-z0-9]+-0', 'POD', path)}"


def test_pod_snapshots_are_listed_and_one_in_use_is_not_deleted_by_accident(standin: StandIn) -> None:
    with workspace(standin, f"--PauseApp.snapshot_timeout={600}") as w:
        w.notebook()
        assert w.tab.request("GET", API + "snapshots") == {"snapshots": []}
        standin.faults.gate_never_false = True
        standin.faults.snapshot_never_ready = True
        operation = w.ask()

        def listed() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = standin.api_server.list("podsnapshot.gke.io/v1/PodSnapshot", standin.namespace)  # type: ignore[assignment]
            return rows

        [snapshot] = standin.wait_for(listed, "there is one that never turns ready")
        w.tab.request("DELETE", API + f"operations/{operation['id']}")
        w.wait_for(lambda s: s["operation"] is None and s["workspace"]["state"] == "running", "it was taken back")
        [row] = w.tab.request("GET", API + "snapshots")["snapshots"]
        assert row["id"] == snapshot["metadata"]["name"] and row["ready"] is not True and row["next"] is False
        w.tab.request("DELETE", API + f"snapshots/{row['id']}")
        standin.wait_for(lambda: not listed(), "it is deleted")
        for name, status in (("nobody", 404), ("..%2Fx", 400), ("UPPER", 400)):
            with pytest.raises(httpx.HTTPStatusError) as caught:
                w.tab.request("DELETE", API + f"snapshots/{name}")
            assert caught.value.response.status_code == status


def test_a_pause_that_somebody_else_asked_for_is_joined_in_time(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        standin.pause("w")  # a culler, a laptop, the platform's own button
        w.paused()
        w.resume()
        report = w.report()
        assert (report["outcome"], report["server_mark"], report["confirmed"]) == ("restored", True, True), report
        assert report["kernels"][0]["mark"] is True
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before


def test_a_busy_kernel_goes_on_in_the_middle_of_its_cell(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        w.tab.execute(kernel, SECRET_CELL)
        channels = w.tab.channels(kernel)
        send(channels, "import time\nfor n in range(10**6):\n    time.sleep(0.05); open('count', 'w').write(str(n))")
        count = standin.home("w") / "count"
        standin.wait_for(count.exists, "the cell runs")
        w.ask()
        w.paused()
        at_pause = int(count.read_text(encoding="utf-8"))
        w.resume()
        report = w.report()
        [proof] = report["kernels"]
        assert report["outcome"] == "restored" and proof["mark"] is True, report
        assert proof["checkpoint"] is None and proof["compared"] == 0, "a running cell is neither captured nor compared"
        standin.wait_for(lambda: int(count.read_text(encoding="utf-8") or 0) > at_pause + 5, "the cell goes on")
        w.tab.request("POST", f"api/kernels/{kernel}/interrupt")
        channels.close()


def test_s20_a_silent_cold_start_is_called_fresh_and_the_checkpoints_are_offered(standin: StandIn) -> None:
    with workspace(standin) as w:
        kernel = w.notebook()
        printed = w.tab.execute(kernel, SECRET_CELL).split()
        w.ask()
        w.paused()
        standin.faults.restore_cold = True
        w.resume()
        report = w.report()
        assert (report["outcome"], report["via"], report["server_mark"]) == ("fresh", None, False), report
        [proof] = report["kernels"]
        assert proof["kernel"] == kernel and proof["mark"] is False and proof["checkpoint"], report
        assert [warning["code"] for warning in report["warnings"]] == ["cold_start"]
        [row] = w.state()["kernels"]
        assert (row["id"], row["state"], row["path"]) == (kernel, "paused", "a.ipynb"), row
        assert row["checkpoint"]["id"] == proof["checkpoint"]
        told = w.command("status")
        assert f"Workspace {standin.namespace}/w (kubeflow): running" in told
        assert "it is a fresh start: the same files, new processes" in told
        assert f"a.ipynb: a new process; checkpoint {proof['checkpoint'][:8]} is kept." in told

        resume_kernel(w, kernel)
        assert w.tab.execute(kernel, "print(token, len(data))").split() == [printed[0], "100000"]
        assert w.tab.execute(kernel, "import os; print(os.getpid())").strip() != printed[1]


def test_after_a_cold_start_the_kernels_come_back_by_themselves_where_that_is_set(standin: StandIn) -> None:
    with workspace(standin, "--PauseApp.apply_checkpoints=always") as w:
        kernel = w.notebook()
        printed = w.tab.execute(kernel, SECRET_CELL).split()
        w.ask()
        w.paused()
        standin.faults.restore_cold = True
        w.resume()
        state = w.wait_for(
            lambda s: (s["workspace"] or {}).get("last_resume", {}) and s["workspace"]["last_resume"]["via"],
            "the checkpoints are applied",
        )
        report = state["workspace"]["last_resume"]
        assert (report["outcome"], report["via"]) == ("fresh", "checkpoint"), "the pod is fresh all the same"
        assert [row["state"] for row in state["kernels"]] == ["ready"], state["kernels"]
        assert w.tab.execute(kernel, "print(token)").strip() == printed[0]


def test_s20_another_snapshot_is_never_called_restored(standin: StandIn) -> None:
    with workspace(standin) as w:
        w.notebook()
        w.ask()
        w.paused()
        standin.faults.restore_wrong_snapshot = "somebody-elses"
        w.resume()
        assert w.report()["outcome"] == "fresh"


def test_without_an_addon_the_kernels_are_paused_and_the_pod_goes(standin: StandIn) -> None:
    with workspace(standin, stateful=False) as w:
        state = w.state()
        assert state["workspace"]["stateful"] is False and state["can_pause"], state
        assert "addon_missing" in {warning["code"] for warning in state["workspace"]["warnings"]}
        kernel = w.notebook()
        printed = w.tab.execute(kernel, SECRET_CELL + "\ngen = (n for n in range(3))").split()
        refused = w.ask()
        assert (refused["status"], refused["code"]) == (422, "would_lose"), refused
        assert [loss["name"] for loss in refused["losses"]] == ["gen"]
        assert w.ask(on_loss="accept")["scope"] == "workspace"
        w.paused()
        w.resume()
        report = w.report()
        assert report["outcome"] == "fresh" and report["kernels"][0]["checkpoint"], report
        resume_kernel(w, kernel)
        assert w.tab.execute(kernel, "print(token, next(iter(data)))").split() == [printed[0], "0"]


def test_s47_a_right_that_is_missing_switches_the_button_off_and_is_named(standin: StandIn) -> None:
    rules = [
        {"apiGroups": ["kubeflow.org"], "resources": ["workspaces"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules}
    standin.api_server.apply({**role, "metadata": {"name": "h4-reader"}})
    with workspace(standin, roles=("h4-reader",)) as w:
        state = w.state()
        assert state["can_pause"] is False
        [blocked] = state["blocked_by"]
        assert blocked["code"] == "missing_right"
        assert (blocked["params"]["verb"], blocked["params"]["resource"]) == ("patch", "workspaces.kubeflow.org")
        assert "patch" in blocked["message"] and "workspaces.kubeflow.org" in blocked["message"]
        assert state["workspace"]["state"] == "running", "reading still works"
        refused = w.ask()
        assert (refused["status"], refused["code"]) == (409, "workspace_blocked"), refused
        assert standin.workspace("w")["spec"]["paused"] is False
