# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Python interpreters with ipykernel and numpy for tests: this one, and two of other minor versions.

The others come from ``JUPYTER_PAUSE_TEST_PYTHONS`` (JSON by version, or interpreters separated like PATH) or from
pyenv; where they lack ipykernel, a virtual environment is made for them once, in a cache folder outside the checkout.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Minors that are looked for first: the oldest and the newest that are supported.
PREFERRED = ((3, 9), (3, 14), (3, 13), (3, 12), (3, 10), (3, 11))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jupyter-pause-tests"
_PROBE = "import sys; print('%d.%d' % sys.version_info[:2])"
_NEEDS = ("ipykernel", "numpy")


def own() -> str:
    """The interpreter that runs the tests."""
    return sys.executable


def other(number: int) -> str:
    """The first (0) or second (1) interpreter of another minor; skips where there is none, fails in CI."""
    found = _others()
    if number < len(found):
        return _with_ipykernel(*found[number])
    message = "needs two Pythons of other minor versions: set JUPYTER_PAUSE_TEST_PYTHONS or install them with pyenv"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def of(version: str) -> str:
    """The interpreter of one minor ("3.9"); skips where there is none, fails in CI."""
    if sys.version.startswith(version + "."):
        return sys.executable
    for minor, interpreter in _others():
        if minor == version:
            return _with_ipykernel(minor, interpreter)
    message = f"needs Python {version}: set JUPYTER_PAUSE_TEST_PYTHONS or install it with pyenv"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@functools.lru_cache
def _others() -> list[tuple[str, str]]:
    """(version, interpreter), one for each other minor."""
    named = os.environ.get("JUPYTER_PAUSE_TEST_PYTHONS", "")
    if named.startswith(
        "{"
    ):  # as scripts/test says it: by version; `other` is another environment, not another version
        candidates = [Path(path) for version, path in json.loads(named).items() if version[0].isdigit()]
    elif named:
        candidates = [Path(entry) for entry in named.split(os.pathsep) if entry]
    else:
        candidates = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"), reverse=True)
    by_minor: dict[tuple[int, int], str] = {}
    for candidate in candidates:
        probe = subprocess.run([str(candidate), "-c", _PROBE], capture_output=True, text=True, check=False)
        if probe.returncode == 0:
            major, minor = probe.stdout.split(".")
            by_minor.setdefault((int(major), int(minor)), str(candidate))
    by_minor.pop(sys.version_info[:2], None)
    chosen = [minor for minor in PREFERRED if minor in by_minor]
    return [(f"{minor[0]}.{minor[1]}", by_minor[minor]) for minor in chosen]


@functools.lru_cache
def _with_ipykernel(version: str, interpreter: str) -> str:
    """An interpreter of that version which has what a kernel in a test needs."""
    if _imports(interpreter):
        return interpreter
    folder = CACHE / version
    python = folder / "bin" / "python"
    if not (python.exists() and _imports(str(python))):
        subprocess.run([interpreter, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *_NEEDS], check=True)
    return str(python)


def _imports(python: str) -> bool:
    probe = subprocess.run([python, "-c", "import ipykernel, numpy"], capture_output=True, check=False)
    return probe.returncode == 0


def environment_with_other_packages() -> str:
    """A virtual environment of this Python with ipykernel, without numpy and without anything of ours."""
    named = os.environ.get("JUPYTER_PAUSE_TEST_PYTHONS", "")
    if named.startswith("{") and json.loads(named).get("other"):
        return str(json.loads(named)["other"])
    python = CACHE / "other" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(CACHE / "other")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "ipykernel", "attrs"], check=True)
    return str(python)
