# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Who owns a pod: the rules over objects as tables, and the questions to a real API server with RBAC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.access import Right
from jupyter_pause.cluster.client import ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.resources import PODS, STATEFULSETS, WORKSPACES
from jupyter_pause.owners.detection import (
    SENTENCES,
    Found,
    HubServer,
    Surroundings,
    claims_of,
    detect,
    identify,
    stateful_of,
)

from .apiserver import ApiServer
from .faulty import FaultyServer, refusal
from .grants import grant

GATE = "podsnapshot.gke.kubeflow.org/active"
WORKSPACE_LABEL = "notebooks.kubeflow.org/workspace-name"


def owned_by(api_version: str, kind: str, name: str) -> dict[str, Any]:
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [reference]}


STATEFUL_SET = owned_by("apps/v1", "StatefulSet", "ws-lab")


def pod(owner: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "ws-lab-0", "namespace": "team", "uid": "uid", "labels": labels or {}} | (owner or {})
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}]} | spec}


def stateful_set(owner: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "ws-lab", "namespace": "team"} | (owner or {})}


WORKSPACE = owned_by("kubeflow.org/v1beta1", "Workspace", "lab")
NOTEBOOK = owned_by("kubeflow.org/v1", "Notebook", "lab")
SANDBOX = owned_by("agents.x-k8s.io/v1beta1", "Sandbox", "box")
REPLICA_SET = owned_by("apps/v1", "ReplicaSet", "lab-1")
SAYS_WORKSPACE, SAYS_NOTEBOOK = {WORKSPACE_LABEL: "lab"}, {"notebook-name": "lab"}
NOTHING: dict[str, Any] = {}
BY_PREFIX = {"workspace": ("team", "lab")}
HUB = {"hub": HubServer("http://hub/api", "me")}


@pytest.mark.parametrize(
    ("around", "our_pod", "controller", "claims", "doubts"),
    [
        # Proven by owner references.
        (NOTHING, pod(STATEFUL_SET), stateful_set(WORKSPACE), ["kubeflow owner reference"], []),
        (BY_PREFIX, pod(STATEFUL_SET, SAYS_WORKSPACE), stateful_set(WORKSPACE), ["kubeflow owner reference"], []),
        (NOTHING, pod(STATEFUL_SET, SAYS_NOTEBOOK), stateful_set(NOTEBOOK), ["notebook_v1 owner reference"], []),
        (NOTHING, pod(SANDBOX), None, ["sandbox owner reference"], []),
        (NOTHING, pod(STATEFUL_SET), stateful_set(), ["statefulset owner reference"], []),
        (HUB, pod(), None, ["jupyterhub environment"], []),
        (HUB, pod(STATEFUL_SET), stateful_set(), ["jupyterhub environment", "statefulset owner reference"], []),
        # Nobody that we know.
        (NOTHING, pod(), None, [], []),
        (NOTHING, pod(REPLICA_SET), None, [], []),
        (NOTHING, pod(STATEFUL_SET), stateful_set(owned_by("x.org/v1", "Fleet", "f")), [], []),
        (NOTHING, pod(STATEFUL_SET), stateful_set(owned_by("x.org/v1", "Workspace", "lab")), [], []),
        # Labels and environment are not believed against owner references...
        (NOTHING, pod(None, SAYS_WORKSPACE), None, [], ["owner_contradicted"]),
        (NOTHING, pod(REPLICA_SET, SAYS_NOTEBOOK), None, [], ["owner_contradicted"]),
        (
            BY_PREFIX,
            pod(STATEFUL_SET, SAYS_WORKSPACE),
            stateful_set(),
            ["statefulset owner reference"],
            ["owner_contradicted", "owner_contradicted"],
        ),
        # ...but where those could not be read.
        (NOTHING, pod(STATEFUL_SET, SAYS_WORKSPACE), None, ["kubeflow label", "statefulset owner reference"], []),
        (NOTHING, pod(STATEFUL_SET, SAYS_NOTEBOOK), None, ["notebook_v1 label", "statefulset owner reference"], []),
        (BY_PREFIX, None, None, ["kubeflow environment"], []),
        ({"notebook": ("team", "lab")}, None, None, ["notebook_v1 environment"], []),
        (BY_PREFIX | HUB, None, None, ["kubeflow environment", "jupyterhub environment"], []),
        (NOTHING, None, None, [], []),
    ],
)
def test_who_may_own_a_pod(
    around: dict[str, Any], our_pod: Any, controller: Any, claims: list[str], doubts: list[str]
) -> None:
    found, reasons = claims_of(Surroundings(in_cluster=True, namespace="team", **around), our_pod, controller)
    assert [f"{one.kind} {one.by}" for one in found] == claims
    assert [one.code for one in reasons] == doubts
    assert all(one.namespace == "team" for one in found)


GVISOR = {"runtimeClassName": "gvisor"}
GATED = {"readinessGates": [{"conditionType": "other"}, {"conditionType": GATE}]}
TPU = {"containers": [{"name": "main"}, {"name": "x", "resources": {"limits": {"google.com/tpu": "4"}}}]}
ENABLED = {"metadata": {"annotations": {"podsnapshot.gke.kubeflow.org/enabled": "true"}}}


@pytest.mark.parametrize(
    ("kind", "our_pod", "owner", "stateful", "why"),
    [
        ("kubeflow", pod(**GVISOR, **GATED), None, True, []),
        ("kubeflow", pod(**GVISOR), None, False, ["snapshot_addon_absent"]),
        ("kubeflow", pod(), None, False, ["snapshot_addon_absent"]),
        ("kubeflow", pod(), ENABLED, False, ["snapshot_addon_late"]),
        ("kubeflow", pod(**GATED), ENABLED, False, ["snapshot_no_gvisor"]),
        ("kubeflow", pod(**GATED, runtimeClassName="kata"), None, False, ["snapshot_no_gvisor"]),
        ("kubeflow", pod(**GVISOR, **GATED, **TPU), None, False, ["snapshot_tpu"]),
        ("kubeflow", None, ENABLED, None, ["snapshot_unknown"]),
        ("sandbox", pod(**GVISOR), None, None, []),
        ("sandbox", pod(), None, False, ["snapshot_no_gvisor"]),
        ("notebook_v1", pod(**GVISOR, **GATED), None, False, []),
        ("jupyterhub", None, None, False, []),
        ("statefulset", pod(**GVISOR), None, False, []),
    ],
)
def test_whether_a_pause_makes_a_snapshot(
    kind: Any, our_pod: Any, owner: Any, stateful: bool | None, why: list[str]
) -> None:
    found, reasons = stateful_of(kind, our_pod, owner)
    assert found is stateful and [one.code for one in reasons] == why


def test_every_reason_is_one_sentence() -> None:
    for code, sentence in SENTENCES.items():
        assert sentence.count(".") == 1 and sentence.endswith("."), code


# --- asked of a real API server -------------------------------------------------------------------------------------

READ = [Right("get", PODS), Right("get", STATEFULSETS), Right("get", WORKSPACES)]
WORKSPACE_SPEC = {
    "kind": "jupyterlab",
    "podTemplate": {"volumes": {"data": []}, "options": {"imageConfig": "i", "podConfig": "p"}},
}


class Team:
    """A namespace with a Workspace `lab`, its StatefulSet and its pod, as the controllers make them."""

    def __init__(self, server: ApiServer, namespace: str, folder: Path) -> None:
        self.server, self.namespace, self.folder = server, namespace, folder

    def workspace(self, name: str = "lab") -> dict[str, Any]:
        made = self._make("kubeflow.org/v1beta1", "Workspace", name, spec=WORKSPACE_SPEC)
        return self._owner("kubeflow.org/v1beta1", "Workspace", made)

    def notebook(self) -> dict[str, Any]:
        template = {"spec": {"containers": [{"name": "lab", "image": "i"}]}}
        made = self._make("kubeflow.org/v1", "Notebook", "lab", spec={"template": template})
        return self._owner("kubeflow.org/v1", "Notebook", made)

    def stateful_set(self, owner: dict[str, Any] | None) -> dict[str, Any]:
        labels = {"app": "lab"}
        spec = {
            "selector": {"matchLabels": labels},
            "serviceName": "lab",
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}},
        }
        made = self._make("apps/v1", "StatefulSet", "ws-lab", owner, spec=spec)
        return self._owner("apps/v1", "StatefulSet", made)

    def pod(self, owner: dict[str, Any] | None, labels: dict[str, str] | None = None, name: str = "ws-lab-0") -> str:
        spec = {"containers": [{"name": "main", "image": "i"}]}
        made = self._make("v1", "Pod", name, owner, labels=labels or {}, spec=spec)
        return str(made["metadata"]["uid"])

    def surroundings(self, **environ: str) -> Surroundings:
        (self.folder / "token").write_text("t")
        (self.folder / "namespace").write_text(self.namespace)
        address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1", "HOSTNAME": "ws-lab-0"}
        return detect(address | environ, self.folder)

    async def identify(self, rights: list[Right], wanted: Any = "auto", **environ: str) -> Found:
        """As a service account with exactly these rights."""
        token = self.server.service_account(self.namespace, "notebook")
        grant(self.server, self.namespace, "notebook", rights)
        async with client_of(self.server.url, self.namespace, self.folder, token, self.server.ca) as client:
            return await identify(self.surroundings(**environ), client, wanted)

    def _make(
        self, version: str, kind: str, name: str, owner: dict[str, Any] | None = None, labels: Any = None, **body: Any
    ) -> dict[str, Any]:
        metadata = {"name": name, "labels": labels or {}}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        thing = {"apiVersion": version, "kind": kind, "metadata": metadata} | body
        return self.server.apply(thing, self.namespace)[0]

    @staticmethod
    def _owner(version: str, kind: str, made: dict[str, Any]) -> dict[str, Any]:
        metadata = made["metadata"]
        return {
            "apiVersion": version,
            "kind": kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }


@asynccontextmanager
async def client_of(
    url: str, namespace: str, folder: Path, token: str, ca: str | None = None
) -> AsyncIterator[ClusterClient]:
    file = folder / "client-token"
    file.write_text(token)
    config = ClusterConfig(host=url, ca_file=Path(ca) if ca else None, namespace=namespace, token_file=file)
    client = ClusterClient(config, clock=SYSTEM_CLOCK)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
def team(api_server: ApiServer, namespace: str, tmp_path: Path) -> Team:
    return Team(api_server, namespace, tmp_path)


def codes(found: Found) -> list[str]:
    return [one.code for one in found.reasons]


async def test_a_workspace_is_found_through_its_stateful_set(team: Team) -> None:
    uid = team.pod(team.stateful_set(team.workspace()), SAYS_WORKSPACE)
    found = await team.identify(READ)
    assert (found.kind, found.namespace, found.name) == ("kubeflow", team.namespace, "lab")
    assert (found.pod, found.pod_uid, found.stateful) == ("ws-lab-0", uid, False)
    assert codes(found) == ["snapshot_addon_absent"] and not found.try_again


async def test_a_notebook_and_a_bare_stateful_set(team: Team) -> None:
    owner = team.stateful_set(team.notebook())
    team.pod(owner, SAYS_NOTEBOOK)
    found = await team.identify(READ)
    assert (found.kind, found.name, codes(found)) == ("notebook_v1", "lab", [])
    team.server.patch("apps/v1/StatefulSet", "ws-lab", {"metadata": {"ownerReferences": None}}, team.namespace)
    found = await team.identify(READ)
    assert (found.kind, found.name, codes(found)) == ("statefulset", "ws-lab", ["owner_contradicted"])


async def test_S47_without_the_right_to_read_pods_the_environment_counts_and_the_reason_says_so(team: Team) -> None:
    team.pod(team.stateful_set(team.workspace()), SAYS_WORKSPACE)
    prefix = f"/workspace/connect/{team.namespace}/lab/jupyterlab"
    found = await team.identify(READ[1:], NB_PREFIX=prefix)
    assert (found.kind, found.name, found.pod, found.stateful) == ("kubeflow", "lab", "ws-lab-0", None)
    assert codes(found) == ["pod_unreadable", "owner_unconfirmed", "snapshot_unknown"]
    refused = found.reasons[0].params
    assert (refused["verb"], refused["resource"], refused["code"]) == ("get", "pods", "cluster_forbidden")
    assert not found.try_again
    assert codes(await team.identify(READ[1:])) == ["pod_unreadable", "owner_unknown"]


async def test_S47_without_the_right_to_read_stateful_sets_the_label_counts(team: Team) -> None:
    team.pod(team.stateful_set(team.workspace()), SAYS_WORKSPACE)
    found = await team.identify([READ[0], READ[2]])
    assert (found.kind, found.name) == ("kubeflow", "lab")
    assert codes(found)[:2] == ["owner_unreadable", "owner_unconfirmed"]
    assert found.reasons[0].params["resource"] == "statefulsets.apps"


async def test_a_workspace_that_is_not_there_does_not_own_anything(team: Team) -> None:
    prefix = f"/workspace/connect/{team.namespace}/gone/jupyterlab"
    found = await team.identify(READ, NB_PREFIX=prefix)
    assert found.kind is None and codes(found) == ["pod_not_found", "owner_missing", "owner_unknown"]


async def test_nobody_and_somebody_unknown(team: Team) -> None:
    team.pod(None)
    assert codes(await team.identify(READ)) == ["owner_none"]
    deployment = owned_by("apps/v1", "ReplicaSet", "lab-1")["ownerReferences"][0]
    team.pod(deployment, name="other-0")
    found = await team.identify(READ, HOSTNAME="other-0")
    assert found.kind is None and codes(found) == ["owner_unsupported"]
    assert found.reasons[0].params == {"owner": "ReplicaSet"}


async def test_a_host_name_that_was_cut_still_finds_the_pod(team: Team) -> None:
    long = "ws-" + "long-name-" * 6 + "end-0"
    team.pod(team.stateful_set(team.workspace()), SAYS_WORKSPACE, name=long)
    prefix = f"/workspace/connect/{team.namespace}/lab/jupyterlab"
    found = await team.identify([*READ, Right("list", PODS)], HOSTNAME=long[:63], NB_PREFIX=prefix)
    assert len(long) > 63 and (found.kind, found.pod) == ("kubeflow", long)


async def test_the_setting_wins_where_something_confirms_it(team: Team) -> None:
    team.pod(team.stateful_set(team.workspace()), SAYS_WORKSPACE)
    assert await team.identify(READ, "local") == Found(kind=None)
    found = await team.identify(READ, "sandbox")
    assert found.kind is None and codes(found) == ["owner_not_found"]
    hub = {"JUPYTERHUB_API_URL": "http://hub/api", "JUPYTERHUB_USER": "me", "JUPYTERHUB_API_TOKEN": "t"}
    assert (await team.identify(READ, "jupyterhub", **hub)).kind == "jupyterhub"
    assert (await team.identify(READ, **hub)).kind == "kubeflow"


async def test_a_hub_without_a_cluster_and_a_plain_machine() -> None:
    hub = Surroundings(in_cluster=False, hub=HubServer("http://hub/api", "me", "gpu"))
    found = await identify(hub, None)
    assert (found.kind, found.name, found.namespace, codes(found)) == ("jupyterhub", "me/gpu", None, [])
    assert await identify(Surroundings(in_cluster=False), None) == Found(kind=None)


async def test_S48_an_api_server_that_cannot_be_asked_is_asked_again_later(team: Team) -> None:
    server = await FaultyServer().start()

    async def unavailable(_: Any) -> Any:
        return refusal(503)

    server.rules.append(unavailable)
    try:
        async with client_of(server.url, team.namespace, team.folder, "t") as client:
            prefix = f"/workspace/connect/{team.namespace}/lab/jupyterlab"
            found = await identify(team.surroundings(NB_PREFIX=prefix), client)
    finally:
        await server.stop()
    assert found.try_again and found.kind == "kubeflow"
    assert codes(found) == ["pod_unreadable", "owner_unconfirmed", "snapshot_unknown"]
    assert found.reasons[0].params["code"] == "cluster_unreachable"
