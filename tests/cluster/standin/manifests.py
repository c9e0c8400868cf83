# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What an administrator has set up before: the runtime class, cluster roles, WorkspaceKinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.cluster.rest import Object

PORT_ID = "jupyterlab"
PORT = 8888
HOME = "/home/jovyan"
#: GKE's label of nodes, which a pod selects machines by.
MACHINE_FAMILY = "cloud.google.com/machine-family"

RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "gvisor"},
    "handler": "gvisor",
}

#: The part of Kubeflow's role of this name that a workspace's own pod may use (facts/cluster.md section 2).
KUBEFLOW_EDIT = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "kubeflow-edit"},
    "rules": [
        {
            "apiGroups": ["kubeflow.org"],
            "resources": ["workspaces", "notebooks"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "list", "watch", "patch"]},
    ],
}

#: What `kubeflow-edit` lacks: snapshots to be seen and deleted, the kind's annotations, and the add-on's webhook.
SNAPSHOT_USER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "snapshot-user"},
    "rules": [
        {
            "apiGroups": ["podsnapshot.gke.io"],
            "resources": ["podsnapshots", "podsnapshotmanualtriggers", "podsnapshotpolicies"],
            "verbs": ["get", "list", "watch", "delete"],
        }
    ],
}


def workspace_kind(
    name: str,
    image: str,
    env: Mapping[str, str],
    *,
    roles: Sequence[str],
    resources: Object,
    activity_rules: Sequence[Object] = (),
    probe_seconds: int | None = None,
) -> Object:
    """A WorkspaceKind with one image and three sizes: `size`, `other` on another machine, and `old`, which is hidden.

    Args:
        name: of the kind; cluster-scoped.
        env: more environment, next to what Kubeflow's own kinds set.
        roles: cluster roles of the pod's service account.
        resources: of the container.
        probe_seconds: between two activity probes; None: no probe.
    """
    variables = [
        {"name": "NB_PREFIX", "value": f'{{{{ httpPathPrefix "{PORT_ID}" }}}}'},
        {"name": "JUPYTERHUB_SERVICE_PREFIX", "value": f'{{{{ httpPathPrefix "{PORT_ID}" }}}}'},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        *({"name": variable, "value": value} for variable, value in env.items()),
    ]
    template: Object = {
        "serviceAccount": {"clusterRoles": [{"name": role} for role in roles]},
        "probes": {"readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 5}},
        "volumeMounts": {"home": HOME},
        "ports": [{"id": PORT_ID, "protocol": "HTTP", "defaultDisplayName": "JupyterLab"}],
        "extraEnv": variables,
        "extraVolumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
        "extraVolumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
        "options": {
            "imageConfig": {"spawner": {"default": "image"}, "values": [_image(image)]},
            "podConfig": {
                "spawner": {"default": "size"},
                "values": _sizes(resources),
            },
        },
    }
    if probe_seconds is not None:
        template["activityProbe"] = {
            "minProbeIntervalSeconds": probe_seconds,
            "probeIntervalSeconds": probe_seconds,
            "jupyter": {"lastActivity": True, "portId": PORT_ID},
        }
    spec: Object = {
        "spawner": {"displayName": name, "description": "Made by a test"},
        "podTemplate": template,
        "activityRules": list(activity_rules),
    }
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "WorkspaceKind", "metadata": {"name": name}, "spec": spec}


def workspace(namespace: str, name: str, kind: str, *, stateful: bool) -> Object:
    """A Workspace of that kind, with a home volume of its own."""
    annotations = {"podsnapshot.gke.kubeflow.org/enabled": "true"} if stateful else {}
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "kind": kind,
            "podTemplate": {
                "volumes": {"home": f"home-{name}"},
                "options": {"imageConfig": "image", "podConfig": "size"},
            },
        },
    }


def pod_spec(image: str, name: str, env: Mapping[str, str], account: str) -> Object:
    """The spec of a pod that some other owner runs, with a home volume of its own."""
    variables = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    return {
        "serviceAccountName": account,
        "containers": [
            {
                "name": name,
                "image": image,
                "ports": [{"name": f"http-{PORT}", "containerPort": PORT, "protocol": "TCP"}],
                "readinessProbe": {"tcpSocket": {"port": PORT}},
                "env": [*variables, *({"name": variable, "value": value} for variable, value in env.items())],
                "volumeMounts": [{"name": "home", "mountPath": HOME}],
            }
        ],
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": f"home-{name}"}}],
    }


def notebook_v1(namespace: str, name: str, spec: Object) -> Object:
    """A Notebook v1."""
    metadata = {"name": name, "namespace": namespace}
    template = {"spec": spec}
    return {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": metadata, "spec": {"template": template}}


def sandbox(namespace: str, name: str, spec: Object) -> Object:
    """An agent-sandbox Sandbox."""
    metadata = {"name": name, "namespace": namespace}
    template = {"metadata": {"labels": {"sandbox": name}}, "spec": spec}
    return {
        "apiVersion": "agents.x-k8s.io/v1beta1",
        "kind": "Sandbox",
        "metadata": metadata,
        "spec": {"podTemplate": template},
    }


def stateful_set(namespace: str, name: str, spec: Object) -> Object:
    """A bare StatefulSet."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def account(namespace: str, name: str) -> list[Object]:
    """A service account that may do in its namespace what Kubeflow's profiles let `default-editor` do."""
    group = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "kubeflow-edit"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def _sizes(resources: Object) -> list[Object]:
    other = {"resources": resources, "nodeSelector": {MACHINE_FAMILY: "n2"}}
    about = {"displayName": "Another machine", "description": "Of another family"}
    return [
        {"id": "size", "spawner": {"displayName": "The first size"}, "spec": {"resources": resources}},
        {
            "id": "other",
            "spawner": {**about, "labels": [{"key": "cpu", "value": "4"}]},
            "spec": other,
        },
        {"id": "old", "spawner": {"displayName": "An old one", "hidden": True}, "spec": other},
    ]


def _image(image: str) -> Object:
    return {
        "id": "image",
        "spawner": {"displayName": "The one image"},
        "spec": {"image": image, "ports": [{"id": PORT_ID, "port": PORT}]},
    }
