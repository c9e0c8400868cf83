# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real JupyterLab with a kernel and a terminal in the stand-in's pod: frozen, gone, and back."""

from __future__ import annotations

import httpx
import pytest
import websocket

from .standin.cluster import StandIn
from .standin.notebook import NotebookClient, command, execute, kernel_names

CODE = "import os, secrets; token = secrets.token_hex(8); print(token, os.getpid())"


@pytest.fixture
def client(standin: StandIn) -> NotebookClient:
    """A client of a workspace `lab` that runs."""
    standin.create_workspace("lab", command(pause=False))
    standin.wait_for_state("lab", "Running", limit=120)
    return NotebookClient(standin.url("lab"))


def status_of(url: str) -> int:
    """The gateway's answer; 0 while it cuts the connection instead."""
    try:
        return httpx.get(url, trust_env=False).status_code
    except httpx.TransportError:
        return 0


def read_until_cut(channels: websocket.WebSocket) -> None:
    """Read what comes, until the connection is gone."""
    while True:
        channels.recv()


def test_a_lab_comes_back_with_kernel_variables_and_terminal(standin: StandIn, client: NotebookClient) -> None:
    """facts/process-snapshots.md section 1, "whole `jupyter lab` tree"; facts/cluster.md section 3 end to end."""
    kernel = client.request("POST", "api/kernels", {"name": "python3"})["id"]
    client.request("POST", "api/terminals")
    channels = client.channels(kernel)
    before = execute(channels, CODE)
    files = list((standin.home("lab") / ".local/share/jupyter/runtime").glob(f"kernel-{kernel}.json"))
    assert files and '"transport": "ipc"' in files[0].read_text(encoding="utf-8"), "weak spot 8"

    backend = f"{standin.origin}/workspaces/api/v1/workspaces/{standin.namespace}/lab/actions/pause"
    answer = httpx.post(backend, json={"data": {"paused": True}}, trust_env=False)
    assert answer.json() == {"data": {"paused": False}}, "held back: success, not refusal"
    with pytest.raises((websocket.WebSocketConnectionClosedException, OSError)):
        read_until_cut(channels)
    status = standin.url("lab") + "api/status"
    standin.wait_for(lambda: status_of(status) == 503, "the pod is out of its service")
    standin.wait_for_state("lab", "Paused")

    assert httpx.post(backend, json={"data": {"paused": False}}, trust_env=False).status_code == 200
    standin.wait_for_state("lab", "Running")
    assert kernel_names(client) == [kernel]
    assert len(client.request("GET", "api/terminals")) == 1
    assert client.execute(kernel, "print(token, os.getpid())") == before
    client.close()


def test_cold_the_kernels_are_gone(standin: StandIn, client: NotebookClient) -> None:
    """Weak spot 2: "same pod name, same files, new process"."""
    kernel = client.request("POST", "api/kernels", {"name": "python3"})["id"]
    client.execute(kernel, "open('result.txt', 'w').write('kept')")
    standin.pause("lab")
    standin.wait_for_state("lab", "Paused")
    standin.faults.restore_cold = True
    standin.pause("lab", False)
    standin.wait_for_state("lab", "Running", limit=120)
    assert kernel_names(client) == []
    assert (standin.home("lab") / "result.txt").read_text(encoding="utf-8") == "kept"
    client.close()
