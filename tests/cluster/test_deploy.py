# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What `deploy/` ships, on a real API server: it is valid, and it grants what the operators' guide says, no more."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_pause.app import PauseApp

from .apiserver import ApiServer
from .rest import APPLY, ApiError

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = ROOT / "docs" / "operators" / "cluster.md"
RBAC = "rbac.authorization.k8s.io"
MANIFESTS = sorted(path for path in DEPLOY.rglob("*.yaml") if path.name != "kustomization.yaml")
KUSTOMIZATIONS = sorted(path.parent for path in DEPLOY.rglob("kustomization.yaml"))

#: (resource with its group, verb)
Grant = tuple[str, str]


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def grants_of(rules: Iterable[dict[str, Any]]) -> set[Grant]:
    """What RBAC rules grant, names left out."""
    return {
        (f"{resource}.{group}" if group else resource, verb)
        for rule in rules
        for group in rule.get("apiGroups") or []
        for resource in rule.get("resources") or []
        for verb in rule["verbs"]
    }


def documented() -> list[set[Grant]]:
    """The tables of rights in the operators' guide, in their order."""
    tables: list[set[Grant]] = []
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| resource | verbs |"):
            tables.append(set())
        elif row := re.match(r"\| `([^`]+)` \| ([a-z, ]+) \|", line):
            tables[-1] |= {(row[1], verb.strip()) for verb in row[2].split(",")}
    return tables


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.relative_to(DEPLOY).as_posix())
def test_the_api_server_accepts_it(api_server: ApiServer, namespace: str, path: Path) -> None:
    """A server-side dry run, with unknown fields refused."""
    for document in documents(path):
        api = api_server.as_admin
        url = api.path(f"{document['apiVersion']}/{document['kind']}", namespace, document["metadata"]["name"])
        query = {"dryRun": "All", "fieldManager": "tests", "fieldValidation": "Strict"}
        assert api.request("PATCH", url, document, content_type=APPLY, query=query)["kind"] == document["kind"]


def test_the_dry_run_of_this_file_would_notice_a_mistake(api_server: ApiServer, namespace: str) -> None:
    [role] = documents(DEPLOY / "rbac" / "role.yaml")
    role["rules"][0]["verb"] = ["get"]
    url = api_server.as_admin.path(f"{RBAC}/v1/Role", namespace, "jupyter-pause")
    query = {"dryRun": "All", "fieldManager": "tests", "fieldValidation": "Strict"}
    with pytest.raises(ApiError):
        api_server.as_admin.request("PATCH", url, role, content_type=APPLY, query=query)


@pytest.mark.parametrize("folder", KUSTOMIZATIONS, ids=lambda folder: folder.relative_to(DEPLOY).as_posix())
def test_kustomize_finds_everything(api_server: ApiServer, folder: Path) -> None:
    built = list(yaml.safe_load_all(api_server.kubectl("kustomize", str(folder))))
    assert built and all(document["metadata"]["name"] for document in built)


def test_the_overlay_is_applied_as_it_is(api_server: ApiServer) -> None:
    overlay = DEPLOY / "overlays" / "example"
    namespace = yaml.safe_load((overlay / "kustomization.yaml").read_text(encoding="utf-8"))["namespace"]
    api_server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    api_server.kubectl("apply", "--server-side", "-k", str(overlay))
    binding = api_server.get(f"{RBAC}/v1/RoleBinding", "jupyter-pause", namespace)
    assert [subject["name"] for subject in binding["subjects"]] == ["ws-ada", "ws-bob"]
    [policy] = api_server.list("networking.k8s.io/v1/NetworkPolicy", namespace)
    assert policy["spec"]["policyTypes"] == ["Egress"] and "ingress" not in policy["spec"]
    token = api_server.service_account(namespace, "ws-ada")
    assert api_server.api(token).can("patch", "kubeflow.org", "workspaces", namespace, name="ada")
    assert not api_server.api(token).can("patch", "kubeflow.org", "workspaces", "default", name="ada")


def bound(server: ApiServer, namespace: str, account: str, file: str) -> Path:
    """A kubeconfig of an account that has one shipped role, in one namespace or everywhere, and nothing else."""
    [role] = documents(DEPLOY / file)
    kind = "RoleBinding" if file != "rbac/cluster-read.yaml" else "ClusterRoleBinding"
    place = namespace if kind == "RoleBinding" else None
    server.apply(role, namespace if role["kind"] == "Role" else None)
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": f"{account}-{namespace}"},
        "roleRef": {"apiGroup": RBAC, "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    server.apply(binding, place)
    return server.kubeconfig(server.service_account(namespace, account), namespace)


def can_i_list(server: ApiServer, namespace: str, kubeconfig: Path) -> set[Grant]:
    """`kubectl auth can-i --list`, without what every account may do."""
    printed = server.kubectl("auth", "can-i", "--list", "--no-headers", "-n", namespace, kubeconfig=kubeconfig)
    found: set[Grant] = set()
    for line in printed.splitlines():
        row = re.match(r"(?P<resource>\S*)\s+\[(?P<urls>[^]]*)\]\s+\[(?P<names>[^]]*)\]\s+\[(?P<verbs>[^]]*)\]", line)
        if row and row["resource"]:
            found |= {(row["resource"], verb) for verb in row["verbs"].split()}
    return found


@pytest.mark.parametrize(
    ("file", "table"),
    [("rbac/role.yaml", 0), ("kubeflow/clusterrole.yaml", 0), ("rbac/cluster-read.yaml", 1)],
)
def test_what_is_granted_is_what_the_guide_says(api_server: ApiServer, namespace: str, file: str, table: int) -> None:
    nobody = api_server.kubeconfig(api_server.service_account(namespace, "nobody"), namespace)
    everybody = can_i_list(api_server, namespace, nobody)
    assert ("selfsubjectaccessreviews.authorization.k8s.io", "create") in everybody
    kubeconfig = bound(api_server, namespace, "granted", file)
    assert can_i_list(api_server, namespace, kubeconfig) - everybody == documented()[table]


def documented_roles() -> dict[str, set[Grant]]:
    """The table of other owners: role file -> rights, the first column empty where it goes on."""
    roles: dict[str, set[Grant]] = {}
    file = ""
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        if row := re.match(
            r"\| (?:\[`(?P<file>role-[a-z0-9-]+\.yaml)`\]\S+ )?\| `(?P<what>\S+)` \| (?P<verbs>[a-z, ]+) \|", line
        ):
            file = row["file"] or file
            roles.setdefault(file, set()).update((row["what"], verb.strip()) for verb in row["verbs"].split(","))
    return roles


@pytest.mark.parametrize("file", ["role-notebook-v1.yaml", "role-statefulset.yaml", "role-sandbox.yaml"])
def test_other_owners_get_their_switch_and_the_pod(api_server: ApiServer, namespace: str, file: str) -> None:
    everybody = can_i_list(
        api_server, namespace, api_server.kubeconfig(api_server.service_account(namespace, "nobody"))
    )
    kubeconfig = bound(api_server, namespace, "granted", f"rbac/{file}")
    found = can_i_list(api_server, namespace, kubeconfig) - everybody
    pod = {grant for grant in documented()[0] if grant[0] in ("pods", "events")}
    assert found == documented_roles()[file] | pod


def test_roles_of_one_workspace_and_of_people_are_narrower() -> None:
    [whole] = documents(DEPLOY / "rbac" / "role.yaml")
    [one] = documents(DEPLOY / "rbac" / "role-one-workspace.yaml")
    [person] = documents(DEPLOY / "rbac" / "role-person.yaml")
    [cluster_role] = documents(DEPLOY / "kubeflow" / "clusterrole.yaml")
    assert grants_of(one["rules"]) < grants_of(whole["rules"])
    assert grants_of(person["rules"]) < grants_of(whole["rules"])
    assert cluster_role["rules"] == whole["rules"]
    assert all(rule["resourceNames"] for rule in one["rules"])


def test_one_workspace_by_name_is_enough_to_follow_it_and_no_other(api_server: ApiServer, namespace: str) -> None:
    kubeconfig = bound(api_server, namespace, "narrow", "rbac/role-one-workspace.yaml")
    for name in ("example", "other"):
        spec = {
            "kind": "jupyterlab",
            "podTemplate": {"volumes": {}, "options": {"imageConfig": "cpu", "podConfig": "small"}},
        }
        metadata = {"name": name, "namespace": namespace}
        api_server.apply(
            {"apiVersion": "kubeflow.org/v1beta1", "kind": "Workspace", "metadata": metadata, "spec": spec}
        )

    def kubectl(*words: str) -> str:
        return api_server.kubectl(*words, "-n", namespace, kubeconfig=kubeconfig)

    only = "--field-selector=metadata.name=example"
    assert json.loads(kubectl("get", "workspaces", only, "-o", "json"))["items"][0]["metadata"]["name"] == "example"
    kubectl("patch", "workspace", "example", "--type=merge", '-p={"spec":{"paused":true}}')
    for refused in (
        ("get", "workspaces"),
        ("get", "workspace", "other"),
        ("patch", "workspace", "other", "--type=merge", '-p={"spec":{"paused":true}}'),
        ("delete", "workspace", "example"),
        ("get", "pods"),
        ("get", "secrets"),
    ):
        with pytest.raises(subprocess.CalledProcessError) as failure:
            kubectl(*refused)
        assert "forbidden" in failure.value.stderr.lower()


def test_the_settings_of_the_image_are_settings_of_ours() -> None:
    folder = DEPLOY / "image" / "jupyter_server_config.d"
    settings = json.loads((folder / "jupyter_pause_cluster.json").read_text(encoding="utf-8"))
    assert set(settings) == {"PauseApp"}
    app = PauseApp()
    for name, value in settings["PauseApp"].items():
        assert name in PauseApp.class_own_traits(config=True)
        setattr(app, name, value)  # raises where the value is not allowed
    dockerfile = (DEPLOY / "image" / "Dockerfile").read_text(encoding="utf-8")
    assert f"{folder.name}/jupyter_pause_cluster.json" in dockerfile


def test_the_guide_names_every_file_that_is_shipped() -> None:
    text = GUIDE.read_text(encoding="utf-8") + (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in MANIFESTS if path.name not in text] == []
