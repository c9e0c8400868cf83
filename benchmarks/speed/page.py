# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The results as Markdown tables, and as a page of the documentation. No names of machines, no paths."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime

import workloads
from running import Row, Runner, total

OURS = "jupyter-pause"
Rows = dict[tuple[str, str], Row]


class Report:
    """One run's results."""

    def __init__(self, rows: Rows, runner: Runner, mode: str, missing: list[str]) -> None:
        self._rows = rows
        self._runner = runner
        self._mode = mode
        self._missing = missing
        self._machine = rows["machine", "machine"]

    def failures(self) -> list[str]:
        """What our own engine did wrong."""
        found = []
        for (workload, tool), row in self._rows.items():
            if row.error is not None and tool in (OURS, "machine", "server"):
                found.append(f"{workload}: {row.error}")
            if tool == OURS:
                wrong = [name for one in row.tries for names in one["wrong"].values() for name in names]
                found += [f"{workload}: {name} is wrong" for name in sorted(set(wrong))]
                named = row.tries[-1]["lost"] if row.tries else []
                found += [
                    f"{workload}: {n} was not named" for n in workloads.WORKLOADS[workload].lost if n not in named
                ]
        return found

    def tables(self) -> str:
        """The targets, then all tools, then the machine."""
        parts = ["## Against the targets", self._targets(), "## Beside the others", self._tools()]
        parts += ["## The machine", self._limits()]
        if bad := self.failures():
            parts += ["## Failed", *(f"- {line}" for line in bad)]
        return "\n\n".join(parts) + "\n"

    # --- targets ---------------------------------------------------------------------------------------------------

    def _targets(self) -> str:
        lines = ["| what | target | measured | |", "|---|---|--:|---|"]
        for what, target, measured, limit in self._judged():
            if measured is None:
                continue
            text = f"{measured:.2f}"
            verdict = "" if limit == float("inf") else "met" if measured <= limit else "**missed**"
            lines.append(f"| {what} | {target} | {text} | {verdict} |")
        return "\n".join(lines)

    def _judged(self) -> list[tuple[str, str, float | None, float]]:
        machine = self._machine
        found: list[tuple[str, str, float | None, float]] = []
        if (one := self._rows.get(("W1", OURS))) and one.tries:
            found += [
                ("W1 capture, write, sync : raw write and sync", "1.1", one.ratio("out", machine, "write"), 1.1),
                ("W1 the same : write past the cache and sync", "–", one.ratio("out", machine, "direct"), float("inf")),
                ("W1 read-back : hashing as many bytes", "1.3", one.ratio("read_back", machine, "hash"), 1.3),
                ("W1 read-back : raw cold read", "–", one.ratio("read_back", machine, "read"), float("inf")),
                ("W1 extra peak memory while saving, MB", "100", one.median("save_peak"), 100),
                ("W1 extra peak memory while loading, MB", "100", one.median("load_peak"), 100),
                ("W1 load until the next cell, s", "0.1", one.median("load"), 0.1),
                ("W1 first touch of all : raw cold read", "1.3", one.ratio("touch", machine, "read"), 1.3),
                ("W1 second pause, 1 % changed: bytes : first", "0.1", _quotient(one, "second_bytes", "bytes"), 0.1),
                ("W1 second pause, 1 % changed: time : first", "0.2", _quotient(one, "second_all", "first_all"), 0.2),
            ]
        for name, save, least in (("W2", 1.0, "plus sync"), ("W3", 1.5, "single dump")):
            ours, theirs = self._rows.get((name, OURS)), self._rows.get((name, "cloudpickle"))
            if ours and theirs and ours.tries and theirs.tries:
                found.append(
                    (f"{name} save : cloudpickle's {least}", f"{save}", ours.ratio("out", theirs, "out"), save)
                )
                if name == "W3":
                    found.append(("W3 load : cloudpickle's", "1", ours.ratio("load", theirs, "load"), 1.0))
        if (server := self._rows.get(("server", "server"))) and server.tries:
            found += [
                ("small pause by a real server, all of it, s", "1.5", server.median("pause"), 1.5),
                ("small resume : fresh kernel, same imports", "1.3", server.ratio("resume", server, "fresh"), 1.3),
            ]
        return found

    # --- tools -----------------------------------------------------------------------------------------------------

    def _tools(self) -> str:
        titles = "save s | sync s | read-back s | load s | touch s | MB | peak MB save / load | values | references"
        head = f"| | tool | {titles} |"
        lines = [head, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
        for (workload, tool), row in self._rows.items():
            if tool in ("machine", "server"):
                continue
            if row.error is not None or not row.tries:
                lines.append(f"| {workload} | {tool} | {_plain(row.error or 'not run')} |" + " |" * 8)
                continue
            times = [_number(row.median(name)) for name in ("save", "fsync", "read_back", "load", "touch")]
            size = _number((row.median("bytes") or 0) / 1e6, 0)
            peaks = f"{_number(row.median('save_peak'), 0)} / {_number(row.median('load_peak'), 0)}"
            lines.append(f"| {workload} | {tool} | {' | '.join(times)} | {size} | {peaks} | {_right(row)} |")
        return "\n".join(lines)

    def _limits(self) -> str:
        size = 2e9 * self._runner.size
        lines = ["| | GB/s |", "|---|--:|"]
        names = {
            "write": "write and sync",
            "direct": "write past the cache and sync",
            "read": "read, cold",
            "warm": "read, warm",
            "touch": "touch a cold mapping",
            "copy": "copy memory",
            "hash": "SHA-256, one thread",
        }
        for key, text in names.items():
            seconds = self._machine.median(key)
            lines.append(f"| {text} | {_number(size / 1e9 / seconds if seconds else None)} |")
        return "\n".join(lines)

    # --- the page --------------------------------------------------------------------------------------------------

    def page(self) -> str:
        """A page of the documentation."""
        memory = (self._machine.median("memory") or 0) / 2**30
        versions = []
        for name in ("numpy", "pandas", "cloudpickle", "dill", "joblib", "ipython"):
            try:
                versions.append(f"{name} {importlib.metadata.version(name)}")
            except importlib.metadata.PackageNotFoundError:
                continue
        size = "" if self._runner.size == 1 else f", at {self._runner.size:g} of the full size"
        titles = "\n".join(f"- **{w.name}**: {w.title}" for w in workloads.WORKLOADS.values())
        missing = f"Not installed here, so not measured: {', '.join(self._missing)}." if self._missing else ""
        machine = (
            f"{os.cpu_count()} cores, {memory:.0f} GiB memory, {platform.system()} {platform.release().split('-')[0]}"
        )
        busy = ", ".join(f"{load:.1f}" for load in self._runner.load)
        return f"""# Benchmarks

Made by `python benchmarks/speed --page docs/benchmarks.md` ({self._mode} mode{size}) on {datetime.now(UTC):%d %B %Y}.
Every save and every load is a process of its own. What a tool leaves in the system's cache is made durable and counted
(*sync*). Before each load the files' pages are dropped from the cache. Times are medians of {self._runner.tries}
interleaved tries; ratios are medians of the ratios within one try. *Extra* memory is the growth of the process's peak.

Machine: {machine}, Python {platform.python_version()}, {", ".join(versions)}.
Others used the machine meanwhile: the one-minute load at the beginning of each try was {busy}. Ratios
below 1.2 mean little on such a machine. {missing}

{titles}

The workloads are given at their full size. "Values" are those that came back right, "references" two names of one
object that still are one object (a write through a view reaches its base). For jupyter-pause *save* is all that happens
in the kernel, durable at its end; *read-back* is the server's part of a pause, from the disk.

{self.tables()}"""


def _quotient(row: Row, name: str, other: str) -> float | None:
    top, bottom = row.median(name), row.median(other)
    return top / bottom if top is not None and bottom else None


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:90]


def _right(row: Row) -> str:
    values, references = total(row.workload)
    wrong = row.tries[-1]["wrong"]
    right = f"{values - len(wrong['values'])}/{values}"
    return right + " | " + (f"{references - len(wrong['references'])}/{references}" if references else "–")
