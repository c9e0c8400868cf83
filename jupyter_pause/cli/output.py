# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the command line prints: sizes, times and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
#: Narrower terminals get longer lines anyway; nothing is cut below this width.
_NARROWEST = 60


def size(count: float | None, *, complete: bool = True) -> str:
    """Bytes for people: "1.5 MiB"; "unknown" for None, "at least" for a lower bound."""
    if count is None:
        return "unknown"
    value, unit = float(max(0, count)), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1
    text = f"{value:.{digits}f} {_UNITS[unit]}"
    return text if complete else f"at least {text}"


def duration(seconds: float | None) -> str:
    """Seconds for people: "0.4 s", "3 min 5 s", "2 h 10 min", "4 d 3 h"."""
    if seconds is None:
        return "unknown"
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    for unit, name, small, small_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            return f"{whole // unit} {name} {whole % unit // small} {small_name}"
    return f"{whole} s"


def moment(value: str | None) -> str:
    """An RFC 3339 time as local time for people; "unknown" for None."""
    if not value:
        return "unknown"
    try:
        return datetime.fromisoformat(value).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return value


def age(value: str | None) -> str:
    """How long ago an RFC 3339 time was."""
    if not value:
        return "unknown"
    try:
        return duration((datetime.now(UTC) - datetime.fromisoformat(value)).total_seconds()) + " ago"
    except (ValueError, TypeError):
        return value


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Columns side by side; the last one is cut to the terminal's width. No rows: just the header."""
    cells = [[_plain(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    limit = width if width is not None else _width()
    lines = []
    for row in cells:
        text = "  ".join(cell.ljust(widths[column]) for column, cell in enumerate(row)).rstrip()
        lines.append(text if limit is None or len(text) <= limit else text[: limit - 1] + "…")
    return "\n".join(lines)


def _width() -> int | None:
    if not sys.stdout.isatty():
        return None
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def _plain(text: str) -> str:
    """No control characters: a variable's type or a file's name must not drive the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def losses_table(losses: Sequence[dict[str, Any]]) -> str:
    """What would not, or did not, come back."""
    rows = [
        [
            str(loss.get("path") or loss.get("name")),
            str(loss.get("type") or ""),
            f"[{loss['cell']}]" if loss.get("cell") is not None else "",
            str(loss.get("reason") or ""),
        ]
        for loss in losses
    ]
    return table(["WHAT", "TYPE", "CELL", "WHY"], rows)


def differences_table(differences: Sequence[dict[str, Any]]) -> str:
    """How the environment differs from the one the checkpoint was made in."""
    rows = [[_difference_name(item), _value(item, "saved"), _value(item, "current")] for item in differences]
    devices = sorted({name for item in differences for name in item.get("devices") or ()})
    text = table(["NAME", "SAVED", "NOW"], rows)
    if devices:
        text += (
            f"\nIt holds arrays on a device ({', '.join(devices)}). Where that is not there, they come back in main "
            "memory if their library can do that, and else are named as lost."
        )
    return text


def _difference_name(item: dict[str, Any]) -> str:
    kinds = {"gpu": "GPUs", "gpu_place": "place of the GPUs", "image": "container image"}
    return kinds.get(str(item.get("kind")), str(item.get("name")))


def _value(item: dict[str, Any], field: str) -> str:
    """Of a package None is "not there"; of the machine it is "not known", and a GPU can be there or not."""
    value = item.get(field)
    if item.get("kind") is None:
        return str(value or "not there")
    return "not known" if value is None else str(value) or "none"


class Output:
    """Where results go. With `as_json` stdout gets exactly one JSON object, and nothing else."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out = out if out is not None else sys.stdout
        self._err = err if err is not None else sys.stderr
        self._line = 0

    def say(self, text: str = "") -> None:
        """A line (or lines) for people; nothing with `as_json`."""
        if not self.as_json:
            self.end_progress()
            print(text, file=self._out, flush=True)

    def result(self, **fields: Any) -> None:
        """The JSON object; nothing without `as_json`."""
        if self.as_json:
            print(json.dumps(fields, indent=2, sort_keys=True), file=self._out, flush=True)

    def complain(self, text: str) -> None:
        """A sentence on stderr."""
        self.end_progress()
        print(text, file=self._err, flush=True)

    @property
    def live(self) -> bool:
        """Is there a terminal to show progress on?"""
        return not self.as_json and self._err.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def can_ask(self) -> bool:
        """Is there a person to ask?"""
        return self.live and sys.stdin.isatty()

    def ask(self, question: str) -> bool:
        """Yes or no; anything but yes is no."""
        self.end_progress()
        print(f"{question} [y/N] ", end="", file=self._err, flush=True)
        try:
            return sys.stdin.readline().strip().lower() in ("y", "yes")
        except KeyboardInterrupt:
            print(file=self._err)
            return False

    def progress(self, text: str) -> None:
        """Replace the progress line (terminals only)."""
        if self.live:
            shown = text[: shutil.get_terminal_size().columns - 1]
            print("\r" + shown.ljust(self._line), end="", file=self._err, flush=True)
            self._line = len(shown)

    def end_progress(self) -> None:
        """Take the progress line away."""
        if self._line:
            print("\r" + " " * self._line + "\r", end="", file=self._err, flush=True)
            self._line = 0
