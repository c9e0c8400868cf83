# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Puts cases into a real kernel, pauses and resumes it, and says what became of each object.

Many cases share one kernel, as the variables of a notebook do; each is judged by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.kernel.livekernel import LiveKernel

from .case import Case

#: A check runs for every case of a kernel in one cell of the notebook's namespace; its last line is the verdict.
_HELPER = """
def __judge(code):
    import ast
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value)
    try:
        exec(compile(tree, '<check>', 'exec'), globals())
        got = eval(compile(last, '<check>', 'eval'), globals())
        good = type(got).__name__ in ('bool', 'bool_') and got
        return 'yes' if good else 'the check gave %r' % (got,)
    except BaseException as error:
        return '%s: %s' % (type(error).__name__, error)
"""
_USE = """
def __use(value):
    try:
        value()
    except RuntimeError as error:
        return str(error)
    return 'nothing was raised'
"""


@dataclass(frozen=True)
class Verdict:
    """What became of one object.

    Args:
        fate: ``equal``, ``rebuilt`` or ``lost``; ``wrong`` for what must never happen.
        detail: for ``rebuilt`` and ``lost`` the reason that a person reads; for ``wrong`` what happened.
        paths: what is lost, with ``x`` for the object.
    """

    case: Case
    fate: str
    detail: str = ""
    paths: tuple[str, ...] = ()


class Table:
    """Cases in one kernel. `base` is an empty folder for everything that they write."""

    def __init__(self, cases: Iterable[Case], base: Path, python: str) -> None:
        self.cases = [(f"_{number:03d}", case) for number, case in enumerate(cases)]
        self._base = base
        self._python = python

    def control(self) -> list[str]:
        """Cases whose own code fails, or whose check does not hold for an object that was never paused."""
        kernel = self._start("control")
        try:
            return [
                f"{case.name}: {answer}"
                for suffix, case in self.cases
                if case.fate != "lost"
                for answer in [self._check(kernel, case.own(suffix))]
                if answer != "yes"
            ]
        finally:
            kernel.close()

    def verdicts(self) -> list[Verdict]:
        """Save, end the process, load into a new one, and look at every object."""
        kernel = self._start("table")
        try:
            before = self._types(kernel)
            staging, captured = kernel.capture()
            assert captured["status"] == "ok", captured
            told = {str(loss["path"]) for loss in captured["losses"]}
            checkpoint = kernel.commit(staging)
            kernel.end()
            result = kernel.resume(checkpoint)
            assert result["status"] == "ok", result
            self._prepare(kernel)
            after = self._types(kernel)
            reasons = _reasons(kernel.manifest(checkpoint))
            return [
                self._verdict(kernel, suffix, case, result, told, reasons, before[name], after.get(name))
                for suffix, case in self.cases
                for name in ["x" + suffix]
            ]
        finally:
            kernel.close()

    # --- one kernel ---------------------------------------------------------------------------------------------

    def _start(self, name: str) -> LiveKernel:
        folder = self._base / name
        work = folder / "work"
        work.mkdir(parents=True)
        kernel = LiveKernel(folder, self._python)
        kernel.write_kernel_file()
        kernel.start()
        kernel.execute(f"import os\nos.chdir({str(work)!r})")
        self._prepare(kernel)
        for suffix, case in self.cases:
            answer = kernel.execute(case.own(suffix).setup)
            assert answer.status == "ok", f"{case.name}: {answer.error}"
        return kernel

    @staticmethod
    def _prepare(kernel: LiveKernel) -> None:
        kernel.execute(_HELPER)
        kernel.execute(_USE)

    def _types(self, kernel: LiveKernel) -> dict[str, str]:
        names = ["x" + suffix for suffix, _ in self.cases]
        answer = kernel.execute(
            f"print(__import__('json').dumps({{n: type(globals()[n]).__module__ + '.' + type(globals()[n]).__qualname__"
            f" for n in {names!r} if n in globals()}}))"
        )
        found: dict[str, str] = json.loads(answer.printed)
        return found

    @staticmethod
    def _check(kernel: LiveKernel, case: Case) -> str:
        answer = kernel.execute(f"print(chr(30) + __judge({case.check!r}))")
        return answer.printed.rpartition("\x1e")[2].split("\n")[0] if answer.status == "ok" else answer.error

    def _verdict(
        self,
        kernel: LiveKernel,
        suffix: str,
        case: Case,
        result: dict,
        told: set[str],
        reasons: dict[str, str],
        before: str,
        after: str | None,
    ) -> Verdict:
        name = "x" + suffix
        losses = {str(loss["path"]): str(loss["reason"]) for loss in result["losses"] if _root(loss["path"]) == name}
        paths = tuple(path.replace(name, "x", 1) for path in sorted(losses))
        if after is None:
            return Verdict(case, "wrong", "it is not there, and nobody was told")
        if name in result["mismatched"]:
            return Verdict(case, "wrong", "it came back different, which was only noticed after the resume")
        if losses:
            late = [path for path in losses if path not in told]
            if late:
                return Verdict(case, "wrong", f"said only after the resume: {losses[late[0]]}", paths)
            if name in losses:
                use = kernel.execute(f"print(__use({name}))").printed
                if "did not come back after the pause" not in use:
                    return Verdict(case, "wrong", f"lost, and using it says: {use}", paths)
            else:
                answer = self._check(kernel, case.own(suffix))
                if answer != "yes":
                    return Verdict(case, "wrong", f"what is left of it is not right: {answer}", paths)
            return Verdict(case, "lost", next(iter(losses.values())), paths)
        if after != before:
            return Verdict(case, "wrong", f"{before} came back as {after}")
        answer = self._check(kernel, case.own(suffix))
        if answer != "yes":
            return Verdict(case, "wrong", f"it came back different, silently: {answer}")
        rebuilt = sorted(path for path in result["rebuilt"] if _root(path) == name)
        if rebuilt:
            return Verdict(case, "rebuilt", "; ".join(dict.fromkeys(reasons.get(p, "") for p in rebuilt)).strip("; "))
        return Verdict(case, "equal")


def _root(path: str) -> str:
    for end, letter in enumerate(path):
        if not (letter.isalnum() or letter == "_"):
            return path[:end]
    return path


def _reasons(manifest: dict) -> dict[str, str]:
    """What the manifest says about everything that is made again, by path."""
    found = {entry["name"]: entry["reason"] or "" for entry in manifest["variables"]}
    for entry in manifest["variables"]:
        for item in entry.get("rebuilt") or ():
            found[item["path"]] = item["reason"] or found.get(item["path"], "")
    return found


def differences(verdicts: Iterable[Verdict]) -> list[str]:
    """Verdicts that are not what the table says, as sentences."""
    found = []
    for verdict in verdicts:
        case = verdict.case
        if verdict.fate != case.fate:
            found.append(f"{case.name}: {verdict.fate}, not {case.fate} ({verdict.detail}) {' '.join(verdict.paths)}")
        elif case.fate == "lost" and verdict.paths != tuple(sorted(case.loses)):
            found.append(f"{case.name}: lost is {verdict.paths}, not {tuple(sorted(case.loses))} ({verdict.detail})")
    return found
