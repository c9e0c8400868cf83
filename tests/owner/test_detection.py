# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S45: half a cluster's environment gives a one-line reason and a clear mode, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_pause.owners.detection import detect
from tests.harness import ServerProcess

ADDRESS = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}


@pytest.mark.parametrize(
    ("address", "token", "code"),
    [
        (False, False, None),
        (True, False, "cluster_token_missing"),
        (False, True, "cluster_address_missing"),
        (True, True, "cluster_not_supported"),
    ],
)
def test_S45_each_half_of_a_cluster_has_its_reason(
    address: bool, token: bool, code: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    if token:
        file.write_text("secret-token")
    reason = detect(ADDRESS if address else {}, file)
    assert (reason.code if reason else None) == code
    if reason is not None:
        assert reason.message.count(".") == 1 and "secret-token" not in reason.message


def test_S45_a_server_with_half_an_environment_starts_in_a_clear_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ADDRESS.items():
        monkeypatch.setenv(name, value)
    server = ServerProcess(tmp_path)
    try:
        server.start()
        state = server.api("GET", "state")
        assert state["mode"] == "local" and state["reason"]["code"] == "cluster_token_missing"
        log = (tmp_path / "server.log").read_text()
        assert "no service account token" in log and "Traceback" not in log
    finally:
        server.clean_up()
