# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The Kubeflow owner against a real API server; the test itself writes what a controller would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.client import ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import WORKSPACES
from jupyter_pause.owners import origin
from jupyter_pause.owners.kubeflow import KubeflowOwner
from jupyter_pause.owners.kubeflow_state import CHECKPOINT_STATE, PREFIX

from .apiserver import ApiServer
from .standin.manifests import workspace

KIND = "kubeflow.org/v1beta1/Workspace"


@asynccontextmanager
async def owner_of(server: ApiServer, namespace: str, folder: Path, **more: Any) -> AsyncIterator[KubeflowOwner]:
    token = folder / "token"
    token.write_text(server.admin_token)
    config = ClusterConfig(host=server.url, ca_file=Path(server.ca), namespace=namespace, token_file=token)
    client = ClusterClient(config, clock=SYSTEM_CLOCK)
    owner = KubeflowOwner(client, namespace=namespace, name="w", clock=SYSTEM_CLOCK, **more)
    try:
        yield owner
    finally:
        await owner.stop()


def make(server: ApiServer, namespace: str, state: str = "Running") -> None:
    server.as_admin.create(workspace(namespace, "w", "some-kind", stateful=True))
    set_state(server, namespace, state)


def set_state(server: ApiServer, namespace: str, state: str) -> None:
    server.as_admin.patch(KIND, "w", {"status": {"state": state}}, namespace, subresource="status")


async def until(check: Any, what: str) -> None:
    for _ in range(600):
        if check():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never happened: {what}")


async def test_one_request_stays_open_and_nothing_else_is_asked_while_all_is_well(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    make(api_server, namespace)
    async with owner_of(api_server, namespace, tmp_path) as owner:
        await owner.start()
        view = owner.view()
        assert view.state == "running" and view.observed_at is not None and view.error is None
        asked = dict(owner._client.requests)
        await asyncio.sleep(1.0)
        assert dict(owner._client.requests) == asked == {("list", "workspaces"): 1, ("watch", "workspaces"): 1}
        set_state(api_server, namespace, "Error")
        await until(lambda: ("watch", "events") in owner._client.requests, "pod and events are followed")
        set_state(api_server, namespace, "Running")
        await until(lambda: owner._pods is None, "they are left again")


async def test_a_release_without_an_addon_is_a_release_and_leaves_its_note(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    make(api_server, namespace)
    async with owner_of(api_server, namespace, tmp_path) as owner:
        await owner.start()
        await owner.quiet()
        assert (await owner.release()).kind == "released"
        written = api_server.get(KIND, "w", namespace)
        assert written["spec"]["paused"] is True
        assert json.loads(written["metadata"]["annotations"][origin.ANNOTATION])["version"] == origin.VERSION
        assert owner.view().state == "pausing", "S15: our own write counts, although no watch has brought it"
        assert (await owner.release()).kind == "released", "asking twice is one pause"
        with pytest.raises(ClusterError) as caught:
            await owner._client.get(WORKSPACES, "w", namespace)
        assert caught.value.code == "cluster_disconnected", "the release opens connections for itself only"
        assert await owner.take_back() is True
        assert api_server.get(KIND, "w", namespace)["spec"]["paused"] is False
        await owner.wake()
        await until(lambda: owner.view().state == "running", "it is followed again")


async def test_a_pause_that_is_held_can_be_taken_back_until_the_snapshot_is_there(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    make(api_server, namespace)
    annotate = {"metadata": {"annotations": {CHECKPOINT_STATE: "Checkpointing"}}}
    async with owner_of(api_server, namespace, tmp_path) as owner:
        await owner.start()
        api_server.patch(KIND, "w", annotate, namespace)
        await until(lambda: owner.view().phase == "snapshotting", "somebody else's pause is seen")
        assert (await owner.release()).kind == "held"
        assert await owner.take_back() is True
        assert CHECKPOINT_STATE not in api_server.get(KIND, "w", namespace)["metadata"]["annotations"]
        assert owner.view().state == "running"
        assert await owner.take_back() is True, "there is nothing to take back any more"

        ready = {"metadata": {"annotations": {CHECKPOINT_STATE: "Ready", PREFIX + "last-checkpoint-name": "s"}}}
        api_server.patch(KIND, "w", {**ready, "spec": {"paused": True}}, namespace)
        assert await owner.take_back() is False, "the snapshot is there, and the pod goes"
        assert api_server.get(KIND, "w", namespace)["spec"]["paused"] is True


async def test_two_resumes_are_one(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    make(api_server, namespace)
    api_server.patch(KIND, "w", {"spec": {"paused": True}}, namespace)
    async with owner_of(api_server, namespace, tmp_path) as owner:
        await asyncio.gather(owner.reclaim(), owner.reclaim())
        assert api_server.get(KIND, "w", namespace)["spec"]["paused"] is False
        generation = api_server.get(KIND, "w", namespace)["metadata"]["generation"]
        await owner.reclaim()
        assert api_server.get(KIND, "w", namespace)["metadata"]["generation"] == generation


async def test_a_workspace_that_is_not_there_is_unknown(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    async with owner_of(api_server, namespace, tmp_path) as owner:
        assert owner.view().state == "unknown" and owner.view().observed_at is None
        await owner.start()
        view = owner.view()
        assert view.state == "unknown" and view.error is not None and view.error.code == "workspace_missing"
        with pytest.raises(ClusterError) as caught:
            await owner.release()
        assert caught.value.code == "cluster_not_found"


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/workspaces/", "/workspaces/"),
        ("team/workspaces", "/team/workspaces/"),
        ("/", "/"),
    ],
)
async def test_where_the_page_of_workspaces_is(api_server: ApiServer, tmp_path: Path, path: str, page: str) -> None:
    async with owner_of(api_server, "team", tmp_path, workspaces_path=path) as owner:
        door = owner.door()
        assert (door.page, door.api) == (page, f"{page}api/v1/workspaces/team/w")
