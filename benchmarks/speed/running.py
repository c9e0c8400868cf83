# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Runs the measurements: several tries, interleaved, each save and each load in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import limits
import methods
import workloads

HERE = Path(__file__).resolve().parent
#: A tool that took more seconds than this for one save and load is not tried again.
SLOW = 15.0
IMPORTS = {"W1": ["numpy"], "W2": ["numpy", "pandas"], "W5": ["numpy", "pandas"]}


@dataclass
class Row:
    """What one tool did with one workload, one entry per try."""

    workload: str
    tool: str
    tries: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    @property
    def is_slow(self) -> bool:
        """Whether one try of it is enough."""
        return any(one.get("out", 0.0) + one.get("load", 0.0) > SLOW for one in self.tries)

    def median(self, name: str) -> float | None:
        """The median over the tries that have it."""
        found = [one[name] for one in self.tries if one.get(name) is not None]
        return statistics.median(found) if found else None

    def ratio(self, name: str, other: Row, reference: str) -> float | None:
        """The median of the ratios within one try: the machine is not the same an hour later."""
        found = [
            mine[name] / theirs[reference]
            for mine, theirs in zip(self.tries, other.tries, strict=False)
            if mine.get(name) is not None and theirs.get(reference)
        ]
        return statistics.median(found) if found else None


class Runner:
    """One run of the benchmark in a folder of its own."""

    def __init__(self, folder: Path, size: float, tries: int, limit: float, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.size = size
        self.tries = tries
        self.limit = limit
        self._say = say
        self.load: list[float] = []

    def worker(self, **job: Any) -> dict[str, Any]:
        """One job in one process."""
        out = self.folder / "out.json"
        out.unlink(missing_ok=True)
        command = [sys.executable, str(HERE / "worker.py"), json.dumps({**job, "out": str(out)})]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=self.limit, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"more than {self.limit:.0f} s"}
        if not out.exists():
            return {"error": "died: " + done.stderr.decode(errors="replace")[-200:].strip()}
        answer: dict[str, Any] = json.loads(out.read_text())
        return answer

    def run(self, chosen: list[str], tools: list[str]) -> dict[tuple[str, str], Row]:
        """Everything; what failed once is not tried again."""
        rows = {("machine", "machine"): Row("machine", "machine")}
        for number in range(self.tries):
            self.load.append(os.getloadavg()[0])
            self._machine(rows["machine", "machine"])
            for workload in chosen:
                for tool in tools:
                    row = rows.setdefault((workload, tool), Row(workload, tool))
                    if row.error is None and not row.is_slow:
                        self._one(row)
                        self._say(f"try {number + 1}: {workload} {tool}: {row.error or _short(row.tries[-1])}")
        return rows

    def _machine(self, row: Row) -> None:
        folder = self._fresh("machine")
        answer = self.worker(work="limits", folder=str(folder), bytes=int(2e9 * self.size))
        row.error = answer.get("error")
        row.tries.append(answer)
        self._say(f"machine: {row.error or _short(answer)}")
        shutil.rmtree(folder)

    def server(self, python: str) -> Row:
        """Small pauses and resumes by a real server that runs under `python`, beside fresh kernels."""
        row = Row("server", "server")
        folder = self._fresh("server")
        command = [python, str(HERE / "server.py"), str(folder), str(self.tries + 2)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.limit, check=True)
            row.tries = json.loads(done.stdout)
        except (subprocess.SubprocessError, ValueError) as error:
            row.error = f"{type(error).__name__}: {getattr(error, 'stderr', '') or error}"[-300:]
        shutil.rmtree(folder)
        return row

    def _fresh(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _one(self, row: Row) -> None:
        folder = self._fresh("try")
        try:
            row.error = self._steps(row, folder)
        finally:
            shutil.rmtree(folder)

    def _steps(self, row: Row, folder: Path) -> str | None:
        job = {"folder": str(folder), "workload": row.workload, "tool": row.tool, "size": self.size}
        ours = row.tool == "jupyter-pause"
        found = self.worker(work="save", **job)
        if "error" in found:
            return f"save: {found['error']}"
        result = {f"save_{name}" if name == "peak" else name: value for name, value in found.items()}
        result["out"] = found["save"] + found["fsync"]
        if ours:
            back = self.worker(work="read_back", folder=str(folder), id=methods.ID)
            if "error" in back:
                return f"read back: {back['error']}"
            result.update(back)
        for path in folder.rglob("*"):
            if path.is_file():
                limits.forget(path)
        found = self.worker(work="load", imports=IMPORTS.get(row.workload, []), **job)
        if "error" in found:
            return f"load: {found['error']}"
        result.update({f"load_{name}" if name == "peak" else name: value for name, value in found.items()})
        if ours and "second" in found:
            again = self.worker(work="read_back", folder=str(folder), id=methods.SECOND)
            if "error" in again:
                return f"second read back: {again['error']}"
            result["second_all"] = found["second"] + again["read_back"]
            result["first_all"] = result["out"] + result["read_back"]
        row.tries.append(result)
        return None


def _short(answer: dict[str, Any]) -> str:
    return " ".join(f"{k} {v:.3f}" for k, v in answer.items() if isinstance(v, float))


def installed(tool: str) -> bool:
    """Whether a tool can be measured here."""
    return importlib.util.find_spec(methods.METHODS[tool][0]) is not None


def total(workload: str) -> tuple[int, int]:
    """How many values and how many references are checked."""
    found = workloads.WORKLOADS[workload]
    return len(found.values), len(found.references)
