# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""From a kind of owner to the owner itself. Modules are imported only when their owner was found."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_pause.owners.base import OwnerContext, WorkspaceOwner

#: Other distributions add owners in this group: kind = "module:open_owner".
GROUP = "jupyter_pause.owners"
_MODULES = ("kubeflow", "notebook_v1", "jupyterhub", "sandbox", "statefulset")


def open_owner(kind: str, context: OwnerContext) -> WorkspaceOwner:
    """Make the owner. Blocks for an import. Raises LookupError for a kind that nobody brings, or what making raises."""
    for entry in entry_points(group=GROUP, name=kind):
        return _made(entry.load(), context)
    if kind not in _MODULES:
        raise LookupError(kind)
    try:
        module = importlib.import_module(f"jupyter_pause.owners.{kind}")
    except ModuleNotFoundError as error:
        raise LookupError(kind) from error
    return _made(module.open_owner, context)


def _made(make: Callable[[OwnerContext], WorkspaceOwner], context: OwnerContext) -> WorkspaceOwner:
    return make(context)
