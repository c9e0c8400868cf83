# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pod snapshots: rows from objects, and deleting with real finalizers on a real API server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.client import ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.podsnapshots import delete_all, delete_snapshot, list_snapshots, next_snapshot, rows_of

from .apiserver import ApiServer
from .clocks import StillClock

GROUP = "podsnapshot.gke.io/v1"
GKE_NAMESPACE, GKE = "gke-managed-podsnapshot", "controller"
NOW = datetime(2026, 12, 1, 18, 0, tzinfo=UTC)


def ago(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def snapshot(name: str, **given: Any) -> dict[str, Any]:
    """A PodSnapshot of workspace `lab`. given: trigger, policy, made, deleting (minutes ago), ready."""
    metadata: dict[str, Any] = {"name": name, "uid": name, "creationTimestamp": ago(given.get("made", 60))}
    if "trigger" in given:
        metadata["labels"] = {"gke-pod-snapshot-triggered-by": given["trigger"]}
    if "deleting" in given:
        metadata |= {"deletionTimestamp": ago(given["deleting"]), "finalizers": ["podsnapshot.gke.io/bucket"]}
    ready = given.get("ready")
    conditions = [{"type": "Ready", "status": ready, "reason": "Why"}] if ready else []
    policy = given.get("policy", "ws-lab-policy")
    return {"metadata": metadata, "spec": {"policyName": policy}, "status": {"conditions": conditions}}


def test_a_workspace_sees_its_own_snapshots_newest_first() -> None:
    found = [
        snapshot("by-policy", made=90),
        snapshot("by-trigger", trigger="ws-lab-trigger", policy="anything", made=30),
        snapshot("of-labour", trigger="ws-labour-trigger"),
        snapshot("same-policy-other-trigger", trigger="ws-b-trigger"),
        snapshot("policy-of-another", policy="ws-b-policy"),
    ]
    assert [row.id for row in rows_of(found, "lab", None, NOW)] == ["by-trigger", "by-policy"]


@pytest.mark.parametrize(
    ("given", "ready", "code"),
    [
        ({}, None, None),
        ({"ready": "Unknown"}, None, None),
        ({"ready": "True"}, True, None),
        ({"ready": "False"}, False, "snapshot_not_ready"),
        ({"ready": "True", "deleting": 9.9}, True, None),
        ({"ready": "True", "deleting": 10}, True, "stuck_deleting"),
        ({"ready": "False", "deleting": 600}, False, "stuck_deleting"),
    ],
)
def test_S28_a_row_says_whether_it_is_usable_and_since_when_it_hangs(
    given: dict[str, Any], ready: bool | None, code: str | None
) -> None:
    (row,) = rows_of([snapshot("s", **given)], "lab", None, NOW)
    assert row.ready is ready and (row.reason.code if row.reason else None) == code and row.bytes is None
    assert row.deleting_since == (NOW - timedelta(minutes=given["deleting"]) if "deleting" in given else None)
    if code == "stuck_deleting":
        assert row.reason is not None and row.reason.params["policy"] == "ws-lab-policy"
        assert row.reason.params["minutes"] == given["deleting"]


def test_the_next_resume_uses_the_one_that_the_workspace_names() -> None:
    workspace = {"metadata": {"annotations": {"podsnapshot.gke.kubeflow.org/last-checkpoint-name": "b"}}}
    found = [snapshot("a"), snapshot("b"), snapshot("c")]
    assert [row.id for row in rows_of(found, "lab", next_snapshot(workspace), NOW) if row.next] == ["b"]
    assert next_snapshot({"metadata": {}}) is None
    assert not rows_of([snapshot("b", deleting=1)], "lab", "b", NOW)[0].next  # too late for it


@pytest.fixture
def gke(api_server: ApiServer) -> Any:
    """The API as GKE's own controller, the only one that may make snapshots and take off finalizers."""
    api_server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GKE_NAMESPACE}})
    token = api_server.service_account(GKE_NAMESPACE, GKE)
    group = "rbac.authorization.k8s.io"
    api_server.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "gke-podsnapshot"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": GKE, "namespace": GKE_NAMESPACE}],
        }
    )
    return api_server.api(token)


def make(gke: Any, namespace: str, name: str) -> None:
    """A snapshot of workspace `lab` with a finalizer, as GKE makes it."""
    gke.apply(
        {
            "apiVersion": GROUP,
            "kind": "PodSnapshot",
            "metadata": {
                "name": name,
                "finalizers": ["podsnapshot.gke.io/bucket"],
                "labels": {"gke-pod-snapshot-triggered-by": "ws-lab-trigger"},
            },
            "spec": {"policyName": "ws-lab-policy"},
        },
        namespace,
    )


def policy_and_trigger(server: ApiServer, namespace: str) -> None:
    server.apply(
        [
            {
                "apiVersion": GROUP,
                "kind": "PodSnapshotPolicy",
                "metadata": {"name": "ws-lab-policy"},
                "spec": {"selector": {}, "storageConfigName": "store", "triggerConfig": {"type": "manual"}},
            },
            {
                "apiVersion": GROUP,
                "kind": "PodSnapshotManualTrigger",
                "metadata": {"name": "ws-lab-trigger"},
                "spec": {"targetPod": "ws-lab-0"},
            },
        ],
        namespace,
    )


def client_of(server: ApiServer, namespace: str, folder: Path, clock: Any) -> ClusterClient:
    token = folder / "token"
    token.write_text(server.admin_token)
    config = ClusterConfig(host=server.url, ca_file=Path(server.ca), namespace=namespace, token_file=token)
    return ClusterClient(config, clock=clock)


def requests(server: ApiServer, verb: str, namespace: str) -> list[str]:
    """The last parts of the paths of what was asked so far, without other namespaces."""
    mine = [one for one in server.audit() if one.verb == verb and f"/namespaces/{namespace}/" in one.uri]
    return [one.uri.partition("?")[0].rpartition("/")[2] for one in mine if "podsnapshot" in one.uri]


async def test_S28_snapshots_go_first_then_trigger_and_policy(
    api_server: ApiServer, gke: Any, namespace: str, tmp_path: Path
) -> None:
    policy_and_trigger(api_server, namespace)
    for name in ("one", "two"):
        make(gke, namespace, name)
    client = client_of(api_server, namespace, tmp_path, SYSTEM_CLOCK)
    try:
        cleaning = asyncio.create_task(delete_all(client, namespace, "lab", clock=SYSTEM_CLOCK, limit=120))
        while client.requests["watch", "podsnapshots"] == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert api_server.get(f"{GROUP}/PodSnapshotPolicy", "ws-lab-policy", namespace)  # still needed
        assert not cleaning.done()
        for name in ("one", "two"):  # GKE has emptied the bucket
            gke.patch(f"{GROUP}/PodSnapshot", name, {"metadata": {"finalizers": None}}, namespace)
        cleaned = await cleaning
        assert sorted(cleaned.gone) == ["one", "two"] and cleaned.left == [] and cleaned.policy_deleted
        assert requests(api_server, "delete", namespace) == ["one", "two", "ws-lab-trigger", "ws-lab-policy"]
    finally:
        await client.close()


async def test_S28_a_deletion_that_hangs_is_reported_and_left_alone(
    api_server: ApiServer, gke: Any, namespace: str, tmp_path: Path
) -> None:
    policy_and_trigger(api_server, namespace)
    make(gke, namespace, "hangs")
    clock = StillClock()
    client = client_of(api_server, namespace, tmp_path, clock)
    try:
        cleaning = asyncio.create_task(delete_all(client, namespace, "lab", clock=clock, limit=600))
        await clock.until_asleep(1)
        while client.requests["watch", "podsnapshots"] == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        clock.advance(600)
        cleaned = await cleaning
        assert cleaned.gone == [] and [row.id for row in cleaned.left] == ["hangs"] and not cleaned.policy_deleted
        assert api_server.get(f"{GROUP}/PodSnapshotPolicy", "ws-lab-policy", namespace)

        await delete_snapshot(client, namespace, "lab", "hangs", next_name=None)  # asked again: not asked again
        assert requests(api_server, "delete", namespace) == ["hangs"]
        later = datetime.now(UTC) + timedelta(minutes=11)
        (row,) = await list_snapshots(client, namespace, "lab", next_name="hangs", now=later)
        assert row.reason is not None and row.reason.code == "stuck_deleting" and not row.next
        kept = api_server.get(f"{GROUP}/PodSnapshot", "hangs", namespace)["metadata"]["finalizers"]
        assert kept == ["podsnapshot.gke.io/bucket"]
    finally:
        await client.close()
        gke.patch(f"{GROUP}/PodSnapshot", "hangs", {"metadata": {"finalizers": None}}, namespace)


async def test_the_next_one_is_only_deleted_by_force_and_a_strangers_never(
    api_server: ApiServer, gke: Any, namespace: str, tmp_path: Path
) -> None:
    make(gke, namespace, "next")
    client = client_of(api_server, namespace, tmp_path, SYSTEM_CLOCK)

    async def failure(**given: Any) -> str:
        with pytest.raises(ClusterError) as caught:
            await delete_snapshot(client, namespace, **({"workspace": "lab", "next_name": "next"} | given))
        return caught.value.code

    try:
        assert await failure(snapshot="next") == "snapshot_in_use"
        assert await failure(snapshot="next", workspace="other", force=True) == "snapshot_not_found"
        assert await failure(snapshot="nobody") == "snapshot_not_found"
        assert await failure(snapshot="../../pods/x") == "snapshot_not_found"  # an id is never a path
        assert requests(api_server, "delete", namespace) == []
        await delete_snapshot(client, namespace, "lab", "next", next_name="next", force=True)
        assert requests(api_server, "delete", namespace) == ["next"]
    finally:
        await client.close()
        gke.patch(f"{GROUP}/PodSnapshot", "next", {"metadata": {"finalizers": None}}, namespace)


async def test_a_cluster_without_the_kind_has_no_snapshots(own_api_server: ApiServer, tmp_path: Path) -> None:
    client = client_of(own_api_server, "default", tmp_path, SYSTEM_CLOCK)
    try:
        assert await list_snapshots(client, "default", "lab", next_name=None, now=NOW) == []
    finally:
        await client.close()
