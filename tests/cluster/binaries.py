# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where the real parts of a cluster lie: given by the environment, or in the cache that `scripts/test` fills."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import NoReturn

import pytest

CACHE_CODE = Path(__file__).resolve().parents[2] / "scripts" / "checks" / "cache.py"


def api_server() -> Path:
    """The folder with kube-apiserver, etcd and kubectl. Without one the test is skipped; in CI it fails."""
    folder = os.environ.get("JUPYTER_PAUSE_TEST_CLUSTER") or _cached("api_server_folder")
    if not folder:
        _missing("no kube-apiserver: `scripts/test python` builds one with Go, or set KUBEBUILDER_ASSETS")
    return Path(folder)


def criu() -> Path:
    """The criu program. Without one the test is skipped; in CI it fails."""
    program = os.environ.get("JUPYTER_PAUSE_TEST_CRIU") or _cached("criu_program")
    if not program:
        _missing("no CRIU: `scripts/get-criu FOLDER` installs one; then set JUPYTER_PAUSE_TEST_CRIU to what it prints")
    return Path(program)


def _cached(name: str) -> str:
    spec = importlib.util.spec_from_file_location("jupyter_pause_checks_cache", CACHE_CODE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name)()
    return str(found) if found else ""


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(reason)
    pytest.skip(reason)
