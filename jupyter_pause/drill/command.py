# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause drill`: runs the drill and prints what it measured."""

from __future__ import annotations

import signal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jupyter_pause.cli.server import CliError

from .run import MIB, Drill, DrillOptions

if TYPE_CHECKING:
    import argparse

    from jupyter_pause.cli.output import Output

    from .report import Check, Report

#: Named in the report: what a drill after an upgrade is about.
PACKAGES = ("jupyter-pause", "jupyterlab", "jupyter_server", "jupyter_client", "ipykernel")


def drill(options: argparse.Namespace, output: Output) -> int:
    """Exit code 0 only if every promise held."""
    if options.size < 1:
        raise CliError("usage", "--size must be at least 1 (MiB).", exit_code=2)
    chosen = DrillOptions(
        keep=options.keep,
        kernel=options.kernel,
        size=options.size * MIB,
        gpu=options.gpu,
        server_options=list(options.server_option),
    )
    signal.signal(signal.SIGTERM, _as_interrupt)  # so that the throw-away server is cleaned up then too
    output.say("jupyter pause drill: a throw-away notebook is paused and resumed for real.")
    report = Drill(chosen, _Teller(output).tell).run()
    report.versions |= {name: found for name in PACKAGES if (found := _version(name))}
    if options.junit:
        _write_junit(report, Path(options.junit))
    output.result(command="drill", ok=report.ok, **report.to_json())
    _say_measured(output, report)
    return 0 if report.ok else 1


class _Teller:
    """Prints each promise as it is decided, under the heading of its part. What was not reached is only counted."""

    HEADINGS: ClassVar = {
        "in_place": "\nPaused and resumed in place:",
        "restart": "\nPaused, the server killed, resumed on a new server:",
        "gpu": "\nWith a GPU:",
        "exact": "\nWith an exact snapshot of the process:",
        "clean_up": "\nAfterwards:",
    }

    def __init__(self, output: Output) -> None:
        self._output = output
        self._told: set[str] = set()

    def tell(self, check: Check) -> None:
        part = check.name.partition(".")[0]
        if check.verdict == "not reached":
            return
        if part in self.HEADINGS and part not in self._told:
            self._told.add(part)
            self._output.say(self.HEADINGS[part])
        self._output.say(check.line())


def _as_interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _write_junit(report: Report, path: Path) -> None:
    try:
        report.write_junit(path)
    except OSError as error:
        raise CliError("unwritable", f"The report cannot be written to {path} ({error.strerror}).") from error


def _say_measured(output: Output, report: Report) -> None:
    output.say()
    output.say(", ".join(f"{name} {number}" for name, number in report.versions.items()))
    if report.folder:
        output.say(f"The folder of the drill was kept: {report.folder}")
    output.say(report.summary())
