# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in's Kubeflow and kubelet against facts/cluster.md section 2: every test names the words it comes from."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx

from .standin.cluster import StandIn
from .standin.kubeflow import LABEL

PROGRAM = [sys.executable, str(Path(__file__).parent / "standin" / "small_program.py")]


def ask(standin: StandIn, workspace: str, order: str = "") -> dict[str, object]:
    """What the program in the pod says, through the gateway."""
    answer = httpx.get(standin.url(workspace) + order, trust_env=False, timeout=10)
    answer.raise_for_status()
    about: dict[str, object] = answer.json()
    return about


def test_a_workspace_is_a_statefulset_of_one_pod(standin: StandIn) -> None:
    """Section 1: "turns a Workspace into a StatefulSet of 1 pod"; section 2: container `main`, the pod's label."""
    standin.create_workspace("w", PROGRAM, stateful=False)
    workspace = standin.wait_for_state("w", "Running")
    sets = standin.api_server.list("apps/v1/StatefulSet", standin.namespace)
    pod = standin.pod("w")
    assert len(sets) == 1 and sets[0]["metadata"]["ownerReferences"][0]["uid"] == workspace["metadata"]["uid"]
    assert pod is not None and pod["metadata"]["ownerReferences"][0]["uid"] == sets[0]["metadata"]["uid"]
    assert pod["metadata"]["labels"][LABEL] == "w"
    assert [container["name"] for container in pod["spec"]["containers"]] == ["main"]


def test_status_fields(standin: StandIn) -> None:
    """Section 2: `status.state`, `pauseTime` and `lastRunningTime` in milliseconds, `podTemplatePod`."""
    standin.create_workspace("w", PROGRAM, stateful=False)
    status = standin.wait_for_state("w", "Running")["status"]
    pod = standin.pod("w")
    assert pod is not None
    assert status["pauseTime"] == 0 and status["lastRunningTime"] > 1_600_000_000_000
    assert status["podTemplatePod"]["name"] == pod["metadata"]["name"]
    assert status["podTemplatePod"]["serviceAccountName"] == "ws-w"
    assert status["podTemplatePod"]["containers"] == [{"name": "main"}]


def test_environment_of_the_container(standin: StandIn) -> None:
    """Section 2, "Environment": NB_PREFIX, JUPYTERHUB_SERVICE_PREFIX, the namespace at the service account's path."""
    standin.create_workspace("w", PROGRAM, {"MORE": "yes"}, stateful=False)
    standin.wait_for_state("w", "Running")
    about = ask(standin, "w")
    prefix = f"/workspace/connect/{standin.namespace}/w/jupyterlab/"
    env = about["env"]
    assert isinstance(env, dict)
    assert env["NB_PREFIX"] == env["JUPYTERHUB_SERVICE_PREFIX"] == prefix == about["path"]
    assert env["MORE"] == "yes"
    assert about["namespace"] == standin.namespace
    assert about["pid"] == 1
    pod = standin.pod("w")
    assert pod is not None
    assert about["hostname"] == env["HOSTNAME"] == pod["metadata"]["name"]


def test_the_pod_may_patch_its_own_workspace(standin: StandIn) -> None:
    """Section 2: "The kind gives the pod's service account cluster roles (usually `kubeflow-edit`)"."""
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for_state("w", "Running")
    pods_own = standin.api_server.api(str(ask(standin, "w")["account"]))
    assert pods_own.can("patch", "kubeflow.org", "workspaces", standin.namespace, name="w")
    assert not pods_own.can("patch", "kubeflow.org", "workspaces", "default", name="w")
    assert not pods_own.can("create", "podsnapshot.gke.io", "podsnapshots", standin.namespace)


def test_pause_and_cold_resume(standin: StandIn) -> None:
    """Section 2: "no pod and paused -> `Paused`"; without the add-on a resume is a new process with the same files."""
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for_state("w", "Running")
    (standin.home("w") / "notes.txt").write_text("kept", encoding="utf-8")
    first = ask(standin, "w", "scratch")
    pod = standin.pod("w")
    assert pod is not None and first["scratch"]
    process = standin.pod_process(pod["metadata"]["name"])
    assert process is not None

    standin.pause("w")
    paused = standin.wait_for_state("w", "Paused")
    assert paused["status"]["pauseTime"] > 0
    assert not process.is_running()
    assert standin.pod("w") is None

    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    second = ask(standin, "w")
    assert second["token"] != first["token"]
    assert second["hostname"] == first["hostname"]
    assert second["home"] == ["notes.txt"]
    assert second["scratch"] is False
    assert standin.workspace("w")["status"]["pauseTime"] == 0
