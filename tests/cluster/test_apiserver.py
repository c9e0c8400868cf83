# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The tests' cluster is a real one: it refuses what a cluster refuses. Else tests against it would prove little."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness import until

from . import resources, tokens
from .apiserver import ApiServer
from .rest import ApiError, Rest

ROOT = Path(__file__).resolve().parents[2]
WORKSPACE = "kubeflow.org/v1beta1/Workspace"
SNAPSHOT = "podsnapshot.gke.io/v1/PodSnapshot"


def workspace(name: str = "lab", **spec: Any) -> dict[str, Any]:
    """A Workspace as Kubeflow's interface makes one."""
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": {
            "kind": "jupyterlab",
            "podTemplate": {
                "volumes": {"home": "home"},
                "options": {"imageConfig": "jupyterlab_scipy", "podConfig": "tiny_cpu"},
            },
            **spec,
        },
    }


def snapshot(name: str) -> dict[str, Any]:
    """A PodSnapshot as GKE makes one."""
    return {
        "apiVersion": "podsnapshot.gke.io/v1",
        "kind": "PodSnapshot",
        "metadata": {"name": name},
        "spec": {"policyName": "ws-lab-policy"},
    }


def allow(server: ApiServer, namespace: str, account: str, group: str, resource: str, *verbs: str) -> Rest:
    """The API as a service account with these rights in this namespace and no others."""
    token = server.service_account(namespace, account)
    role = {"kind": "Role", "name": account, "apiGroup": "rbac.authorization.k8s.io"}
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}]
    metadata = {"name": account, "namespace": namespace}
    base = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
    server.apply({**base, "kind": "Role", "rules": rules})
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    server.apply({**base, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]})
    return server.api(token)


def refused(status: int, call: Any, *arguments: Any, **options: Any) -> ApiError:
    """The error of a call that must be refused with this status."""
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    assert caught.value.status == status
    return caught.value


def test_rbac_refuses_what_no_role_allows(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    nobody = api_server.api(api_server.service_account(namespace, "nobody"))
    error = refused(403, nobody.get, WORKSPACE, "lab", namespace)
    assert f"system:serviceaccount:{namespace}:nobody" in error.message
    assert not nobody.can("get", "kubeflow.org", "workspaces", namespace)


def test_rbac_allows_what_a_role_allows_and_nothing_beside(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    reader = allow(api_server, namespace, "reader", "kubeflow.org", "workspaces", "get")
    assert reader.get(WORKSPACE, "lab", namespace)["spec"]["paused"] is False
    assert reader.can("get", "kubeflow.org", "workspaces", namespace)
    assert not reader.can("patch", "kubeflow.org", "workspaces", namespace)
    refused(403, reader.patch, WORKSPACE, "lab", {"spec": {"paused": True}}, namespace)
    refused(403, reader.get, WORKSPACE, "lab", api_server.namespace())


def test_somebody_without_a_token_is_nobody(api_server: ApiServer, namespace: str) -> None:
    refused(403, api_server.api(None).list, "v1/Pod", namespace)
    refused(401, api_server.api("not-a-token").list, "v1/Pod", namespace)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"paused": "yes"}, "spec.paused"),
        ({"podTemplate": {"volumes": {"home": "home"}}}, "spec.podTemplate.options"),
        ({"kind": "No Kind"}, "spec.kind"),
    ],
)
def test_a_workspace_with_a_bad_field_is_refused(
    api_server: ApiServer, namespace: str, change: dict[str, Any], complaint: str
) -> None:
    error = refused(422, api_server.as_admin.create, workspace(**change), namespace)
    assert complaint in error.message


def test_the_kind_of_a_workspace_does_not_change(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    error = refused(422, api_server.patch, WORKSPACE, "lab", {"spec": {"kind": "codeserver"}}, namespace)
    assert "immutable" in error.message


def test_status_is_a_subresource_with_its_documented_values(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    api_server.patch(WORKSPACE, "lab", {"status": {"state": "Running"}}, namespace)
    assert "status" not in api_server.get(WORKSPACE, "lab", namespace), (
        "a write to the object does not reach its status"
    )

    status = {"state": "Paused", "stateMessage": "", "pauseTime": 1767225600000, "lastRunningTime": 1767220000000}
    written = api_server.patch(WORKSPACE, "lab", {"status": status}, namespace, subresource="status")["status"]
    assert written["pauseTime"] == 1767225600000
    assert written["pendingRestart"] is False

    bad = {"status": {"state": "Sleeping"}}
    error = refused(422, api_server.patch, WORKSPACE, "lab", bad, namespace, subresource="status")
    assert '"Running"' in error.message


def test_a_patch_with_a_test_on_the_current_value(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    pause = [
        {"op": "test", "path": "/spec/paused", "value": False},
        {"op": "replace", "path": "/spec/paused", "value": True},
    ]
    assert api_server.patch(WORKSPACE, "lab", pause, namespace)["spec"]["paused"] is True
    refused(422, api_server.patch, WORKSPACE, "lab", pause, namespace)


def test_an_outdated_write_is_a_conflict(api_server: ApiServer, namespace: str) -> None:
    before = api_server.apply(workspace(), namespace)[0]
    api_server.patch(WORKSPACE, "lab", {"spec": {"paused": True}}, namespace)
    refused(409, api_server.as_admin.replace, before)


@pytest.mark.parametrize(
    "document",
    [
        {
            "apiVersion": "podsnapshot.gke.io/v1",
            "kind": "PodSnapshotPolicy",
            "metadata": {"name": "p"},
            "spec": {"selector": {}, "storageConfigName": "s", "triggerConfig": {"type": "hourly"}},
        },
        {
            "apiVersion": "podsnapshot.gke.io/v1",
            "kind": "PodSnapshotStorageConfig",
            "metadata": {"name": "s"},
            "spec": {"snapshotStorageConfig": {"gcs": {"path": "no-bucket"}}},
        },
        {
            "apiVersion": "podsnapshot.gke.io/v1",
            "kind": "PodSnapshotManualTrigger",
            "metadata": {"name": "t"},
            "spec": {},
        },
        {
            "apiVersion": "agents.x-k8s.io/v1beta1",
            "kind": "Sandbox",
            "metadata": {"name": "s"},
            "spec": {"operatingMode": "Paused", "podTemplate": {"spec": {"containers": [{"name": "main"}]}}},
        },
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "Notebook",
            "metadata": {"name": "n"},
            "spec": {"template": {"spec": {"containers": []}}},
        },
    ],
    ids=lambda document: document["kind"],
)
def test_every_kind_refuses_what_its_schema_does_not_know(
    api_server: ApiServer, namespace: str, document: dict[str, Any]
) -> None:
    refused(422, api_server.as_admin.create, document, namespace)


def test_only_gke_makes_and_changes_podsnapshots(api_server: ApiServer, namespace: str) -> None:
    gke = api_server.api(resources.gke_token(api_server))
    # The policy reaches the API server's admission a moment after it was written.
    _until_refused(lambda number: api_server.as_admin.create(snapshot(f"early-{number}"), namespace))

    error = refused(403, api_server.as_admin.create, snapshot("mine"), namespace)
    assert "GKE" in error.message
    gke.create(snapshot("theirs"), namespace)
    gke.patch(SNAPSHOT, "theirs", {"metadata": {"labels": {"by": "gke"}}}, namespace)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    gke.patch(SNAPSHOT, "theirs", ready, namespace, subresource="status")

    refused(403, api_server.patch, SNAPSHOT, "theirs", {"metadata": {"labels": {"by": "me"}}}, namespace)
    refused(403, api_server.patch, SNAPSHOT, "theirs", ready, namespace, subresource="status")
    assert api_server.get(SNAPSHOT, "theirs", namespace)["metadata"]["labels"] == {"by": "gke"}
    assert [item["metadata"]["name"] for item in api_server.list(SNAPSHOT, namespace)][-1] == "theirs"
    api_server.delete(SNAPSHOT, "theirs", namespace)


def _until_refused(create: Any) -> None:
    for number in range(600):
        try:
            create(number)
        except ApiError:
            return
        time.sleep(0.05)
    raise AssertionError("the admission policy never came into force")


def test_a_token_says_when_it_ends_and_ends(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    reader = allow(api_server, namespace, "reader", "kubeflow.org", "workspaces", "get")
    reader.get(WORKSPACE, "lab", namespace)

    ended = api_server.service_account(namespace, "reader", seconds=-61)
    assert tokens.claims(ended)["exp"] < time.time()
    refused(401, api_server.api(ended).get, WORKSPACE, "lab", namespace)

    short = api_server.service_account(namespace, "reader", seconds=120)
    assert api_server.api(short).get(WORKSPACE, "lab", namespace)
    head, payload, signature = short.split(".")
    forged = ".".join((head, payload, signature[::-1]))
    refused(401, api_server.api(forged).get, WORKSPACE, "lab", namespace)


def test_revoked_tokens_stop_working(api_server: ApiServer, namespace: str) -> None:
    old = api_server.service_account(namespace, "person")
    refused(403, api_server.api(old).list, "v1/Pod", namespace)
    api_server.revoke(namespace, "person")
    for _ in range(600):
        try:
            api_server.api(old).list("v1/Pod", namespace)
        except ApiError as error:
            if error.status == 401:
                break
        time.sleep(0.05)
    else:
        raise AssertionError("the token of a deleted service account still counts")
    new = api_server.service_account(namespace, "person")
    refused(403, api_server.api(new).list, "v1/Pod", namespace)


def test_the_audit_log_counts_each_users_requests(api_server: ApiServer, namespace: str) -> None:
    api_server.apply(workspace(), namespace)
    reader = allow(api_server, namespace, "counted", "kubeflow.org", "workspaces", "get", "watch", "list")
    user = f"system:serviceaccount:{namespace}:counted"
    assert not api_server.audit(user=user)

    reader.get(WORKSPACE, "lab", namespace)
    refused(403, reader.patch, WORKSPACE, "lab", {"spec": {"paused": True}}, namespace)
    path = reader.path(WORKSPACE, namespace)
    reader.request("GET", path, query={"watch": "1", "timeoutSeconds": "1"})

    asked = [(request.verb, request.status) for request in api_server.audit(user=user) if path in request.uri]
    assert asked == [("get", 200), ("patch", 403), ("watch", 200)]


def test_a_version_that_the_api_server_no_longer_has_is_gone(own_api_server: ApiServer) -> None:
    server = own_api_server
    namespace = server.namespace()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    base = {"apiVersion": "v1", "kind": "ConfigMap"}
    versions = [
        server.apply({**base, "metadata": {"name": f"map-{number}"}}, namespace)[0]["metadata"]["resourceVersion"]
        for number in range(3)
    ]

    def watch(version: str) -> Any:
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "1"}
        return server.as_admin.request("GET", path, query=query)

    assert [event["type"] for event in watch(versions[0])] == ["ADDED", "ADDED"]
    server.kill()
    server.start()
    (event,) = watch(versions[0])
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    # From what a list says now there is nothing to be missed.
    assert watch(server.as_admin.request("GET", path)["metadata"]["resourceVersion"]) == []


def test_kubectl_lists_what_a_role_allows(api_server: ApiServer, namespace: str) -> None:
    allow(api_server, namespace, "lister", "kubeflow.org", "workspaces", "get", "patch")
    config = api_server.kubeconfig(api_server.service_account(namespace, "lister"), namespace)
    printed = api_server.kubectl("auth", "can-i", "--list", kubeconfig=config)
    line = next(line for line in printed.splitlines() if line.startswith("workspaces.kubeflow.org"))
    assert line.split()[-2:] == ["[get", "patch]"]


def test_what_it_writes_is_its_owners_only(api_server: ApiServer) -> None:
    assert stat.S_IMODE(os.stat(api_server.folder).st_mode) == 0o700
    for name in ("tokens.csv", "accounts.key", "server.key", "audit.log"):
        assert stat.S_IMODE(os.stat(api_server.folder / name).st_mode) == 0o600, name
    assert stat.S_IMODE(os.stat(api_server.kubeconfig("token")).st_mode) == 0o600


def test_an_api_server_that_hangs_dies_and_comes_back_with_its_data(own_api_server: ApiServer) -> None:
    server = own_api_server
    namespace = server.namespace()
    token = server.service_account(namespace, "person")
    impatient = Rest(server.url, server.ca, server.admin_token)
    impatient.timeout = 1.0

    server.pause()
    with pytest.raises(httpx.TimeoutException):
        impatient.get("v1/Namespace", namespace)
    server.unpause()
    assert server.get("v1/Namespace", namespace)

    url = server.url
    server.kill()
    with pytest.raises(httpx.TransportError):
        impatient.get("v1/Namespace", namespace)
    server.start()
    assert server.url == url
    assert server.get("v1/Namespace", namespace)["metadata"]["name"] == namespace
    refused(403, server.api(token).list, "v1/Pod", namespace)
    impatient.close()


def test_it_ends_with_a_test_run_that_is_killed(api_server: ApiServer) -> None:
    program = """
import pathlib, sys
from tests.cluster.apiserver import ApiServer
server = ApiServer(pathlib.Path(sys.argv[1])).start()
print(server.folder, *server.pids, flush=True)
sys.stdin.read()
"""
    run = subprocess.Popen(
        [sys.executable, "-c", program, api_server.binaries],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdin is not None and run.stdout is not None
    folder, *pids = run.stdout.readline().split()
    run.kill()
    run.wait()
    run.stdin.close()
    run.stdout.close()
    assert len(pids) == 2
    until(lambda: not any(Path("/proc", pid).exists() for pid in pids), "etcd and kube-apiserver end")
    until(lambda: not Path(folder).exists(), "their folder is removed")


def test_an_api_server_that_cannot_start_says_why(api_server: ApiServer) -> None:
    server = ApiServer(api_server.binaries, flags={"authorization-mode": "Nonsense"})
    try:
        with pytest.raises(RuntimeError, match="Nonsense"):
            server.start()
    finally:
        server.stop()
    assert not server.folder.exists()


def test_stopping_it_leaves_nothing(own_api_server: ApiServer) -> None:
    server = own_api_server
    pids = server.pids
    assert len(pids) == 2
    server.stop()
    assert not server.folder.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
