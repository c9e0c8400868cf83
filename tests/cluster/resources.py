# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kinds of Kubeflow, GKE and agent-sandbox on an API server of ours, and the one user who may make PodSnapshots."""

from __future__ import annotations

from pathlib import Path

from .apiserver import ApiServer

CRDS = Path(__file__).parent / "crds"

#: crds/zz-podsnapshot-admission.yaml names this user. Its name is ours: GKE's own is not documented.
GKE_NAMESPACE = "gke-managed-podsnapshot"
GKE_ACCOUNT = "controller"


def install(server: ApiServer) -> None:
    """Serve the CRDs of crds/, enforce the admission policy, and give GKE's controller its rights."""
    for path in sorted(CRDS.glob("*.yaml")):
        server.apply(path.read_text(encoding="utf-8"))
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GKE_NAMESPACE}})
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    server.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": GKE_NAMESPACE},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": GKE_ACCOUNT, "namespace": GKE_NAMESPACE}],
        }
    )


def gke_token(server: ApiServer) -> str:
    """A token of GKE's snapshot controller: the only user whose PodSnapshots are let in; may do everything else too."""
    return server.service_account(GKE_NAMESPACE, GKE_ACCOUNT)
