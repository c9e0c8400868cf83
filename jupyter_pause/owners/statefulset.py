# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner of a server in a bare StatefulSet of one pod: scaled to 0, and to 1 again.

Only the `scale` subresource is patched: the right to change how many pods there are, not what is in them.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from jupyter_pause.cluster.resources import STATEFULSETS
from jupyter_pause.owners.base import Check
from jupyter_pause.owners.switched import Object, Operations, Switch, open_switched

if TYPE_CHECKING:
    from jupyter_pause.owners.base import OwnerContext, WorkspaceOwner


def replicas_of(stateful_set: Object) -> int:
    """How many pods are wanted; not given is one."""
    wanted = (stateful_set.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def _status(stateful_set: Object, name: str) -> int:
    return int((stateful_set.get("status") or {}).get(name) or 0)


def _off(stateful_set: Object, now: datetime) -> Operations:
    # For the number that was read: whoever scaled it up meanwhile has not been asked.
    wanted = replicas_of(stateful_set)
    return [
        {"op": "test", "path": "/spec/replicas", "value": wanted},
        {"op": "replace", "path": "/spec/replicas", "value": 0},
    ]


def _several(stateful_set: Object) -> list[Check]:
    count = replicas_of(stateful_set)
    return [Check("several_replicas", "blocks", {"count": count})] if count > 1 else []


SWITCH = Switch(
    kind="statefulset",
    resource=STATEFULSETS,
    is_on=lambda stateful_set: replicas_of(stateful_set) > 0,
    has_gone=lambda stateful_set: _status(stateful_set, "replicas") == 0,
    is_ready=lambda stateful_set: _status(stateful_set, "readyReplicas") > 0,
    off=_off,
    on=lambda _: [{"op": "add", "path": "/spec/replicas", "value": 1}],  # the API leaves a zero out
    pod=lambda name: f"{name}-0",
    command=lambda namespace, name: f"kubectl scale statefulset {name} -n {namespace} --replicas=1",
    warn=_several,
    subresource="scale",
)


def open_owner(context: OwnerContext) -> WorkspaceOwner:
    """The owner of this server's own pod. Raises ClusterError."""
    return open_switched(SWITCH, context)
