# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Real processes that run cells, save and load: the tests' side of `worker.py`."""

from __future__ import annotations

import ast
import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import cloudpickle

import jupyter_pause.kernel
from tests.kernel import pythons

KERNEL = Path(jupyter_pause.kernel.__file__).parent
CLOUDPICKLE = Path(cloudpickle.__file__).parent
MARK = "\x1e"


class CellError(AssertionError):
    """A command raised in the other process."""


class Process:
    """One interpreter with a namespace; it ends with the test."""

    def __init__(self, python: str, root: Path, secret: str, cwd: Path) -> None:
        self.root = root
        self.secret = secret
        command = [python, str(Path(__file__).with_name("worker.py")), str(KERNEL), str(CLOUDPICKLE)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=cwd
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, name: str, **arguments: Any) -> Any:
        self.send(name, **arguments)
        return self.answer()

    def send(self, name: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                fine, answer = json.loads(line[1:])
                if not fine:
                    raise CellError(answer)
                return answer
        raise AssertionError(f"the process ended with {self._process.wait()}")

    def cells(self, *texts: str) -> Process:
        for text in texts:
            self.ask("cell", text=text)
        return self

    def value(self, text: str) -> Any:
        return ast.literal_eval(self.ask("value", text=text))

    def true(self, *texts: str) -> None:
        """Each expression is true here."""
        for text in texts:
            assert self.ask("value", text=f"not not ({text})") == "True", text

    def capture(self, **options: Any) -> tuple[str, dict[str, Any]]:
        identifier = secrets.token_hex(16)
        return identifier, self.ask("save", root=str(self.root), identifier=identifier, **options)

    def save(self) -> Path:
        """Capture and commit; returns the checkpoint's folder."""
        identifier, answer = self.capture()
        assert answer["result"]["status"] == "ok", answer
        return Path(self.ask("commit", root=str(self.root), identifier=identifier, secret=self.secret))

    def load(self, folder: Path) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("load", folder=str(folder), secret=self.secret)
        return result

    def scan(self) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("scan")["result"]
        return result

    def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


def python(minor: str) -> str:
    """The interpreter of a minor version ("3.9"); a missing one is a failure in CI, else a skip."""
    return pythons.of(minor)
