# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in's backend against facts/cluster.md section 2, "Backend REST", and the gateway in front of the pods."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .standin.cluster import StandIn
from .test_standin_kubeflow import PROGRAM, ask


def call(standin: StandIn, method: str, path: str, **options: Any) -> httpx.Response:
    """One request to the backend; `path` begins at `workspaces/`."""
    return httpx.request(method, f"{standin.origin}/workspaces/api/v1/{path}", trust_env=False, timeout=30, **options)


@pytest.fixture
def workspace(standin: StandIn) -> str:
    """The path of a workspace `w` that runs."""
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for_state("w", "Running")
    return f"workspaces/{standin.namespace}/w"


def test_list_items_carry_the_state(standin: StandIn, workspace: str) -> None:
    """ "List items carry `paused`, `pausedTime`, `lastRunningTime`, `state`, `stateMessage`, `activity`"."""
    (item,) = call(standin, "GET", f"workspaces/{standin.namespace}").json()["data"]
    assert (item["name"], item["namespace"], item["paused"], item["state"]) == (
        "w",
        standin.namespace,
        False,
        "Running",
    )
    assert item["pausedTime"] == 0 and item["lastRunningTime"] > 0
    assert item["stateMessage"] and set(item["activity"]) >= {"lastActivity", "lastUpdate"}
    assert item["services"][0]["httpService"]["httpPath"] == f"/workspace/connect/{standin.namespace}/w/jupyterlab/"


def test_one_workspace_is_what_an_update_sends_back(standin: StandIn, workspace: str) -> None:
    """The public source, models/workspaces/types_write.go: revision, paused, podTemplate, and no state."""
    data = call(standin, "GET", workspace).json()["data"]
    assert set(data) == {"revision", "paused", "podTemplate"}
    assert data["paused"] is False
    assert data["podTemplate"] == {
        "podMetadata": {"labels": {}, "annotations": {}},
        "volumes": {"home": "home-w"},
        "options": {"imageConfig": "image", "podConfig": "size"},
    }


def test_the_revision_is_of_the_spec_only(standin: StandIn, workspace: str) -> None:
    """models/common/funcs.go, CalculateRevision: uid, name and generation; annotations and status do not change it."""
    before = call(standin, "GET", workspace).json()["data"]["revision"]
    kind = "kubeflow.org/v1beta1/Workspace"
    standin.api_server.patch(kind, "w", {"metadata": {"annotations": {"more": "1"}}}, standin.namespace)
    assert call(standin, "GET", workspace).json()["data"]["revision"] == before
    standin.pause("w")
    assert call(standin, "GET", workspace).json()["data"]["revision"] != before


def test_an_update_changes_the_size_of_a_paused_workspace(standin: StandIn, workspace: str) -> None:
    """repo.go, UpdateWorkspace; workspace_controller.go: the StatefulSet follows the Workspace, paused or not."""
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    data = call(standin, "GET", workspace).json()["data"]
    data["podTemplate"]["options"]["podConfig"] = "other"
    answer = call(standin, "PUT", workspace, json={"data": data})
    assert answer.status_code == 200, answer.text
    changed = answer.json()["data"]
    assert changed["podTemplate"] == data["podTemplate"] and changed["revision"] != data["revision"]
    again = call(standin, "PUT", workspace, json={"data": data})
    assert again.status_code == 409
    assert again.json()["error"]["message"] == "current workspace revision does not match request"
    resumed = call(standin, "POST", f"{workspace}/actions/pause", json={"data": {"paused": False}})
    assert resumed.status_code == 200
    standin.wait_for_state("w", "Running")
    pod = standin.pod("w")
    assert pod is not None and pod["spec"]["nodeSelector"] == {"cloud.google.com/machine-family": "n2"}


def test_what_an_update_is_refused_for(standin: StandIn, workspace: str) -> None:
    """types_write.go, Validate: 422 without a revision or a size; the controller's webhook: 422 for a size that the
    kind lacks; funcs_write.go: 422 for a volume that may not be mounted; workspaces_handler.go: 403, 404."""
    data = call(standin, "GET", workspace).json()["data"]

    def put(changes: dict[str, Any], path: str = workspace, size: str = "other") -> tuple[int, str]:
        options = {**data["podTemplate"]["options"], "podConfig": size}
        body = {**data, "podTemplate": {**data["podTemplate"], "options": options}, **changes}
        error = call(standin, "PUT", path, json={"data": body}).json()["error"]
        causes = error.get("cause", {}).get("validation_errors", [{}])
        return int(error["code"]), str(causes[0].get("message", error["message"]))

    assert put({"revision": ""}) == (422, "revision is required")
    assert put({}, size="")[0] == 422
    assert put({"more": 1})[0] == 400
    code, text = put({}, size="nowhere")
    assert code == 422 and 'podConfig with id "nowhere" not found' in text
    assert put({}, path=workspace.replace("/w", "/nobody"))[0] == 404
    standin.faults.volume_not_mountable = True
    code, text = put({})
    assert code == 422 and "not mountable" in text
    standin.faults.updates_forbidden = True
    assert put({})[0] == 403
    assert standin.workspace("w")["spec"]["podTemplate"]["options"]["podConfig"] == "size"


def test_the_choices_of_a_kind(standin: StandIn, workspace: str) -> None:
    """workspacekind_podtemplate_options_handler.go and models/workspacekinds/podtemplate/options/types.go; an item of
    the list names kind and choice: models/workspaces/types.go, WorkspaceListItem."""
    (item,) = call(standin, "GET", f"workspaces/{standin.namespace}").json()["data"]
    assert item["podTemplate"]["options"]["podConfig"]["current"]["displayName"] == "The first size"
    kind = f"workspacekinds/{item['workspaceKind']['name']}"
    context = {"namespace": {"name": standin.namespace}, "imageConfig": {"id": "image"}}
    path = f"{kind}/podtemplate/options/listvalues"
    listed = call(standin, "POST", path, json={"data": {"context": context}}).json()["data"]
    sizes = listed["podConfig"]["values"]
    assert [(size["id"], size["hidden"]) for size in sizes] == [("size", False), ("other", False), ("old", True)]
    assert sizes[1]["labels"] == [{"key": "cpu", "value": "4"}] and sizes[1]["restrictions"] == {"deny": False}
    whole = call(standin, "GET", kind).json()["data"]
    assert whole["podTemplate"]["options"]["podConfig"] == listed["podConfig"]
    assert call(standin, "POST", path, json={}).status_code == 422
    wrong = {"data": {"context": {"imageConfig": {"id": "nowhere"}}}}
    assert call(standin, "POST", path, json=wrong).status_code == 422
    assert call(standin, "GET", "workspacekinds/nowhere").status_code == 404
    standin.faults.kinds_forbidden = True
    assert call(standin, "GET", kind).status_code == call(standin, "POST", path, json={}).status_code == 403


def test_pause_and_resume(standin: StandIn, workspace: str) -> None:
    """`POST .../actions/pause` with `{"data": {"paused": true|false}}`."""
    paused = call(standin, "POST", f"{workspace}/actions/pause", json={"data": {"paused": True}})
    assert (paused.status_code, paused.json()) == (200, {"data": {"paused": True}})
    standin.wait_for_state("w", "Paused")
    resumed = call(standin, "POST", f"{workspace}/actions/pause", json={"data": {"paused": False}})
    assert (resumed.status_code, resumed.json()) == (200, {"data": {"paused": False}})
    standin.wait_for_state("w", "Running")


def test_a_resume_needs_paused_and_the_state_paused(standin: StandIn, workspace: str) -> None:
    """ "409 (not in a valid state: resume needs `paused: true` **and** state `Paused`)"."""
    running = call(standin, "POST", f"{workspace}/actions/pause", json={"data": {"paused": False}})
    assert running.status_code == 409
    error = running.json()["error"]
    assert error["code"] == "409" and error["message"] and error["cause"]["conflict_cause"]

    standin.faults.status_lag = True
    standin.pause("w")
    standin.wait_for(lambda: standin.pod("w") is None, "the pod is gone")
    assert standin.state("w") != "Paused"
    too_early = call(standin, "POST", f"{workspace}/actions/pause", json={"data": {"paused": False}})
    assert too_early.status_code == 409


def test_an_empty_data_object_is_read_as_not_paused(standin: StandIn, workspace: str) -> None:
    """ "An empty `data` object is read as `paused: false`: always send the field"."""
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    answer = call(standin, "POST", f"{workspace}/actions/pause", json={"data": {}})
    assert (answer.status_code, answer.json()) == (200, {"data": {"paused": False}})


@pytest.mark.parametrize(
    ("status", "options"),
    [
        (400, {"content": "{", "headers": {"Content-Type": "application/json"}}),
        (400, {"json": {"data": {"paused": "yes"}}}),
        (400, {"json": {"data": {"paused": True, "more": 1}}}),
        (415, {"content": "{}", "headers": {"Content-Type": "text/plain"}}),
        (422, {"json": {}}),
    ],
)
def test_errors_come_in_an_envelope(standin: StandIn, workspace: str, status: int, options: dict[str, Any]) -> None:
    """ "errors 400 401 403 404 409 413 415 422 500, each in an error envelope"."""
    answer = call(standin, "POST", f"{workspace}/actions/pause", **options)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == str(status)


def test_who_may(standin: StandIn, workspace: str) -> None:
    """401, 403 and 404."""
    pause = {"json": {"data": {"paused": True}}}
    assert call(standin, "POST", f"workspaces/{standin.namespace}/nobody/actions/pause", **pause).status_code == 404
    standin.faults.not_authorized = True
    assert call(standin, "POST", f"{workspace}/actions/pause", **pause).status_code == 403
    standin.faults.login_ended = True
    answer = call(standin, "POST", f"{workspace}/actions/pause", **pause)
    assert answer.status_code == 401 and answer.json()["error"]["code"] == "401"
    assert standin.workspace("w")["spec"]["paused"] is False


def test_the_gateway_answers_503_without_a_ready_pod(standin: StandIn, workspace: str) -> None:
    """Section 3: "the pod leaves its Service at once"; and nothing but workspaces is behind it."""
    assert ask(standin, "w")["pid"] == 1
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    assert httpx.get(standin.url("w"), trust_env=False).status_code == 503
    assert httpx.get(standin.origin + "/elsewhere", trust_env=False).status_code == 404
