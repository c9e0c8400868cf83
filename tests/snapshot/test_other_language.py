# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A kernel of another language has no variables that a checkpoint could hold; the snapshot keeps all of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest
from jupyter_client.blocking import BlockingKernelClient

from tests.harness import HttpError, ServerProcess, until

from .driver import paused, resumed, row, snapshots


def install_bash(server: ServerProcess) -> None:
    """The bash kernel of PyPI, for this server alone."""
    folder = server.base / "data" / "kernels" / "bash"
    folder.mkdir(parents=True)
    specification = {
        "argv": [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"],
        "display_name": "Bash",
        "language": "bash",
    }
    (folder / "kernel.json").write_text(json.dumps(specification))


def output_of(server: ServerProcess, kernel: str, code: str) -> str:
    """What a cell prints."""
    printed: list[str] = []
    with server.client(kernel) as client:
        assert isinstance(client, BlockingKernelClient)
        client.wait_for_ready(timeout=60)
        reply = client.execute_interactive(
            code,
            timeout=60,
            output_hook=lambda message: printed.append(message["content"].get("text", "")),
        )
    assert reply["content"]["status"] == "ok", reply["content"]
    return "".join(printed).strip()


def tree(server: ServerProcess) -> list[int]:
    """The kernel's process and all below it."""
    (found,) = server.kernels_alive()
    kernel = psutil.Process(found.pid)  # psutil remembers processes by their start, and a restored one has another
    return [kernel.pid, *(child.pid for child in kernel.children(recursive=True))]


def test_a_bash_kernel_comes_back_with_its_shell(server: ServerProcess) -> None:
    install_bash(server)
    kernel = server.notebook("a.ipynb", "bash")["kernel"]["id"]
    output_of(server, kernel, "name='only here'; cd /; sleep 3600 &")
    shell = output_of(server, kernel, "echo $$")
    assert row(server, kernel)["pausable"]
    before = tree(server)
    report = paused(server, kernel)["last_pause"]
    assert report["checkpoint"] is None
    assert report["snapshot"]
    until(lambda: not any(psutil.pid_exists(pid) for pid in before), "the processes are gone")

    assert resumed(server, kernel)["via"] == "snapshot"
    assert sorted(tree(server)) == sorted(before)
    assert output_of(server, kernel, 'echo "$name $PWD $$"') == f"only here / {shell}"
    until(lambda: snapshots(server) == [], "the snapshot is deleted")

    paused(server, kernel)
    server.kill()
    server.start()
    assert row(server, kernel)["state"] == "paused"
    assert resumed(server, kernel)["via"] == "snapshot"
    assert output_of(server, kernel, 'echo "$name $PWD $$"') == f"only here / {shell}"

    server.request("DELETE", f"api/kernels/{kernel}")
    until(lambda: not server.kernels_alive(), "it is shut down like any other")


def test_a_running_bash_kernel_ends_with_its_server(server: ServerProcess) -> None:
    install_bash(server)
    kernel = server.notebook("a.ipynb", "bash")["kernel"]["id"]
    assert output_of(server, kernel, "echo here") == "here"
    server.kill()
    until(lambda: not server.kernels_alive(), "no process is left without a server")


def test_without_criu_a_bash_kernel_is_not_pausable_as_ever(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, options=[f"--PauseApp.criu={tmp_path / 'nothing'}"])
    try:
        server.start()
        install_bash(server)
        kernel = server.notebook("a.ipynb", "bash")["kernel"]["id"]
        found = row(server, kernel)
        assert not found["pausable"]
        assert found["reason"]["code"] == "not_python"
        with pytest.raises(HttpError) as refused:
            server.pause(kernel)
        assert refused.value.body["code"] == "not_pausable"
    finally:
        server.clean_up()
