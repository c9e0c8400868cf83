# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kinds that we ask for, by group, version and plural (those of Kubeflow, GKE pod snapshots, agent-sandbox)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resource:
    """A kind of object of the API server. `bookmarks`: its watches tell now and then that nothing changed.

    The API server keeps no watch cache for events, and without one it sends no bookmarks.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    bookmarks: bool = True

    @property
    def qualified(self) -> str:
        """As RBAC and kubectl name it: `workspaces.kubeflow.org`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As in a manifest: `kubeflow.org/v1beta1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


WORKSPACES = Resource("kubeflow.org", "v1beta1", "workspaces", "Workspace")
WORKSPACE_KINDS = Resource("kubeflow.org", "v1beta1", "workspacekinds", "WorkspaceKind", namespaced=False)
NOTEBOOKS_V1 = Resource("kubeflow.org", "v1", "notebooks", "Notebook")
SANDBOXES = Resource("agents.x-k8s.io", "v1beta1", "sandboxes", "Sandbox")
POD_SNAPSHOTS = Resource("podsnapshot.gke.io", "v1", "podsnapshots", "PodSnapshot")
POD_SNAPSHOT_TRIGGERS = Resource("podsnapshot.gke.io", "v1", "podsnapshotmanualtriggers", "PodSnapshotManualTrigger")
POD_SNAPSHOT_POLICIES = Resource("podsnapshot.gke.io", "v1", "podsnapshotpolicies", "PodSnapshotPolicy")
POD_SNAPSHOT_STORAGE_CONFIGS = Resource(
    "podsnapshot.gke.io", "v1", "podsnapshotstorageconfigs", "PodSnapshotStorageConfig", namespaced=False
)
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event", bookmarks=False)
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
