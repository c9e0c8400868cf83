# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The cache outside the checkout: where it is, and which entry holds the real parts of a cluster.

Tests that pytest runs directly look into the cache through this module too.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ROOT / "scripts" / "checks"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jupyter-pause"
GO_MODULE = ROOT / "tests" / "cluster" / "apiserver_build"
API_SERVER_PROGRAMS = ("kube-apiserver", "etcd", "kubectl")


def api_server_entry() -> Path | None:
    """The cache entry of kube-apiserver, etcd and kubectl, complete or not; None where there is no Go to build them."""
    go = shutil.which("go")
    if go is None:
        return None
    # In the module's folder, where go may choose another toolchain than elsewhere.
    done = subprocess.run([go, "env", "GOVERSION"], cwd=GO_MODULE, capture_output=True, text=True)
    sources = [GO_MODULE / "go.mod", GO_MODULE / "go.sum", *sorted(GO_MODULE.rglob("*.go"))]
    return CACHE / f"cluster-{_key(done.stdout.strip(), sources)}" if done.returncode == 0 else None


def criu_entry() -> Path:
    """The cache entry of CRIU, complete or not."""
    return CACHE / f"criu-{_key('', [CHECKS / 'get_criu.py', CHECKS / 'newest_packages.py'])}"


def python_entry(minor: str) -> Path:
    """The cache entry of a Python that the machine has not, complete or not."""
    return CACHE / f"python-{minor}-{_key(minor, [CHECKS / 'get_python.py', CHECKS / 'newest_packages.py'])}"


def api_server_folder() -> Path | None:
    """The folder with kube-apiserver and etcd: `KUBEBUILDER_ASSETS`, else the cache; None if neither has them."""
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(given)
    entry = api_server_entry()
    return entry if entry is not None and (entry / "complete").exists() else None


def criu_program() -> Path | None:
    """CRIU from the cache; None if it is not there. It is installed, not known to work: criu_selftest tells."""
    entry = criu_entry()
    return entry / "sbin" / "criu" if (entry / "complete").exists() else None


def _key(made_with: str, sources: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"{made_with}\n{platform.system()}\n{platform.machine()}\n".encode())
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
