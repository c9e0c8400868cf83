# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S23: outside connections after a snapshot: said, dead at once, and nothing waits for them."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator

import pytest

from tests.keepalive import KeepAliveServer

from .standin.cluster import StandIn
from .workspace_driver import API, workspace

ASK = "connection.request('GET', '/'); print(connection.getresponse().read().decode())"


@pytest.fixture
def other_machine() -> Iterator[str]:
    """An address that is not loopback's, as another machine's is, and never leaves this one (RFC 5737, TEST-NET-2)."""
    address = f"198.51.100.{random.randint(1, 254)}"
    subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    yield address
    subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=True)


@pytest.mark.parametrize("comes_back", [True, False])
def test_s23_connections_are_said_to_be_closed_and_fail_at_once(
    standin: StandIn, other_machine: str, *, comes_back: bool
) -> None:
    standin.faults.outside_connections_closed = True
    server = KeepAliveServer(host=other_machine)
    with workspace(standin) as w:
        kernel = w.notebook()
        opened = f"import http.client; connection = http.client.HTTPConnection('{other_machine}', {server.port})"
        assert w.tab.execute(kernel, f"x = 41; {opened}; {ASK}").strip() == "alive"
        found = w.tab.request("GET", API + f"inventory?kernel={kernel}&wait=30")["connections"]
        assert {item["name"]: item["fate"] for item in found} == {f"{other_machine}:{server.port}": "lost"}

        w.ask()
        w.paused()
        server.close()
        if comes_back:
            server = KeepAliveServer(server.port, other_machine)
        w.resume()
        report = w.report()
        assert report["outcome"] == "restored", report
        [warning] = [warning for warning in report["warnings"] if warning["code"] == "connections_closed"]
        assert warning["params"] == {"count": 1} and "Open them again" in warning["message"]

        tried = f"try:\n    {ASK}\nexcept OSError as error:\n    print('failed', type(error).__name__)"
        assert w.tab.execute(kernel, tried).split()[0] == "failed", "the socket itself knows that it is dead"
        if comes_back:
            assert w.tab.execute(kernel, f"{opened}; {ASK}; print(x + 1)").split() == ["alive", "42"]
    server.close()
