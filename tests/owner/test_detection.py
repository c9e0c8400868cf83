# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S45: half a cluster's environment gives a one-line reason and a clear mode, never a traceback.

Who owns a pod in a whole one is tested in tests/cluster/test_detection.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_pause.owners.detection import HubServer, detect
from tests.harness import ServerProcess

ADDRESS = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}


@pytest.mark.parametrize(
    ("address", "token", "code"),
    [
        (False, False, None),
        (True, False, "cluster_token_missing"),
        (False, True, "cluster_address_missing"),
        (True, True, "owner_unknown"),
    ],
)
def test_S45_each_half_of_a_cluster_has_its_reason(
    address: bool, token: bool, code: str | None, tmp_path: Path
) -> None:
    if token:
        (tmp_path / "token").write_text("secret-token")
    found = detect(ADDRESS if address else {}, tmp_path)
    assert found.in_cluster == (address and token) and (found.reason.code if found.reason else None) == code
    if found.reason is not None:
        assert found.reason.message.count(".") == 1 and "secret-token" not in found.reason.message


def test_S45_an_empty_token_and_a_folder_that_cannot_be_read_are_no_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    for folder in (tmp_path, tmp_path / "token"):
        found = detect(ADDRESS, folder)
        assert found.reason is not None and found.reason.code == "cluster_token_missing"


def in_pod(folder: Path, environ: dict[str, str], namespace: str | None = "team") -> dict[str, object]:
    (folder / "token").write_text("t")
    if namespace is not None:
        (folder / "namespace").write_text(namespace)
    found = detect(ADDRESS | {"HOSTNAME": "pod-0"} | environ, folder)
    return {"namespace": found.namespace, "pod": found.pod, "workspace": found.workspace, "notebook": found.notebook}


@pytest.mark.parametrize(
    ("prefix", "workspace", "notebook"),
    [
        ("", None, None),
        ("/workspace/connect/team/lab/jupyterlab", ("team", "lab"), None),
        ("/workspace/connect/team/lab/jupyterlab/", ("team", "lab"), None),
        ("/workspace/connect/team", None, None),
        ("/notebook/team/lab", None, ("team", "lab")),
        ("/notebook/team/lab/more", None, None),
        ("/user/me", None, None),
    ],
)
def test_the_prefix_names_the_kubeflow_object(
    prefix: str, workspace: tuple[str, str] | None, notebook: tuple[str, str] | None, tmp_path: Path
) -> None:
    found = in_pod(tmp_path, {"NB_PREFIX": prefix})
    assert found == {"namespace": "team", "pod": "pod-0", "workspace": workspace, "notebook": notebook}


def test_the_namespace_comes_from_the_service_account_else_from_the_prefix(tmp_path: Path) -> None:
    prefix = {"NB_PREFIX": "/workspace/connect/other/lab/jupyterlab"}
    assert in_pod(tmp_path, prefix)["namespace"] == "team"
    (tmp_path / "namespace").unlink()
    assert in_pod(tmp_path, prefix, None)["namespace"] == "other"
    assert in_pod(tmp_path, prefix | {"POD_NAME": "by-downward-api"}, None)["pod"] == "by-downward-api"


HUB = {"JUPYTERHUB_API_URL": "http://hub:8081/hub/api", "JUPYTERHUB_USER": "me", "JUPYTERHUB_API_TOKEN": "secret"}


def test_a_hub_is_known_by_its_api_address_with_or_without_a_cluster(tmp_path: Path) -> None:
    plain = detect(HUB | {"JUPYTERHUB_SERVER_NAME": "gpu", "JUPYTERHUB_SERVICE_PREFIX": "/user/me/gpu/"}, tmp_path)
    assert plain.hub == HubServer("http://hub:8081/hub/api", "me", "gpu", "/user/me/gpu/")
    assert not plain.in_cluster and plain.reason is None and "secret" not in repr(plain)
    # Kubeflow's Workspaces set this one variable too.
    assert detect({"JUPYTERHUB_SERVICE_PREFIX": "/workspace/connect/team/lab/jupyterlab"}, tmp_path).hub is None


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


HEAVY = ("kubernetes", "aiohttp", "aiohttp_retry", "requests_oauthlib")


def test_outside_a_cluster_the_client_is_not_imported(tmp_path: Path) -> None:
    """A real server with the extension, started and asked for its state; then what is imported."""
    code = f"""
import asyncio, json, os, sys
sys.argv = ["jupyter", "--ip=127.0.0.1", "--port=0", "--no-browser", "--ServerApp.token=", "--allow-root",
            "--ServerApp.jpserver_extensions={{'jupyter_pause': True}}", "--ServerApp.root_dir={tmp_path}",
            "--PauseApp.checkpoint_dir={tmp_path}/kept"]
from jupyter_server.serverapp import ServerApp

async def look():
    while not server.web_app.settings["jupyter_pause_pauser"].taken_over.is_set():
        await asyncio.sleep(0.05)
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    print("HEAVY", json.dumps(loaded), "jupyter_pause.pauser" in sys.modules, flush=True)
    server.stop()

server = ServerApp.instance()
server.initialize()
server.io_loop.add_callback(look)
server.start()
"""
    keep = {"PATH", "HOME", "LANG", "VIRTUAL_ENV"}

    environ = {name: value for name, value in os.environ.items() if name in keep}
    environ |= {"JUPYTER_DATA_DIR": str(tmp_path / "data"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "run")}
    environ |= {"JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    line = next((one for one in done.stdout.splitlines() if one.startswith("HEAVY ")), done.stderr)
    assert line == f"HEAVY {json.dumps([])} True"
