# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S37: an environment that was made in the container: marked before, kept by a snapshot, missed after a cold start."""

from __future__ import annotations

import sys
from typing import Any

import httpx
import pytest

from .standin.cluster import StandIn
from .workspace_driver import API, Workspace, workspace

#: On the container's own disk, which the stand-in has below /tmp.
PREFIX = "/tmp/envs/mine"
INSTALL = f"""
import json, pathlib
prefix = pathlib.Path("{PREFIX}")
program = prefix / "bin" / "python"
program.parent.mkdir(parents=True)
program.write_text('#!/bin/sh\\nexec {sys.executable} "$@"\\n')
program.chmod(0o755)
argv = [str(program), "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]
folder = prefix / "share" / "jupyter" / "kernels" / "mine"
folder.mkdir(parents=True)
_ = (folder / "kernel.json").write_text(json.dumps({{"argv": argv, "display_name": "Mine", "language": "python"}}))
"""
CODE = "environment_on_container_disk"


def own_kernel(w: Workspace) -> str:
    """A kernel in an environment that a person made in the container."""
    w.tab.execute(w.notebook(), INSTALL)
    body = {"path": "b.ipynb", "name": "b.ipynb", "type": "notebook", "kernel": {"name": "mine"}}
    kernel: str = w.tab.request("POST", "api/sessions", body)["kernel"]["id"]
    w.tab.execute(kernel, "x = 41")
    return kernel


def warned(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [warning for warning in state["workspace"]["warnings"] if warning["code"] == CODE]


@pytest.mark.parametrize("cold", [False, True])
def test_s37_an_environment_in_the_container(standin: StandIn, *, cold: bool) -> None:
    with workspace(standin, env={"JUPYTER_PATH": f"{PREFIX}/share/jupyter"}) as w:
        assert not warned(w.state()), "the image's own environment is nothing to warn of"
        kernel = own_kernel(w)
        [warning] = warned(w.wait_for(warned, "the environment is marked"))
        assert warning["params"] == {"names": ["mine"]} and "environment of mine is" in warning["message"]

        w.ask()
        w.paused()
        standin.faults.restore_cold = cold
        w.resume()
        report = w.report()
        if not cold:
            assert report["outcome"] == "restored", report
            assert w.tab.execute(kernel, "print(x + 1)").strip() == "42"
            return
        assert report["outcome"] == "fresh", report
        told = {warning["code"]: warning["params"] for warning in report["warnings"]}
        assert told == {"cold_start": {}, "kernelspec_missing": {"name": "mine"}}, report
        [row] = [row for row in w.state()["kernels"] if row["id"] == kernel]
        assert (row["state"], row["path"], row["reason"]["code"]) == ("paused", "b.ipynb", "kernelspec_missing"), row
        with pytest.raises(httpx.HTTPStatusError) as caught:
            w.tab.request("POST", API + "resume", {"kernel": kernel})
        assert caught.value.response.json()["code"] == "kernelspec_missing"
