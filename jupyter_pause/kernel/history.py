# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""IPython's own history variables: ``In``, ``Out``, ``_``, ``_3``, ``_i3``, ``_dh`` and the line numbers behind them.

``In`` and ``Out`` travel as ordinary variables, so that ``Out[3]`` and the variable it shows stay one object. What
they leave out (the raw input, directories visited, which outputs ``_`` and ``__`` stand for) goes along as `NAME`.
"""

from __future__ import annotations

import os
import re
from typing import Any

#: The variable that carries what ``In`` and ``Out`` do not say. Never shown to a person.
NAME = "__jupyter_pause_history__"
#: IPython's names that are made anew in every process, or from ``In`` and ``Out``.
_OWN = frozenset(
    """
    _ih _oh _dh get_ipython exit quit open _i _ii _iii __file__ __annotations__ __conditional_annotations__
    """.split()
)
_NUMBERED = re.compile(r"^_i?\d+$")
_UNDERS = ("_", "__", "___")
_MISSING = object()


def hidden_names(shell: Any) -> set[str]:
    """Names in the user namespace that belong to IPython as long as they hold what IPython put there."""
    namespace, own = shell.user_ns, shell.user_ns_hidden
    found = {"__builtin__", "__builtins__"}
    for name, value in list(namespace.items()):
        if type(name) is not str:
            found.add(name)  # no variable: `nameless_losses` tells of it
        elif name in ("__name__", "__doc__", "__package__", "__loader__", "__spec__") or (
            (name in _OWN or _NUMBERED.match(name) or name in _UNDERS)
            and (own.get(name, _MISSING) is value or _is_displayed(shell, name, value))
        ):
            found.add(name)
    # IPython names the notebook there; a new kernel gets its own.
    if namespace.get("__session__", _MISSING) == os.environ.get("JPY_SESSION_NAME"):
        found.add("__session__")
    return found


def nameless_losses(namespace: dict[Any, Any]) -> list[dict[str, Any]]:
    """What lies in the namespace under something else than a name: ``globals()[5] = ...``. It is not saved."""
    losses = []
    for key, value in list(namespace.items()):
        if type(key) is not str:
            # The repr of a person's own key could run their code.
            shown = repr(key) if type(key) in (int, float, bool, bytes, type(None)) else type(key).__name__
            path = "globals()[{}]".format(shown)
            reason = "It lies in the namespace under a key that is not a name."
            losses.append({"name": path, "path": path, "type": type(value).__name__, "reason": reason, "cell": None})
    return losses


def _is_displayed(shell: Any, name: str, value: Any) -> bool:
    """True for ``_`` and friends while they hold what the display hook put there."""
    if name not in _UNDERS:
        return False
    hook = getattr(shell, "displayhook", None)
    return getattr(hook, name, _MISSING) is value


def collect(shell: Any) -> dict[str, Any]:
    """What `restore` needs beside ``In`` and ``Out``: lists of text and numbers only."""
    manager = shell.history_manager
    outputs = manager.output_hist
    hook = getattr(shell, "displayhook", None)
    unders = {}
    for name in _UNDERS:
        value = getattr(hook, name, _MISSING)
        unders[name] = next((key for key in reversed(list(outputs)) if outputs[key] is value), None)
    return {
        "raw": list(manager.input_hist_raw),
        "directories": [str(entry) for entry in manager.dir_hist],
        "unders": unders,
        "texts": {key: text for key, text in dict(manager.output_hist_reprs).items() if isinstance(text, str)},
    }


def restore(shell: Any, count: int, parsed: list[Any], outputs: Any, extra: dict[str, Any]) -> None:
    """Make IPython's history that of the saved kernel. `count` is the number that the next cell gets.

    The lists are changed in place: ``In``, ``_ih`` and the history manager share them.
    """
    manager = shell.history_manager
    parsed = _padded(parsed, count)
    raw = _padded(extra.get("raw") or parsed, count)
    manager.input_hist_parsed[:] = parsed
    manager.input_hist_raw[:] = raw
    manager.output_hist.clear()
    manager.output_hist.update(outputs if isinstance(outputs, dict) else {})
    manager.output_hist_reprs.update(extra.get("texts") or {})
    directories = extra.get("directories") or []
    if directories:
        manager.dir_hist[:] = directories
    for name in ("In", "_ih"):
        shell.user_ns[name] = shell.user_ns_hidden[name] = manager.input_hist_parsed
    for name in ("Out", "_oh"):
        shell.user_ns[name] = shell.user_ns_hidden[name] = manager.output_hist
    _restore_names(shell, raw, extra.get("unders") or {})


def _padded(entries: Any, count: int) -> list[str]:
    """Exactly one entry for each cell run so far, index 0 empty."""
    texts = [entry if isinstance(entry, str) else "" for entry in list(entries or [""])][:count]
    return texts + [""] * (count - len(texts))


def _restore_names(shell: Any, raw: list[str], unders: dict[str, Any]) -> None:
    manager = shell.history_manager
    names = {"_i{}".format(number): raw[number] for number in range(1, len(raw))}
    names.update({"_{}".format(key): value for key, value in manager.output_hist.items() if isinstance(key, int)})
    manager._i00, manager._i, manager._ii = ([""] * 3 + raw[1:])[:-4:-1]
    manager._iii = ""
    names.update({"_i": manager._i, "_ii": manager._ii, "_iii": ""})
    hook = getattr(shell, "displayhook", None)
    for name in _UNDERS:
        value = manager.output_hist.get(unders.get(name), "") if unders.get(name) is not None else ""
        if hook is not None and shell.user_ns.get(name, "") is getattr(hook, name, _MISSING):
            names[name] = value
        if hook is not None:
            setattr(hook, name, value)
    shell.push(names, interactive=False)
