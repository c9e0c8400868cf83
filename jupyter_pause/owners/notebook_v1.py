# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner under Kubeflow Notebooks v1: an annotation stops the notebook, its removal starts it again.

Source: kubeflow/kubeflow, components/notebook-controller (the culler writes the same annotation, RFC 3339).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jupyter_pause.cluster.resources import NOTEBOOKS_V1
from jupyter_pause.owners.kubeflow_state import parse_time
from jupyter_pause.owners.switched import Object, Operations, Switch, open_switched

if TYPE_CHECKING:
    from jupyter_pause.owners.base import OwnerContext, WorkspaceOwner

STOPPED = "kubeflow-resource-stopped"


def _annotations(notebook: Object) -> dict[str, str]:
    return notebook["metadata"].get("annotations") or {}


def _is_on(notebook: Object) -> bool:
    return STOPPED not in _annotations(notebook)


def _has_gone(notebook: Object) -> bool:
    status = notebook.get("status") or {}
    return not status.get("readyReplicas") and not (status.get("containerState") or {}).get("running")


def _is_ready(notebook: Object) -> bool:
    return bool((notebook.get("status") or {}).get("readyReplicas"))


def _off(notebook: Object, now: datetime) -> Operations:
    stamp = now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    first: Operations = [] if _annotations(notebook) else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return [*first, {"op": "add", "path": f"/metadata/annotations/{STOPPED}", "value": stamp}]


def _on(notebook: Object) -> Operations:
    return [{"op": "remove", "path": f"/metadata/annotations/{STOPPED}"}]


SWITCH = Switch(
    kind="notebook_v1",
    resource=NOTEBOOKS_V1,
    is_on=_is_on,
    has_gone=_has_gone,
    is_ready=_is_ready,
    off=_off,
    on=_on,
    pod=lambda name: f"{name}-0",
    command=lambda namespace, name: f"kubectl annotate notebooks.v1.kubeflow.org {name} -n {namespace} {STOPPED}-",
    since=lambda notebook: parse_time(_annotations(notebook).get(STOPPED)),
)


def open_owner(context: OwnerContext) -> WorkspaceOwner:
    """The owner of this server's own pod. Raises ClusterError."""
    return open_switched(SWITCH, context)
