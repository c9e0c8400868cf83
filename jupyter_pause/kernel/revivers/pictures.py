# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Figures of matplotlib, widgets, and what observes objects with traits."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional, Tuple

from .base import Help, Reviver

# --- matplotlib ----------------------------------------------------------------------------------------------------


class _Figure(Reviver):
    types = ("matplotlib.figure.Figure",)
    derived = True
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
        state = recipe[2] if len(recipe) > 2 else None
        if type(state) is not dict or not state.get("_restore_to_pylab"):
            return recipe
        inside = dict(state, _restore_to_pylab=False)
        return recipe[0], recipe[1], (inside, value.canvas.manager.num), None, None, restore_figure


def restore_figure(figure: Any, state: Any) -> None:
    """A figure that pyplot knows by its number."""
    inside, number = state
    figure.__setstate__(inside)
    import matplotlib.pyplot as plt

    manager = plt._get_backend_mod().new_figure_manager_given_figure(number, figure)
    plt._pylab_helpers.Gcf._set_new_active_manager(manager)


# --- widgets -------------------------------------------------------------------------------------------------------


class _Comm(Reviver):
    """A widget's line to its picture in the notebook."""

    types = ("comm.base_comm.BaseComm",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        return "its picture in the notebook is connected again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        state = (value._msg_callback, value._close_callback)
        return make_comm, (type(value), value.comm_id, value.target_name), state, None, None, set_comm


def make_comm(cls: Any, identifier: str, target: str) -> Any:
    """A line that the other side has open already; it answers to messages."""
    made = cls(comm_id=identifier, target_name=target, primary=False)
    kernels = getattr(sys.modules.get("ipykernel.kernelbase"), "Kernel", None)
    # ipykernel's lines learn their kernel when they are opened; widgets say nothing over one that has none.
    if getattr(made, "kernel", made) is None and kernels is not None and kernels.initialized():
        made.kernel = kernels.instance()
    importlib.import_module("comm").get_comm_manager().register_comm(made)
    return made


def set_comm(made: Any, state: Any) -> None:
    """What is called for messages; widgets are found by their line."""
    made._msg_callback, made._close_callback = state
    widget = getattr(state[0], "__self__", None)
    known = getattr(sys.modules.get("ipywidgets.widgets.widget"), "_instances", None)
    if widget is not None and type(known) is dict:
        known[made.comm_id] = widget


class _Traits(Reviver):
    """Objects with traits forget on purpose who observes them, unless the class itself does."""

    types = ("traitlets.traitlets.HasTraits",)
    derived = True
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
        seen = [
            (handler, name, kind)
            for name, kinds in value._trait_notifiers.items()
            for kind, handlers in kinds.items()
            for handler in handlers
            if not hasattr(handler, "class_init")  # what the class itself observes is observed again
        ]
        if not seen or len(recipe) < 3 or len(recipe) > 5:
            return recipe
        return recipe[0], recipe[1], (recipe[2], seen), None, None, observe_again


def observe_again(made: Any, state: Any) -> None:
    """Its values, then who observes them."""
    inside, seen = state
    made.__setstate__(inside)
    for handler, name, kind in seen:
        made._add_notifiers(handler, name, kind)
