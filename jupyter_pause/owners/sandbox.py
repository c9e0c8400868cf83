# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner under kubernetes-sigs/agent-sandbox: `spec.operatingMode` is Running or Suspended.

agent-sandbox deletes the pod of a suspended Sandbox and keeps its volumes; the condition `Suspended` turns True when
the pod is gone (controllers/sandbox_controller.go). Its clients can have GKE snapshot the pod first, from outside (a
`PodSnapshotManualTrigger`, then the switch). From inside the pod that is not done: whoever throws the switch must go on
running after the snapshot, and everything in here is what the snapshot is of. So a pause by the Sandbox keeps files
and kernel checkpoints, and says so before the click.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_pause.cluster.resources import SANDBOXES
from jupyter_pause.owners.kubeflow_state import parse_time
from jupyter_pause.owners.switched import Object, Operations, Switch, open_switched

if TYPE_CHECKING:
    from datetime import datetime

    from jupyter_pause.owners.base import OwnerContext, WorkspaceOwner

RUNNING, SUSPENDED = "Running", "Suspended"


def _mode(sandbox: Object) -> str:
    return str((sandbox.get("spec") or {}).get("operatingMode") or RUNNING)


def _condition(sandbox: Object, kind: str) -> Object:
    conditions = (sandbox.get("status") or {}).get("conditions") or []
    found: Object = next((one for one in conditions if one.get("type") == kind), {})
    return found


def _is_ready(sandbox: Object) -> bool:
    return _condition(sandbox, "Ready").get("status") == "True"


def _word(sandbox: Object) -> Object:
    """The condition that says whether the pod is gone. Versions without `Suspended` only have `Ready`."""
    return _condition(sandbox, "Suspended") or _condition(sandbox, "Ready")


def _has_gone(sandbox: Object) -> bool:
    """What the condition says, unless it is of an older specification than the one that switched it off."""
    word = _word(sandbox)
    observed, generation = word.get("observedGeneration"), sandbox["metadata"].get("generation")
    behind = isinstance(observed, int) and isinstance(generation, int) and observed < generation
    return not behind and (word.get("type"), word.get("status")) in (("Suspended", "True"), ("Ready", "False"))


def _since(sandbox: Object) -> datetime | None:
    return parse_time(_word(sandbox).get("lastTransitionTime")) if _has_gone(sandbox) else None


def _set(mode: str) -> Operations:
    return [{"op": "add", "path": "/spec/operatingMode", "value": mode}]


SWITCH = Switch(
    kind="sandbox",
    resource=SANDBOXES,
    is_on=lambda sandbox: _mode(sandbox) == RUNNING,
    has_gone=_has_gone,
    is_ready=_is_ready,
    off=lambda sandbox, now: _set(SUSPENDED),
    on=lambda sandbox: _set(RUNNING),
    pod=lambda name: name,
    command=lambda namespace, name: (
        f"kubectl patch sandboxes.agents.x-k8s.io {name} -n {namespace} --type=merge "
        f"""-p '{{"spec":{{"operatingMode":"{RUNNING}"}}}}'"""
    ),
    since=_since,
)


def open_owner(context: OwnerContext) -> WorkspaceOwner:
    """The owner of this server's own pod. Raises ClusterError."""
    return open_switched(SWITCH, context)
