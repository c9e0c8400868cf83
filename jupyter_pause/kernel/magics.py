# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""``%pause`` and ``%resume``: the door for people who are typing. They ask the server; they decide nothing."""

from __future__ import annotations

import argparse
import html
import shlex
from typing import TYPE_CHECKING, Any, Callable, Iterable, NoReturn, Sequence

from . import link

if TYPE_CHECKING:
    from .agent import Agent

_PARAGRAPH = "<p style='margin:0'>{}</p>"


def register(agent: Agent) -> None:
    """Make the magics known to the kernel's IPython, without any ``%load_ext``."""
    commands = PauseCommands(agent)

    # Displayed, not returned: a cell may go on after the magic, and its text must be seen all the same.
    def pause(line: str = "") -> None:
        _display(commands.pause(line))

    def resume(line: str = "") -> None:
        _display(commands.resume(line))

    pause.__doc__ = PAUSE_HELP
    resume.__doc__ = RESUME_HELP
    agent.shell.register_magic_function(pause, "line", "pause")
    agent.shell.register_magic_function(resume, "line", "resume")


def _display(text: Text) -> None:
    from IPython import display

    display.display(text)  # type: ignore[no-untyped-call,unused-ignore]


PAUSE_HELP = """Pause this kernel: write its state to disk, end the process, free RAM and VRAM.

    %pause                 pause right after this cell, before any cell queued behind it
    %pause --preview       show what would be kept and what would be lost; nothing else happens
    %pause --accept-loss   pause although something would be lost
    %pause --status        what the server says about this kernel
    %pause --list          checkpoints that can be resumed
    %pause --cancel        call a pause off that has not ended the process yet

Cells queued behind the pause are not run and not lost: they are offered again after the resume. Without
--accept-loss nothing is paused while something would be lost; the losses are printed instead. Resume from the
notebook's Resume button or with `jupyter pause resume` in a terminal.
"""

RESUME_HELP = """A paused kernel cannot run a cell, so it cannot resume itself; prints how to resume one.
"""


class Text:
    """Shown as plain text in a terminal and as a few lines of HTML in a notebook."""

    def __init__(self, lines: Iterable[str], rows: Iterable[Sequence[str]] = ()) -> None:
        self._lines = list(lines)
        self._rows = [tuple(row) for row in rows]

    def __repr__(self) -> str:
        widths = [max(len(row[i]) for row in self._rows) for i in range(len(self._rows[0]))] if self._rows else []
        table = ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in self._rows]
        return "\n".join(self._lines + table)

    def _repr_html_(self) -> str:
        parts = [_PARAGRAPH.format(html.escape(line)) for line in self._lines]
        if self._rows:
            cells = ["".join("<td>{}</td>".format(html.escape(cell)) for cell in row) for row in self._rows]
            parts.append("<table>{}</table>".format("".join("<tr>{}</tr>".format(row) for row in cells)))
        return "".join(parts)


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def _parse(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%pause", add_help=False)
    group = parser.add_mutually_exclusive_group()
    for name in ("preview", "status", "list", "cancel", "help"):
        group.add_argument("--" + name, action="store_true")
    parser.add_argument("--accept-loss", action="store_true")
    return parser.parse_args(shlex.split(line))


class PauseCommands:
    """Each command returns what is shown below the cell."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def pause(self, line: str) -> Text:
        """`%pause`: see PAUSE_HELP."""
        try:
            options = _parse(line)
        except (_UsageError, ValueError) as error:
            return Text(["%pause: {}. See %pause --help.".format(error)])
        if options.help:
            return Text(PAUSE_HELP.rstrip().splitlines())
        for name in ("preview", "status", "list", "cancel"):
            if getattr(options, name):
                return self._fenced(getattr(self, "_" + name))
        return self._fenced(lambda: self._pause(options.accept_loss))

    def resume(self, line: str) -> Text:
        """`%resume`: a hint, since a kernel that can run this is not paused."""
        return Text(
            [
                "This kernel is running, so there is nothing to resume in it.",
                "To resume a paused notebook use its Resume button, the Running panel, "
                "or `jupyter pause list` and `jupyter pause resume` in a terminal.",
            ]
        )

    def _fenced(self, command: Callable[[], Text]) -> Text:
        """One clear sentence in place of a traceback into our code."""
        try:
            return command()
        except link.ServerUnreachableError as error:
            return Text([str(error)])
        except Exception as error:
            return Text(["%pause failed and changed nothing: {}: {}".format(type(error).__name__, error)])

    def _pause(self, accept: bool) -> Text:
        link.address_of_server(self._agent.files)  # said first: a scan of large variables may take its time
        losses = [] if accept else self._agent.inventory.scan_now()["losses"]
        # Only the server knows whether a snapshot of the process would keep them.
        answer = self._ask({"op": "pause", "on_loss": "accept" if accept else "refuse", "losses": losses})
        if answer.get("code") == "would_lose":
            return _would_lose(answer.get("losses") or losses)
        if not answer.get("ok"):
            return _refusal("Not paused", answer)
        self._agent.capture_after_cell(answer["staging"])
        return Text(
            [
                "Pausing: this kernel's state is written right after this cell, then its process ends.",
                "Cells queued behind this one are not run; they are offered again after the resume.",
            ]
        )

    def _preview(self) -> Text:
        found = self._agent.inventory.scan_now()
        kept = [item for item in found["variables"] if item["fate"] in ("in checkpoint", "kept", "rebuilt")]
        size = sum(item["bytes"] or 0 for item in kept)
        lines = ["{} would be kept, about {}.".format(_count(len(kept), "variable"), _size(size))]
        losses = self._lost_for_good(found["losses"])
        if losses:
            lines.append("{} would be lost:".format(_count(len(losses), "thing")))
        elif found["losses"]:
            lines.append(
                "Nothing would be lost: what a checkpoint cannot hold ({}) comes back with a snapshot of the "
                "whole process.".format(_count(len(found["losses"]), "thing"))
            )
        else:
            lines.append("Nothing would be lost.")
        return Text(lines, _loss_rows(losses))

    def _lost_for_good(self, losses: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What even a snapshot would not keep; all of it where the server cannot say."""
        if not losses:
            return []
        try:
            answer = self._ask({"op": "preview", "losses": losses})
        except link.ServerUnreachableError:
            return losses
        return (answer.get("losses") or []) if answer.get("ok") else losses

    def _status(self) -> Text:
        answer = self._ask({"op": "status"})
        if not answer.get("ok"):
            return _refusal("No status", answer)
        row = answer.get("state") or {}
        line = "This kernel is {}{}.".format(
            row.get("state") or "not known to the server", " ({})".format(row["phase"]) if row.get("phase") else ""
        )
        lines = [line]
        if row.get("since"):
            lines.append("Since {}.".format(row["since"]))
        last = row.get("last_resume") or {}
        if last.get("outcome"):
            lines.append("Last resume: {} at {}.".format(last["outcome"], last.get("at")))
        if row.get("pausable") is False:
            lines.append("It cannot be paused: {}".format((row.get("reason") or {}).get("message") or "unknown reason"))
        return Text(lines)

    def _list(self) -> Text:
        answer = self._ask({"op": "list"})
        if not answer.get("ok"):
            return _refusal("No list", answer)
        found = answer.get("checkpoints") or []
        rows = [
            (str(row.get("id"))[:8], str(row.get("created")), _size(row.get("bytes")), str(row.get("path") or ""))
            for row in found
        ]
        if not rows:
            return Text(["There are no checkpoints yet."])
        return Text(["{}, newest first:".format(_count(len(rows), "checkpoint"))], rows)

    def _cancel(self) -> Text:
        answer = self._ask({"op": "cancel"})
        if not answer.get("ok"):
            return _refusal("Nothing was cancelled", answer)
        return Text(["The pause was called off; the kernel runs on as it was."])

    def _ask(self, content: dict[str, Any]) -> dict[str, Any]:
        return link.request(self._agent.files, content)


def _would_lose(losses: list[dict[str, Any]]) -> Text:
    first = "Not paused: {} would be lost.".format(_count(len(losses), "thing"))
    hint = "Use %pause --accept-loss to pause all the same, or remove {} first.".format(
        "it" if len(losses) == 1 else "them"
    )
    return Text([first, hint], _loss_rows(losses))


def _refusal(start: str, answer: dict[str, Any]) -> Text:
    message = answer.get("message") or "the server refused ({})".format(answer.get("code") or "no reason given")
    return Text(["{}: {}".format(start, message)], _loss_rows(answer.get("losses") or []))


def _loss_rows(losses: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    rows = []
    for loss in losses:
        cell = "cell {}".format(loss["cell"]) if loss.get("cell") else ""
        path = str(loss.get("path") or loss.get("name"))
        rows.append((path, str(loss.get("type") or ""), cell, str(loss.get("reason") or "")))
    return rows


def _count(number: int, noun: str) -> str:
    return "{} {}{}".format(number, noun, "" if number == 1 else "s")


def _size(number: Any) -> str:
    if not isinstance(number, (int, float)):
        return "unknown size"
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return "{:.0f} {}".format(number, unit) if unit == "bytes" else "{:.1f} {}".format(number, unit)
        number /= 1024
    return ""
