# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S10: a workspace that comes back is not paused again for what its server did not do while it was away."""

from __future__ import annotations

import asyncio
from pathlib import Path

from .rest import Object
from .standin import activity
from .standin.cluster import StandIn
from .workspace_driver import Workspace, workspace

ROOT = Path(__file__).parents[2]
#: Idle for an hour is paused. A probe each time somebody looks.
KIND: Object = {
    "spec": {
        "podTemplate": {
            "activityProbe": {
                "minProbeIntervalSeconds": 60,
                "probeIntervalSeconds": 60,
                "jupyter": {"lastActivity": True},
            }
        },
        "activityRules": [{"config": {"secondsSinceActive": 3600}, "effect": {"pauseWorkspace": True}}],
    }
}


def would_pause(w: Workspace) -> bool:
    """What a culler decides that believes the server unconditionally (Notebook v1's, S10): no word of when it began."""
    look = activity.look({"status": {}}, KIND, {}, w.tab.url, {"namespace": {}, "podConfig": {}})
    verdict = asyncio.run(look)
    assert verdict is not None and verdict.activity["lastProbe"]["result"] == "Success", verdict
    return verdict.pause


def test_s10_a_restored_server_counts_as_used_from_its_thaw_on(standin: StandIn) -> None:
    extension = "--ServerApp.jpserver_extensions=tests.cluster.old_stamps=True"
    with workspace(standin, extension, env={"PYTHONPATH": str(ROOT)}) as w:
        kernel = w.notebook()
        w.tab.execute(kernel, "x = 41")
        assert not would_pause(w)
        w.tab.request("POST", "test/old-stamps?hours=72")
        w.state()
        assert would_pause(w), "looking is no use: three days old is what everybody sees"

        standin.pause("w")  # by that culler: no request reaches the server
        w.paused()
        w.resume()
        report = w.report()
        assert report["outcome"] == "restored", report
        assert not would_pause(w), "the idle clock began anew"
        model = w.tab.request("GET", f"api/kernels/{kernel}")
        assert model["last_activity"] >= report["at"][:10], "so did the kernel's own"
        assert w.tab.execute(kernel, "print(x + 1)").strip() == "42"
