# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where the real parts of a cluster lie: given by the environment, or in the cache that `scripts/test` fills."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

CHECKS = Path(__file__).resolve().parents[2] / "scripts" / "checks"


def api_server() -> Path:
    """The folder with kube-apiserver, etcd and kubectl. Without one the test is skipped; in CI it fails."""
    folder = os.environ.get("JUPYTER_PAUSE_TEST_CLUSTER") or _cached("api_server_folder")
    if not folder:
        _missing("no kube-apiserver: `scripts/test python` builds one with Go, or set KUBEBUILDER_ASSETS")
    return Path(folder)


def criu() -> Path:
    """The criu program, once it has restored a process here. Without one the test is skipped; in CI it fails."""
    program = os.environ.get("JUPYTER_PAUSE_TEST_CRIU") or _cached("criu_program")
    if not program:
        _missing("no CRIU: `scripts/get-criu FOLDER` installs one; then set JUPYTER_PAUSE_TEST_CRIU to what it prints")
    selftest = checks_module("criu_selftest")
    try:
        selftest.self_test(Path(program))
    except selftest.NotWorking as reason:
        _missing(str(reason))
    return Path(program)


def checks_module(name: str) -> ModuleType:
    """A module of scripts/checks, which is a folder of scripts and no package."""
    sys.path.insert(0, str(CHECKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(CHECKS))


def _cached(name: str) -> str:
    found = getattr(checks_module("cache"), name)()
    return str(found) if found else ""


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(reason)
    pytest.skip(reason)
