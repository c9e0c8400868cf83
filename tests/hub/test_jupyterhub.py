# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Under a real JupyterHub: what its stop keeps, what its token may do, and the whole way there and back."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.owners.detection import HubServer
from jupyter_pause.owners.jupyterhub import JupyterHubOwner
from jupyter_pause.owners.jupyterhub_api import HubError
from tests.harness import HttpError, until

from .conftest import StartHub
from .hub import SCOPES, Hub


def owner_of(hub: Hub, user: str, server: str = "", token: str | None = None) -> JupyterHubOwner:
    """The owner as inside the server: with its own token, unless another is given."""
    environ = hub.process_of(user, server).environ() if token is None else {"JUPYTERHUB_API_TOKEN": token}
    prefix = f"/user/{user}/{server}/" if server else f"/user/{user}/"
    return JupyterHubOwner(HubServer(hub.api_url, user, server, prefix), clock=SYSTEM_CLOCK, environ=environ)


def a_kernel_with(hub: Hub, user: str, code: str) -> str:
    body = {"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    kernel: str = hub.of_server(user, "POST", "api/sessions", body)["kernel"]["id"]
    run(hub, kernel, code)
    return kernel


def run(hub: Hub, kernel: str, code: str, expression: str = "None") -> str:
    from jupyter_client import BlockingKernelClient

    client = BlockingKernelClient()
    client.load_connection_file(f"{hub.facts['environment']['JUPYTER_RUNTIME_DIR']}/kernel-{kernel}.json")  # type: ignore[index]
    client.start_channels(hb=False)
    try:
        reply = client.execute(code, user_expressions={"value": expression}, reply=True, timeout=60)["content"]
        assert reply["status"] == "ok", reply
        text: str = reply["user_expressions"]["value"]["data"]["text/plain"]
        return text
    finally:
        client.stop_channels()


def resumed(hub: Hub, user: str, kernel: str) -> dict[str, Any]:
    operation = hub.of_server(user, "POST", "jupyter-pause/api/resume", {"kernel": kernel})["operation"]

    def ended() -> Any:
        now = hub.of_server(user, "GET", f"jupyter-pause/api/operations/{operation['id']}")
        return now if now["state"] not in ("running", "needs_decision") else None

    record: dict[str, Any] = until(ended, "the resume ends")
    return record


def test_stop_by_the_hub_keeps_the_kernels_for_the_next_start(start_hub: StartHub) -> None:
    """The local spawner stops by SIGINT, which without a terminal would end Jupyter Server without any clean-up."""
    hub = start_hub()
    hub.user("alice")
    hub.start_server("alice")
    kernel = a_kernel_with(hub, "alice", "value = 41")
    hub.call("DELETE", f"{hub.api_url}/users/alice/server")
    hub.wait_stopped("alice")

    hub.start_server("alice")
    state = hub.of_server("alice", "GET", "jupyter-pause/api/state")
    assert state["last_stop"]["cause"] == "ordered"
    assert [row["state"] for row in state["kernels"]] == ["paused"]
    assert resumed(hub, "alice", kernel)["outcome"] == "restored"
    assert run(hub, kernel, "", "value + 1") == "42"


async def test_S47_missing_scope_is_named_before_the_click_and_the_hub_agrees(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.user("alice")
    hub.start_server("alice")
    owner = owner_of(hub, "alice")
    await owner.start()
    assert owner.view().state == "running", "we may not look, but we run"
    found = {check.code: check for check in await owner.checks()}
    assert found["hub_scope_missing"].severity == "blocks"
    assert found["hub_scope_missing"].params["scope"] == "delete:servers!server=alice/"
    with pytest.raises(HubError) as caught:
        await owner.release()
    assert (caught.value.code, caught.value.params) == ("hub_forbidden", {"scope": "delete:servers"})
    assert hub.server("alice")["ready"]  # type: ignore[index]


async def test_release_and_reclaim_of_a_named_server(start_hub: StartHub) -> None:
    hub = start_hub(SCOPES)
    hub.user("alice")
    hub.start_server("alice", "gpu")
    owner = owner_of(hub, "alice", "gpu")
    await owner.start()
    assert owner.view().state == "running" and owner.view().observed_at is not None
    assert [check.code for check in await owner.checks()] == ["no_snapshot"]
    assert owner.door().page == "/hub/spawn/alice/gpu?next=%2Fuser%2Falice%2Fgpu%2F"
    answer = await owner.release()
    assert answer.kind == "released"
    assert not await owner.take_back()
    hub.wait_stopped("alice", "gpu")
    await owner.stop()

    admin = owner_of(hub, "alice", "gpu", token=hub.token)
    await admin.start()
    assert admin.view().state == "paused"
    await admin.reclaim()
    await admin.reclaim()
    hub.wait_ready("alice", "gpu")
    await admin.start()
    assert admin.view().state == "running"


async def test_hub_that_does_not_answer_is_said(start_hub: StartHub) -> None:
    environ = {"JUPYTERHUB_API_TOKEN": "x"}
    owner = JupyterHubOwner(
        HubServer("http://127.0.0.1:9/hub/api", "alice", "", "/user/alice/"), clock=SYSTEM_CLOCK, environ=environ
    )
    await owner.start()
    view = owner.view()
    assert view.state == "unknown" and view.error is not None and view.error.code == "hub_unreachable"
    assert [(c.code, c.severity) for c in await owner.checks()] == [
        ("no_snapshot", "warns"),
        ("hub_unreachable", "blocks"),
    ]


def test_pausing_the_whole_server_and_back(start_hub: StartHub) -> None:
    hub = start_hub(SCOPES)
    hub.user("alice")
    hub.start_server("alice")
    kernel = a_kernel_with(hub, "alice", "value = 41")

    def workspace() -> Any:
        return hub.of_server("alice", "GET", "jupyter-pause/api/state")["workspace"]

    until(workspace, "the owner was found")
    state = hub.of_server("alice", "GET", "jupyter-pause/api/state")
    assert (state["owner"], state["scope"], state["workspace"]["door"]["kind"]) == (
        "jupyterhub",
        "workspace",
        "jupyterhub",
    )
    hub.of_server("alice", "POST", "jupyter-pause/api/pause", {"scope": "workspace"})
    hub.wait_stopped("alice")

    hub.start_server("alice")
    rows = hub.of_server("alice", "GET", "jupyter-pause/api/state")["kernels"]
    assert [(row["id"], row["state"]) for row in rows] == [(kernel, "paused")]
    assert resumed(hub, "alice", kernel)["outcome"] == "restored"
    assert run(hub, kernel, "", "value + 1") == "42"


def test_pausing_the_whole_server_is_refused_without_the_scope(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.user("alice")
    hub.start_server("alice")
    kernel = a_kernel_with(hub, "alice", "value = 41")
    until(lambda: hub.of_server("alice", "GET", "jupyter-pause/api/state")["workspace"], "the owner was found")
    with pytest.raises(HttpError) as caught:
        hub.of_server("alice", "POST", "jupyter-pause/api/pause", {"scope": "workspace"})
    assert caught.value.status == 409
    assert "hub_scope_missing" in [reason["code"] for reason in caught.value.body["params"]["blocked_by"]]
    assert run(hub, kernel, "", "value") == "41"
