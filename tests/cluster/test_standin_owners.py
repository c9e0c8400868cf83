# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in's other owners against facts/cluster.md section 6."""

from __future__ import annotations

from typing import Any

import httpx

from .rest import Object
from .standin.api import is_true
from .standin.cluster import StandIn
from .test_standin_kubeflow import PROGRAM


def ready(standin: StandIn, pod: str) -> Object:
    """The pod, once it is Ready."""

    def check() -> Object | None:
        found = standin.find_pod(pod)
        return found if found is not None and is_true(found, "Ready") else None

    found = standin.wait_for(check, f"{pod} is Ready")
    assert found is not None
    return found


def said_by(pod: Object) -> dict[str, Any]:
    """What the program in the pod says, without a gateway."""
    answer = httpx.get(f"http://{pod['status']['podIP']}:8888/", trust_env=False, timeout=10)
    about: dict[str, Any] = answer.json()
    return about


def gone(standin: StandIn, pod: str) -> None:
    standin.wait_for(lambda: standin.find_pod(pod) is None, f"{pod} is gone")


def test_notebook_v1(standin: StandIn) -> None:
    """ "annotation `kubeflow-resource-stopped: <RFC 3339>` | remove it | lost"."""
    standin.create_notebook_v1("book", PROGRAM)
    first = said_by(ready(standin, "book-0"))
    assert first["env"]["NB_PREFIX"] == f"/notebook/{standin.namespace}/book"
    page = httpx.get(f"{standin.origin}/notebook/{standin.namespace}/book/", trust_env=False)
    assert page.json()["token"] == first["token"]

    kind = "kubeflow.org/v1/Notebook"
    stop = {"metadata": {"annotations": {"kubeflow-resource-stopped": "2026-01-01T18:00:00Z"}}}
    standin.api_server.patch(kind, "book", stop, standin.namespace)
    gone(standin, "book-0")
    standin.wait_for(
        lambda: standin.api_server.get(kind, "book", standin.namespace)["status"]["readyReplicas"] == 0, "stopped"
    )
    go_on = {"metadata": {"annotations": {"kubeflow-resource-stopped": None}}}
    standin.api_server.patch(kind, "book", go_on, standin.namespace)
    assert said_by(ready(standin, "book-0"))["token"] != first["token"]


def test_sandbox(standin: StandIn) -> None:
    """ "`spec.operatingMode: Suspended` | `Running`"."""
    standin.create_sandbox("box", PROGRAM)
    first = said_by(ready(standin, "box"))
    kind = "agents.x-k8s.io/v1beta1/Sandbox"
    standin.wait_for(lambda: is_true(standin.api_server.get(kind, "box", standin.namespace), "Ready"), "Ready")
    standin.api_server.patch(kind, "box", {"spec": {"operatingMode": "Suspended"}}, standin.namespace)
    gone(standin, "box")
    standin.api_server.patch(kind, "box", {"spec": {"operatingMode": "Running"}}, standin.namespace)
    assert said_by(ready(standin, "box"))["token"] != first["token"]


def test_a_bare_stateful_set(standin: StandIn) -> None:
    """ "scale subresource to 0 | 1"."""
    standin.create_stateful_set("set", PROGRAM)
    first = said_by(ready(standin, "set-0"))
    kind = "apps/v1/StatefulSet"
    for replicas in (0, 1):
        scale = {"spec": {"replicas": replicas}}
        standin.api_server.patch(kind, "set", scale, standin.namespace, subresource="scale")
        if replicas == 0:
            gone(standin, "set-0")
    assert said_by(ready(standin, "set-0"))["token"] != first["token"]
    found = standin.api_server.get(kind, "set", standin.namespace)
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]


def test_what_an_owner_made_goes_with_it(standin: StandIn) -> None:
    """Owner references: Workspace, StatefulSet, pod."""
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for_state("w", "Running")
    standin.api_server.delete("kubeflow.org/v1beta1/Workspace", "w", standin.namespace)
    standin.wait_for(lambda: standin.pod("w") is None, "the pod is gone")
    assert standin.api_server.list("apps/v1/StatefulSet", standin.namespace) == []
