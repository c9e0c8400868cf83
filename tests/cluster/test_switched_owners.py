# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Notebook v1, StatefulSet and Sandbox: tables, a real API server with RBAC, and a real server in a pod that goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.access import Right
from jupyter_pause.cluster.client import ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.owners import notebook_v1, sandbox, statefulset
from jupyter_pause.owners.switched import Switch, SwitchedOwner, derive

from . import grants
from .apiserver import ApiServer
from .standin import manifests
from .standin.cluster import StandIn
from .standin.notebook import NotebookClient, command

NOW = datetime(2026, 5, 1, 8, tzinfo=UTC)
STOPPED = {"annotations": {notebook_v1.STOPPED: "2026-05-01T07:00:00Z"}}


def notebook(metadata: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w", **metadata}, "spec": {}, "status": status}


def stateful_set(wanted: int | None, observed: int = 2, **status: Any) -> dict[str, Any]:
    spec = {} if wanted is None else {"replicas": wanted}
    return {
        "metadata": {"name": "w", "generation": 2},
        "spec": spec,
        "status": {"observedGeneration": observed, **status},
    }


def a_sandbox(mode: str | None, observed: int = 2, **conditions: str) -> dict[str, Any]:
    listed = [{"type": t, "status": s, "observedGeneration": observed} for t, s in conditions.items()]
    spec = {} if mode is None else {"operatingMode": mode}
    return {"metadata": {"name": "w", "generation": 2}, "spec": spec, "status": {"conditions": listed}}


def pod(phase: str = "Pending", *, going: bool = False, **conditions: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "w-0", "uid": "u", "creationTimestamp": "2026-05-01T07:55:00Z"}
    if going:
        metadata["deletionTimestamp"] = "2026-05-01T07:59:00Z"
    listed = [{"type": t, "status": s, "lastTransitionTime": "2026-05-01T07:56:00Z"} for t, s in conditions.items()]
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": listed}}


NB, SET, BOX = notebook_v1.SWITCH, statefulset.SWITCH, sandbox.SWITCH


@pytest.mark.parametrize(
    ("switch", "thing", "its_pod", "expected"),
    [
        (NB, notebook({}, readyReplicas=1, containerState={"running": {}}), None, ("running", None)),
        (NB, notebook({}, readyReplicas=0, containerState={}), None, ("resuming", "starting")),
        (NB, notebook({}, readyReplicas=0), pod(PodScheduled="False"), ("waiting", None)),
        (NB, notebook({}, readyReplicas=0), pod("Running", Ready="True"), ("running", None)),
        (NB, notebook(STOPPED, readyReplicas=1, containerState={"running": {}}), None, ("pausing", "releasing")),
        (
            NB,
            notebook(STOPPED, readyReplicas=0, containerState={}),
            pod("Running", going=True),
            ("pausing", "releasing"),
        ),
        (NB, notebook(STOPPED, readyReplicas=0, containerState={}), None, ("paused", None)),
        (NB, {"metadata": {"name": "w", "deletionTimestamp": "2026-05-01T07:00:00Z"}}, None, ("unknown", None)),
        (NB, None, None, ("unknown", None)),
        (SET, stateful_set(None, readyReplicas=1, replicas=1), None, ("running", None)),
        (SET, stateful_set(1, replicas=1), None, ("resuming", "starting")),
        (SET, stateful_set(0, replicas=1), None, ("pausing", "releasing")),
        (SET, stateful_set(0), None, ("paused", None)),
        (SET, stateful_set(0, observed=1), None, ("pausing", "releasing")),  # S15
        (SET, stateful_set(1, observed=1, readyReplicas=1), None, ("resuming", "starting")),  # S15
        (BOX, a_sandbox(None, Ready="True"), None, ("running", None)),
        (BOX, a_sandbox("Running", Ready="False"), None, ("resuming", "starting")),
        (BOX, a_sandbox("Suspended", Ready="False", Suspended="False"), None, ("pausing", "releasing")),
        (BOX, a_sandbox("Suspended", Ready="False", Suspended="Unknown"), None, ("pausing", "releasing")),
        (BOX, a_sandbox("Suspended", Ready="False", Suspended="True"), None, ("paused", None)),
        (BOX, a_sandbox("Suspended", Ready="False"), None, ("paused", None)),
        (BOX, a_sandbox("Suspended", observed=1, Ready="False"), None, ("pausing", "releasing")),  # S15
    ],
)
def test_state_is_derived_from_the_objects(
    switch: Switch, thing: dict[str, Any] | None, its_pod: dict[str, Any] | None, expected: tuple[str, str | None]
) -> None:
    view = derive(switch, thing, its_pod, [], NOW)
    assert (view.state, view.phase) == expected
    assert view.stateful is False


def test_since_when_it_is_paused() -> None:
    view = derive(NB, notebook(STOPPED, readyReplicas=0, containerState={}), None, [], NOW)
    assert view.since == datetime(2026, 5, 1, 7, tzinfo=UTC)


# --- against a real API server --------------------------------------------------------------------------------------

Make = Callable[[str, str, dict[str, Any]], dict[str, Any]]
KINDS = [
    pytest.param(NB, manifests.notebook_v1, "kubeflow.org/v1/Notebook", id="notebook_v1"),
    pytest.param(SET, manifests.stateful_set, "apps/v1/StatefulSet", id="statefulset"),
    pytest.param(BOX, manifests.sandbox, "agents.x-k8s.io/v1beta1/Sandbox", id="sandbox"),
]


def make(server: ApiServer, namespace: str, how: Make) -> None:
    server.as_admin.create(how(namespace, "w", manifests.pod_spec("image:1", "w", {}, "default")))


@asynccontextmanager
async def owner_of(
    switch: Switch, server: ApiServer, namespace: str, token: str, folder: Path
) -> AsyncIterator[SwitchedOwner]:
    (folder / "token").write_text(token)
    config = ClusterConfig(host=server.url, ca_file=Path(server.ca), namespace=namespace, token_file=folder / "token")
    client = ClusterClient(config, clock=SYSTEM_CLOCK)
    owner = SwitchedOwner(switch, client, namespace=namespace, name="w", clock=SYSTEM_CLOCK, pod_name=switch.pod("w"))
    try:
        yield owner
    finally:
        await owner.stop()


async def until(check: Any, what: str) -> None:
    for _ in range(600):
        if check():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never happened: {what}")


@pytest.mark.parametrize(("switch", "how", "kind"), KINDS)
async def test_release_take_back_and_reclaim_really_switch(
    api_server: ApiServer, namespace: str, tmp_path: Path, switch: Switch, how: Make, kind: str
) -> None:
    make(api_server, namespace, how)

    def is_on() -> bool:
        return switch.is_on(api_server.get(kind, "w", namespace))

    async with owner_of(switch, api_server, namespace, api_server.admin_token, tmp_path) as owner:
        await owner.start()
        assert owner.view().state == "resuming", "nobody starts it here"
        await owner.quiet()
        assert (await owner.release()).kind == "released"
        assert not is_on()
        assert (await owner.release()).kind == "released", "asking twice is one pause"
        assert await owner.take_back() is True
        assert is_on()
        await owner.release()
        await owner.wake()
        await until(lambda: owner.view().state in ("pausing", "paused"), "it is followed again")
        await owner.reclaim()
        await owner.reclaim()
        assert is_on()
        await until(lambda: owner.view().state == "resuming", "the view follows")
        found = await owner.resumed_from()
        assert found.restored is False and found.reason is not None and found.reason.code == "cold_start"


@pytest.mark.parametrize(("switch", "how", "kind"), KINDS)
async def test_S47_missing_rights_are_named_and_the_needed_ones_are_enough(
    api_server: ApiServer, namespace: str, tmp_path: Path, switch: Switch, how: Make, kind: str
) -> None:
    make(api_server, namespace, how)
    token = api_server.service_account(namespace, "person")
    async with owner_of(switch, api_server, namespace, token, tmp_path) as owner:
        needed = list(owner.needed_rights())
        patch = next(right for right in needed if right.verb == "patch")

        def allow(rights: list[Right]) -> None:
            grants.grant(api_server, namespace, "person", [*rights, Right("list", switch.resource, namespace)])

        allow([right for right in needed if right != patch])
        await owner.start()
        blocked = [check for check in await owner.checks() if check.severity == "blocks"]
        assert [(check.code, dict(check.params)) for check in blocked] == [("missing_right", patch.params)]
        with pytest.raises(ClusterError) as caught:
            await owner.release()
        assert caught.value.code == "cluster_forbidden"
        assert (caught.value.params["verb"], caught.value.params["resource"]) == ("patch", patch.params["resource"])

        allow(needed)
        for _ in range(100):  # the API server's own view of the roles follows a moment later
            if not [check for check in await owner.checks() if check.severity == "blocks"]:
                break
            await asyncio.sleep(0.1)
        assert (await owner.release()).kind == "released"


async def test_a_stateful_set_of_several_pods_is_not_scaled_down_from_inside(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    make(api_server, namespace, manifests.stateful_set)
    api_server.patch("apps/v1/StatefulSet", "w", {"spec": {"replicas": 3}}, namespace, subresource="scale")
    async with owner_of(SET, api_server, namespace, api_server.admin_token, tmp_path) as owner:
        await owner.start()
        found = {check.code: check for check in await owner.checks()}
        assert found["several_replicas"].severity == "blocks" and found["several_replicas"].params == {"count": 3}


# --- a real server in a pod -----------------------------------------------------------------------------------------


def test_a_notebook_v1_goes_and_its_kernels_come_back_from_their_checkpoints(standin: StandIn) -> None:
    standin.create_notebook_v1("book", command("--PauseApp.save_timeout=0.5", application="jupyter_server"))
    tab = NotebookClient(f"{standin.origin}/notebook/{standin.namespace}/book/")

    def state(check: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            try:
                found: dict[str, Any] = tab.request("GET", "jupyter-pause/api/state")
            except httpx.HTTPError:
                return None
            return found if check(found) else None

        found = standin.wait_for(look, what, 120)
        assert found is not None
        return found

    try:
        known = state(lambda s: s["workspace"] and s["can_pause"], "the owner is known")
        assert (known["owner"], known["scope"], known["workspace"]["stateful"]) == ("notebook_v1", "workspace", False)
        body = {"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
        kernel = tab.request("POST", "api/sessions", body)["kernel"]["id"]
        before = tab.execute(kernel, "import secrets; token = secrets.token_hex(8); print(token)")
        tab.request("POST", "jupyter-pause/api/pause", {"scope": "workspace"})
        standin.wait_for(lambda: standin.find_pod("book-0") is None, "the pod is gone")

        gone = {"metadata": {"annotations": {notebook_v1.STOPPED: None}}}
        standin.api_server.patch("kubeflow.org/v1/Notebook", "book", gone, standin.namespace)
        back = state(lambda s: s["kernels"], "the next server has the session")
        assert [(row["id"], row["state"]) for row in back["kernels"]] == [(kernel, "paused")]
        operation = tab.request("POST", "jupyter-pause/api/resume", {"kernel": kernel})["operation"]
        ended = standin.wait_for(
            lambda: (
                (now := tab.request("GET", f"jupyter-pause/api/operations/{operation['id']}"))["state"] == "done"
                and now
            ),
            "the kernel is resumed",
        )
        assert ended["outcome"] == "restored"
        assert tab.execute(kernel, "print(token)") == before
    finally:
        tab.close()
