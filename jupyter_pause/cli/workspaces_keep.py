# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a pause of a Workspace would keep, as far as it can be told from outside, before anything is asked.

Source: `facts/cluster.md` section 3 (who makes a snapshot, when the add-on lets a pause straight through). Where the
Workspace says nothing the kind's annotation counts. A dry run of the pause is no way to find out: the add-on closes
the pod's readiness gate for dry runs too (its webhook does not look at `dryRun`; read in its source, 2026-08).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jupyter_pause.owners.kubeflow_state import ACTIVE_GATE, ENABLED, LAST_CHECKPOINT, STORAGE_CONFIG

DEFAULT_STORAGE_CONFIG = "kubeflow-pod-snapshot-storage-config"
RUNTIME_CLASS = "gvisor"
TPU = "google.com/tpu"
#: Words in the name of a kind or an image that mean VS Code: nothing of ours runs in there.
VSCODE_WORDS = ("codeserver", "code-server", "vscode", "vs-code")

Object = Mapping[str, Any]
Memory = Literal["snapshot", "files only", "unknown"]

#: code -> what a person reads after "files only: " or "unknown: ".
SENTENCES = {
    "nothing_runs": "no pod is running, so there is no memory to keep",
    "vscode": "this is VS Code; jupyter-pause is not in there to prove that its memory comes back",
    "tpu": "pods with a TPU are never snapshotted",
    "snapshots_off": f"snapshots are not switched on for this Workspace or its kind (annotation {ENABLED})",
    "pod_not_prepared": (
        "the snapshot add-on did not prepare this pod (runtime class gvisor and its readiness gate are missing); "
        "it was switched on later, or it was down when the pod started"
    ),
    "kind_not_readable": "its kind may not be read, so whether snapshots are switched on is not known",
    "earlier_snapshot": "it has not come back from snapshot {snapshot} yet; whether that stays usable is not known",
    "owner_without_snapshots": "its owner makes no snapshots",
    "owner_says_nothing": "its owner does not say whether it makes snapshots",
}


@dataclass(frozen=True)
class Keeps:
    """What a pause keeps. Files on volumes stay in any case; `memory` is about the rest."""

    memory: Memory
    code: str | None = None
    params: Mapping[str, str] | None = None

    @property
    def why(self) -> str:
        """One clause for people; empty when a snapshot is made."""
        return SENTENCES[self.code].format(**(self.params or {})) if self.code else ""

    def row(self) -> dict[str, Any]:
        """For `--json`."""
        return {"memory": self.memory, "code": self.code, "params": dict(self.params or {}), "message": self.why}


def what_a_pause_keeps(workspace: Object, kind: Object | None, pod: Object | None) -> Keeps:
    """What the pause that is asked for now would keep.

    Args:
        kind: its WorkspaceKind, None where that may not be read.
        pod: its pod, None when there is none.
    """
    annotations = annotations_of(workspace)
    snapshot = annotations.get(LAST_CHECKPOINT)
    if pod is None or pod.get("status", {}).get("phase") != "Running":
        return Keeps("unknown", "earlier_snapshot", {"snapshot": snapshot}) if snapshot else _only("nothing_runs")
    if is_vscode(workspace, pod):
        return _only("vscode")
    if _has_tpu(pod):
        return _only("tpu")
    enabled = annotations.get(ENABLED) or annotations_of(kind or {}).get(ENABLED)
    prepared = is_prepared(pod)
    if enabled is None and kind is None and not prepared:
        return Keeps("unknown", "kind_not_readable")
    if enabled != "true" and not (enabled is None and kind is None):
        return _only("snapshots_off")
    return Keeps("snapshot") if prepared else _only("pod_not_prepared")


def annotations_of(thing: Object) -> dict[str, str]:
    """Its annotations; empty when there are none."""
    return dict(thing.get("metadata", {}).get("annotations") or {})


def storage_config_of(workspace: Object, kind: Object | None) -> str:
    """The name of the PodSnapshotStorageConfig that its snapshots go to."""
    own, general = annotations_of(workspace), annotations_of(kind or {})
    return own.get(STORAGE_CONFIG) or general.get(STORAGE_CONFIG) or DEFAULT_STORAGE_CONFIG


def is_prepared(pod: Object) -> bool:
    """Did the add-on prepare this pod: runtime class gVisor and its readiness gate?"""
    spec = pod.get("spec", {})
    gates = {gate.get("conditionType") for gate in spec.get("readinessGates") or []}
    return spec.get("runtimeClassName") == RUNTIME_CLASS and ACTIVE_GATE in gates


def is_vscode(workspace: Object, pod: Object | None) -> bool:
    """Is VS Code (code-server) in there? By the names of its kind and of its image."""
    containers = (pod or {}).get("spec", {}).get("containers") or [{}]
    names = [str(workspace.get("spec", {}).get("kind", "")), str(containers[0].get("image", ""))]
    return any(word in name.lower() for name in names for word in VSCODE_WORDS)


def _has_tpu(pod: Object) -> bool:
    for container in pod.get("spec", {}).get("containers") or []:
        resources = container.get("resources") or {}
        if TPU in (resources.get("limits") or {}) or TPU in (resources.get("requests") or {}):
            return True
    return False


def _only(code: str) -> Keeps:
    return Keeps("files only", code)
