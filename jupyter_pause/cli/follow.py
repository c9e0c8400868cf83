# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Follows an operation to its end: progress on a terminal, its question, Ctrl-C."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .output import Output, differences_table, duration, losses_table, size
from .server import ApiCallError, CliError, NoServerError, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from .interrupt import HeldInterrupt

#: Seconds between two looks.
INTERVAL = 0.2
#: Looks that may fail in a row before the server counts as gone.
PATIENCE = 25

PHASES = {
    "checking": "checking what can be kept",
    "saving": "saving",
    "rehearsing": "trying the checkpoint out",
    "draining": "finishing",
    "snapshotting": "taking the snapshot",
    "releasing": "ending the process",
    "starting": "starting a process",
    "restoring": "loading",
    "proving": "comparing",
}


class Follower:
    """Waits for one operation.

    `accept`: what the person said in advance about losses or differences. `held`: a Ctrl-C from before it had begun.
    """

    def __init__(self, server: Server, output: Output, *, accept: bool | None, held: HeldInterrupt) -> None:
        self._server = server
        self._held = held
        self._output = output
        self._accept = accept
        self._interrupted = False

    def follow(self, operation: dict[str, Any]) -> dict[str, Any]:
        """The operation's last record, in state done, failed or cancelled. Raises NoServerError when it is gone."""
        name = operation["id"]
        while True:
            try:
                self._held.release()
                if operation["state"] == "needs_decision":
                    operation = self._decide(operation)
                elif operation["state"] != "running":
                    self._output.end_progress()
                    return operation
                else:
                    self._output.progress(progress_line(operation))
                    time.sleep(INTERVAL)
                    operation = self._patiently(lambda: self._server.get("operations", name))
            except KeyboardInterrupt:
                operation = self._cancel(name, operation)

    def _patiently(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        for attempt in range(PATIENCE):
            try:
                return call()
            except NoServerError as error:
                if error.code != "no_server" or attempt == PATIENCE - 1:
                    raise
                time.sleep(INTERVAL)
        raise AssertionError("unreachable")

    def _cancel(self, name: str, operation: dict[str, Any]) -> dict[str, Any]:
        """Ctrl-C: cancel while that is possible; a second Ctrl-C leaves the operation to the server."""
        if self._interrupted:
            raise CliError(
                "detached",
                "Left the operation to the server; `jupyter pause status` shows how it goes on.",
                exit_code=130,
            )
        self._interrupted = True
        self._output.complain("Cancelling ... (Ctrl-C again leaves the operation to the server)")
        try:
            cancelled: dict[str, Any] = self._server.delete("operations", name)
        except ApiCallError as error:
            self._output.complain(str(error))
            return operation
        return cancelled

    def _decide(self, operation: dict[str, Any]) -> dict[str, Any]:
        """Losses or differences found on the way: what was said in advance counts, else the person decides."""
        question = operation["question"]
        accept = self._accept
        if accept is None and self._output.can_ask:
            show_question(self._output, question)
            accept = self._output.ask(question_text(question["code"]))
        try:
            answered: dict[str, Any] = self._server.post(
                "operations", operation["id"], body={"decision": "accept" if accept else "refuse"}
            )
        except ApiCallError as error:
            if error.code not in ("no_question", "too_late"):  # somebody else was quicker
                raise
            answered = self._server.get("operations", operation["id"])
        return answered


def progress_line(operation: dict[str, Any]) -> str:
    """ "Pausing: saving, 120 MiB of 300 MiB (40 %), 1.2 s"."""
    verb = "Pausing" if operation["kind"] == "pause" else "Resuming"
    phase = PHASES.get(operation.get("phase") or "", "waiting")
    done, total = operation.get("bytes_done") or 0, operation.get("bytes_total")
    amount = ""
    if total:
        amount = f", {size(done)} of {size(total)} ({min(100, 100 * done // total)} %)"
    elif done:
        amount = f", {size(done)}"
    return f"{verb}: {phase}{amount}, {duration(operation.get('elapsed'))}"


def show_question(output: Output, body: dict[str, Any]) -> None:
    """The table behind a question or a refusal."""
    if body.get("losses"):
        output.complain(losses_table(body["losses"]))
    if body.get("differences"):
        output.complain(differences_table(body["differences"]))


def question_text(code: str) -> str:
    """What a person is asked."""
    if code == "environment_differs":
        return "The environment is not the one the checkpoint was made in. Resume anyway?"
    return "These would not come back. Pause anyway?"
