# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`python -m tests.cluster.standin`: what browser tests start, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.harness import until

from . import binaries

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def cluster(standin_folder: Path, criu: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process and what it printed."""
    binaries.api_server()
    if os.geteuid() != 0:
        pytest.skip("containers are made by root")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.standin", "--work", str(standin_folder), "--without-extension"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    told: dict[str, Any] = {}
    try:
        told = json.loads(process.stdout.readline())
        yield process, told
    finally:
        process.kill()
        process.wait()
        if told:
            # Killed, it could not remove the API server's folder.
            shutil.rmtree(Path(told["kubeconfig"]).parent, ignore_errors=True)
        process.stdin.close()
        process.stdout.close()


def control(told: dict[str, Any], path: str = "", **body: object) -> dict[str, Any]:
    """One call of the control endpoint; with a body or a path it is an order."""
    if path or body:
        answer = httpx.post(told["control"] + path, json=body, trust_env=False, timeout=30)
    else:
        answer = httpx.get(told["control"], trust_env=False, timeout=30)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def test_a_cluster_for_other_processes_and_its_end(cluster: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    """Opened, switched, paused and resumed from outside; killed without a warning, no process of it is left."""
    process, told = cluster
    assert httpx.get(told["url"] + "lab", trust_env=False, follow_redirects=True).status_code == 200
    assert control(told, no_capacity=True)["faults"]["no_capacity"] is True
    assert httpx.post(told["control"], json={"no_such": True}, trust_env=False).status_code == 400
    control(told, "/clear")
    control(told, "/pause", paused=True)
    until(lambda: control(told)["workspace"]["status"]["state"] == "Paused", "paused")
    assert control(told)["process"] is None
    control(told, "/pause", paused=False)
    until(lambda: control(told)["workspace"]["status"]["state"] == "Running", "running again")
    restored = psutil.Process(control(told)["process"])
    below = [*psutil.Process(process.pid).children(recursive=True), restored]

    process.send_signal(signal.SIGKILL)
    process.wait()
    gone, alive = psutil.wait_procs(below, timeout=20)
    assert not alive, [found.cmdline() for found in alive]
    assert restored in gone


def test_it_ends_with_its_standard_input(cluster: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    """A test runner that is gone takes the cluster with it."""
    process, _ = cluster
    below = psutil.Process(process.pid).children(recursive=True)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
    _, alive = psutil.wait_procs(below, timeout=20)
    assert not alive
