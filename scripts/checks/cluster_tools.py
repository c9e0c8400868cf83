# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The real parts of a cluster for tests: kube-apiserver, etcd and kubectl, built with Go; and CRIU."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import cache
from cache import API_SERVER_PROGRAMS, GO_MODULE
from console import Missing, Part
from criu_selftest import NotWorking, self_test
from get_criu import install
from newest_packages import CannotInstall
from setup import locked

#: Seconds for a build with nothing in Go's own cache, on two busy cores.
BUILD_LIMIT = 3000


def api_server(part: Part, env: dict[str, str]) -> Path:
    """The folder with kube-apiserver, etcd and kubectl: KUBEBUILDER_ASSETS, else the cache, filled now if need be.

    Raises:
        Missing: there is neither, and no Go to build them.
        Failed: the build failed.
    """
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        folder = Path(given)
        if lacking := [name for name in API_SERVER_PROGRAMS if not os.access(folder / name, os.X_OK)]:
            raise Missing(f"KUBEBUILDER_ASSETS has no {', '.join(lacking)}: cluster tests are left out")
        return folder
    entry = cache.api_server_entry()
    if entry is None:
        raise Missing("no Go here that builds kube-apiserver (or set KUBEBUILDER_ASSETS): cluster tests are left out")
    with locked(entry):
        if not (entry / "complete").exists():
            shutil.rmtree(entry, ignore_errors=True)
            _build(part, entry, env)
        (entry / "complete").touch()
    return entry


def criu(part: Part, _env: dict[str, str]) -> Path:
    """CRIU, from the cache or installed there now, once it has dumped and restored a process under today's kernel.

    Raises:
        Missing: it cannot be had or does not work here.
    """
    entry = cache.criu_entry()
    with locked(entry):
        try:
            if not (entry / "complete").exists():
                shutil.rmtree(entry, ignore_errors=True)
                part.note("installing CRIU with the libraries of its own suite")
                install(entry)
            (entry / "complete").touch()
            self_test(entry / "sbin" / "criu")
        except (CannotInstall, NotWorking) as reason:
            raise Missing(f"tests with CRIU are left out: {reason}") from None
    return entry / "sbin" / "criu"


def _build(part: Part, entry: Path, env: dict[str, str]) -> None:
    entry.mkdir(parents=True)
    part.must(
        "build kube-apiserver, etcd and kubectl",
        [
            "go",
            "build",
            "-trimpath",
            "-mod=readonly",
            f"-ldflags=-s -w {_version_flags()}",
            # -w leaves debug information out of the programs; not making it either saves a seventh of the work.
            "-gcflags=all=-dwarf=false",
            "-o",
            entry,
            "./etcd",
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kubectl",
        ],
        env={**env, "CGO_ENABLED": "0"},
        cwd=GO_MODULE,
        limit=BUILD_LIMIT,
        counts=False,
        quiet_ok=True,
    )


def _version_flags() -> str:
    """What Kubernetes's own build tells the programs about their version; without it they call themselves v0.0.0."""
    found = re.search(r"^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)", (GO_MODULE / "go.mod").read_text(), re.M)
    assert found is not None, "go.mod names no version of k8s.io/kubernetes"
    values = {"gitVersion": f"v{'.'.join(found.groups())}", "gitMajor": found[1], "gitMinor": found[2]}
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
