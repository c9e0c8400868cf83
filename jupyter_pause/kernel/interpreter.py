# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Interpreter state beside the variables: directory, search path, environment, extensions, counter, plotting.

Only what differs from the process's own start is kept, and it is added to whatever the next process starts with:
tokens and other settings of the server stay those of the live one.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from functools import partial
from typing import Any, Callable, Sequence

from . import history, settings
from .cells import cell_naming

#: Names that look like credentials, when the server gives no list of its own.
DEFAULT_SKIP_ENV = ("*TOKEN*", "*SECRET*", "*PASSW*", "*_PWD", "*KEY", "*_KEY_*", "*CREDENTIAL*", "*_PAT", "*_AUTH")
#: A user and a password inside an address.
LOGIN_IN_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
#: Names that the server, the hub or the kernel manager sets: always those of the live process.
LIVE_ENV = ("JPY_*", "JUPYTERHUB_*", "JUPYTER_SERVER_*", "KERNEL_*")


class Baseline:
    """How the interpreter looked when the kernel had started and before the first cell ran."""

    def __init__(self, shell: Any) -> None:
        self.sys_path = list(sys.path)
        self.env = dict(os.environ)
        self.extensions = set(getattr(shell.extension_manager, "loaded", ()))
        self.settings = settings.Start(shell)
        #: Variables that start-up files made; they are made again at every start.
        self.names = dict(shell.user_ns)
        for name in [*history.hidden_names(shell), "In", "Out"]:
            self.names.pop(name, None)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """True when an environment variable's name fits one of the patterns, whatever the case."""
    return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


def describe(shell: Any, baseline: Baseline, skip_env: Sequence[str] | None = None) -> dict[str, Any]:
    """The ``interpreter`` part of a manifest: plain JSON values, no secret among them."""
    front, end = _path_additions(baseline.sys_path)
    return {
        "execution_count": shell.execution_count,
        "cwd": _cwd(),
        "sys_path": front + end,
        "sys_path_front": len(front),
        "sys_path_removed": [entry for entry in baseline.sys_path if _plain(entry) and entry not in sys.path],
        "env": _env_changes(baseline.env, skip_env or DEFAULT_SKIP_ENV, history_of(shell)),
        "extensions": sorted(set(getattr(shell.extension_manager, "loaded", ())) - baseline.extensions),
        "matplotlib_backend": _matplotlib_backend(),
    }


def history_of(shell: Any) -> list[Any]:
    """The cells run so far, by number (index 0 is empty), as Python source."""
    manager = getattr(shell, "history_manager", None)
    return list(getattr(manager, "input_hist_parsed", ()) or ())


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # the directory was deleted
        return ""


def _path_additions(before: list[str]) -> tuple[list[str], list[str]]:
    """Entries of sys.path that were added: those in front of the first old entry, and the others."""
    known = set(before)
    front, end = [], []
    seen_old = False
    for entry in list(sys.path):
        if not _plain(entry):
            continue
        if entry in known:
            seen_old = True
        elif seen_old:
            end.append(entry)
        else:
            front.append(entry)
    return front, end


def _env_changes(before: dict[str, str], skip: Sequence[str], past: list[Any]) -> dict[str, Any]:
    """What was set, removed, and set but not stored (with the cell that set it)."""
    now = dict(os.environ)
    changed = {}
    withheld = []
    for name, value in now.items():
        if before.get(name) == value or matches(name, LIVE_ENV):
            continue
        if matches(name, skip) or LOGIN_IN_ADDRESS.search(value) or not (_plain(name) and _plain(value)):
            withheld.append({"name": name.encode("utf-8", "replace").decode(), "cell": cell_naming(name, past)})
        else:
            changed[name] = value
    removed = sorted(name for name in before if name not in now and _plain(name) and not matches(name, LIVE_ENV))
    return {"set": changed, "removed": removed, "not_stored": sorted(withheld, key=lambda item: item["name"])}


def _plain(text: Any) -> bool:
    """False for text that UTF-8 cannot hold (undecodable bytes), and for what is no text."""
    try:
        text.encode("utf-8")
    except (UnicodeError, AttributeError):
        return False
    return True


def _matplotlib_backend() -> str | None:
    """The plotting backend in use, without choosing one by asking."""
    module = sys.modules.get("matplotlib")
    params = getattr(module, "rcParams", None)
    if params is None:
        return None
    try:
        backend = dict.__getitem__(params, "backend")
    except (KeyError, TypeError):
        return None
    return backend if isinstance(backend, str) else None


# --- putting it back ----------------------------------------------------------------------------------------------


def apply_before(shell: Any, state: dict[str, Any], skip_env: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Put back what imports depend on: search path, environment, directory, extensions. Returns losses."""
    losses = []
    _apply_path(state)
    _apply_env(state.get("env") or {}, skip_env or DEFAULT_SKIP_ENV)
    cwd = state.get("cwd")
    if cwd:
        try:
            os.chdir(cwd)
        except OSError as error:
            reason = "The folder is not there any more ({}).".format(error.strerror or type(error).__name__)
            losses.append(loss("current directory", cwd, "directory", reason))
    for name in state.get("extensions") or ():
        try:
            _quietly(partial(shell.extension_manager.load_extension, name))
        except Exception as error:
            reason = "The extension could not be loaded: {}: {}".format(type(error).__name__, error)
            losses.append(loss("%load_ext " + name, name, "IPython extension", reason))
    return losses + _choose_backend(state)


def apply_environment(state: dict[str, Any], skip_env: Sequence[str] | None = None) -> None:
    """Only what was changed in the environment: for a process that tries a checkpoint out."""
    _apply_env(state.get("env") or {}, skip_env or DEFAULT_SKIP_ENV)


def renew_env(live: dict[str, str]) -> list[str]:
    """Take over the live server's own variables (`LIVE_ENV`), tokens among them. Returns the names that changed."""
    renewed = []
    for name, value in live.items():
        if matches(name, LIVE_ENV) and _plain(name) and _plain(value) and os.environ.get(name) not in (None, value):
            os.environ[name] = value
            renewed.append(name)
    return sorted(renewed)


def apply_after(shell: Any, state: dict[str, Any]) -> list[dict[str, Any]]:
    """Put back what later cells see: the execution counter and changed settings. Returns losses."""
    count = state.get("execution_count")
    if isinstance(count, int) and count > 0:
        shell.execution_count = count
    return settings.apply(shell, shell.user_ns.pop(settings.NAME, None))


def _choose_backend(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Choose the plotting backend before figures come back: choosing one closes those that are there."""
    backend = state.get("matplotlib_backend")
    if not backend or backend == _matplotlib_backend() or backend == os.environ.get("MPLBACKEND"):
        return []
    try:
        import matplotlib as mpl

        _quietly(partial(mpl.use, backend, force=False))
    except Exception as error:
        reason = "The plotting backend could not be chosen: {}: {}".format(type(error).__name__, error)
        return [loss("matplotlib backend", backend, "setting", reason)]
    return []


def loss(name: str, path: str, kind: str, reason: str, cell: int | None = None) -> dict[str, Any]:
    """One entry of a list of losses."""
    return {"name": name, "path": path, "type": kind, "reason": reason, "cell": cell}


def _apply_path(state: dict[str, Any]) -> None:
    added = [entry for entry in state.get("sys_path") or () if isinstance(entry, str)]
    front = int(state.get("sys_path_front") or 0)
    sys.path[:0] = [entry for entry in added[:front] if entry not in sys.path]
    sys.path.extend(entry for entry in added[front:] if entry not in sys.path)
    removed = state.get("sys_path_removed") or ()
    sys.path[:] = [entry for entry in sys.path if entry not in removed]


def _apply_env(changes: dict[str, Any], skip: Sequence[str]) -> None:
    for name, value in (changes.get("set") or {}).items():
        if not matches(name, skip) and not matches(name, LIVE_ENV):
            os.environ[name] = value
    for name in changes.get("removed") or ():
        if not matches(name, LIVE_ENV):
            os.environ.pop(name, None)


def _quietly(call: Callable[[], Any]) -> Any:
    """Call with all output swallowed: nothing of ours is printed into the notebook."""
    from IPython.utils.capture import capture_output

    with capture_output():
        return call()
