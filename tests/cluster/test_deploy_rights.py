# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The rights that `deploy/` gives to pods, against what a real server in a pod asks for (by the audit log)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .apiserver import ApiServer, Request
from .standin.cluster import StandIn
from .workspace_driver import API, SECRET_CELL, workspace

DEPLOY = Path(__file__).parents[2] / "deploy"
ROLE = "jupyter-pause"

#: Every account may ask about itself.
EVERYBODY = {("create", "selfsubjectaccessreviews")}


def granted(file: str) -> set[tuple[str, str]]:
    """(verb, plural) of a shipped role."""
    role = yaml.safe_load((DEPLOY / file).read_text(encoding="utf-8"))
    return {(verb, what) for rule in role["rules"] for what in rule["resources"] for verb in rule["verbs"]}


def asked(requests: list[Request]) -> set[tuple[str, str]]:
    """(verb, plural) of requests, subresources with their resource."""
    found = set()
    for request in requests:
        parts = request.uri.partition("?")[0].strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        found.add((request.verb, parts[2] if parts[0] == "namespaces" and len(parts) > 2 else parts[0]))
    return found


def shipped(server: ApiServer) -> None:
    """The ClusterRole that a WorkspaceKind names."""
    server.apply((DEPLOY / "kubeflow" / "clusterrole.yaml").read_text(encoding="utf-8"))


def test_a_server_in_a_pod_needs_the_shipped_rights_and_no_others(standin: StandIn) -> None:
    """A snapshot that fails, one that works, the way back, the list of snapshots, and a deletion."""
    shipped(standin.api_server)
    with workspace(standin, "--PauseApp.snapshot_timeout=5", roles=[ROLE]) as w:
        kernel = w.notebook()
        before = w.tab.execute(kernel, SECRET_CELL)
        standin.faults.snapshot_fails = "the bucket is gone"
        w.ask()
        w.wait_for(lambda state: _has_ended(state), "the failed snapshot is taken back")
        standin.faults.snapshot_fails = ""
        w.ask()
        w.paused()
        w.resume()
        assert w.report()["outcome"] == "restored"
        assert w.tab.execute(kernel, "print(token, os.getpid())") == before
        assert w.tab.request("GET", API + "snapshots") == {"snapshots": []}, "used up by the resume"

    user = f"system:serviceaccount:{standin.namespace}:ws-w"
    requests = list(standin.api_server.audit(user=user))
    refused = asked([request for request in requests if request.status == 403])
    assert refused <= granted("rbac/cluster-read.yaml"), "what is not granted is optional, and shipped beside"
    used = asked([request for request in requests if request.status != 403]) - EVERYBODY
    role = granted("kubeflow/clusterrole.yaml")
    assert used <= role
    # What this story does not reach: a snapshot that is looked at and deleted, and a start that waits.
    assert role - used <= {("get", "podsnapshots"), ("delete", "podsnapshots"), *WAITING}, role - used


#: Used while the owner says that a pod waits, or that something is wrong; test_kubeflow_owner.py has those stories.
WAITING = {("list", "pods"), ("watch", "pods"), ("list", "events"), ("watch", "events")}


def _has_ended(state: dict[str, Any]) -> bool:
    return state["operation"] is None and state["workspace"]["state"] == "running"
