# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Loads a checkpoint into a kernel that has started but not yet handled a message, and says how it went."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from . import files, history, interpreter, subshells

if TYPE_CHECKING:
    from .agent import Agent


def load_at_start(agent: Agent) -> None:
    """Do what the load file asks for, if there is one. Never raises an Exception; never prints into the notebook."""
    began = time.monotonic()
    request = None
    try:
        request = agent.files.take_load_request()
    except ValueError as error:
        agent.problems.append("load: {}".format(error))
    if request is None:
        return
    before = _Before(agent)
    try:
        result = _load(agent, request)
    except BaseException as error:  # a checkpoint's own code may raise anything, also SystemExit
        before.put_back(agent)
        result = _failure(error)
    result["seconds"] = round(time.monotonic() - began, 3)
    result["pid"] = os.getpid()
    result.setdefault("execution_count", getattr(agent.shell, "execution_count", 1))
    try:
        files.write_private(request["result"], result)
    except (OSError, KeyError, TypeError) as error:
        agent.problems.append("load result: {}: {}".format(type(error).__name__, error))


class _Before:
    """The interpreter as it was, so that a load that failed half way leaves nothing behind."""

    def __init__(self, agent: Agent) -> None:
        self._namespace = dict(agent.shell.user_ns) if agent.shell is not None else {}
        self._path = list(sys.path)
        self._env = dict(os.environ)
        self._cwd = os.getcwd()

    def put_back(self, agent: Agent) -> None:
        if agent.shell is not None:
            agent.shell.user_ns.clear()
            agent.shell.user_ns.update(self._namespace)
        sys.path[:] = self._path
        os.environ.clear()
        os.environ.update(self._env)
        try:
            os.chdir(self._cwd)
        except OSError:
            return


def _load(agent: Agent, request: dict[str, Any]) -> dict[str, Any]:
    """Verify, put the interpreter's state back, then the variables; returns the load result."""
    if agent.shell is None:
        raise LoadError("not_ipython", "This kernel is not an IPython kernel, so no variables can be put back.")
    agent.register_cloudpickle()
    from . import layout, revive

    skip_env = agent.files.server().get("skip_env")
    losses: list[dict[str, Any]] = []

    def prepare(state: dict[str, Any]) -> None:
        losses.extend(interpreter.apply_before(agent.shell, state, skip_env))

    result: dict[str, Any] = revive.load(
        request["checkpoint"], agent.shell.user_ns, secret=layout.read_secret(request["secret_file"]), prepare=prepare
    )
    if result.get("status") != "ok":
        raise LoadError(result.get("code") or "load_failed", result.get("message") or "The checkpoint did not load.")
    state = result.pop("interpreter")
    _restore_history(agent.shell, state)
    losses += interpreter.apply_after(agent.shell, state)
    losses += state.get("background") or []
    subshells.start_again(
        agent.kernel, state.get("subshells") or [], lambda error: agent.note_problem("subshells", error)
    )
    result["losses"] = result["losses"] + losses
    result["execution_count"] = agent.shell.execution_count
    if losses and result["outcome"] == "restored":
        result["outcome"] = "partial"
    return result


def _restore_history(shell: Any, state: dict[str, Any]) -> None:
    namespace = shell.user_ns
    count = state.get("execution_count")
    extra = namespace.pop(history.NAME, None)
    parsed, outputs = namespace.get("In"), namespace.get("Out")
    if isinstance(count, int) and count > 0:
        extra = extra if isinstance(extra, dict) else {}
        history.restore(shell, count, parsed if isinstance(parsed, list) else [], outputs, extra)


class LoadError(Exception):
    """The checkpoint was not loaded: `code` is stable, the text one sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _failure(error: BaseException) -> dict[str, Any]:
    code = getattr(error, "code", None)
    known = isinstance(error, LoadError) or (isinstance(code, str) and code.isidentifier())
    return {
        "status": "failed",
        "outcome": "fresh",
        "code": code if known else "load_failed",
        "message": str(error) if known else "{}: {}".format(type(error).__name__, error),
        "variables": [],
        "losses": [],
        "rebuilt": [],
        "compared": 0,
        "mismatched": [],
    }
