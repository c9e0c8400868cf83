# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What `scripts/test` does about the cluster's programs on machines that have them, build them, or cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .apiserver import ApiServer
from .binaries import checks_module

PROGRAMS = ("kube-apiserver", "etcd", "kubectl")


@pytest.fixture
def part(tmp_path: Path) -> Iterator[Any]:
    """A part of a run, with its log."""
    console = checks_module("console")
    with console.Part("cluster tools", tmp_path / "log", live=False) as started:
        yield started


def folder_of(tmp_path: Path, *names: str) -> Path:
    """A folder with these programs."""
    folder = tmp_path / "assets"
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o700)
    return folder


def test_programs_that_are_given_win(tmp_path: Path, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, *PROGRAMS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    assert checks_module("cluster_tools").api_server(part, {}) == folder
    assert checks_module("cache").api_server_folder() == folder


def test_a_given_folder_that_lacks_one_is_named(tmp_path: Path, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder_of(tmp_path, "etcd", "kubectl")))
    with pytest.raises(checks_module("console").Missing, match="has no kube-apiserver"):
        checks_module("cluster_tools").api_server(part, {})


def test_a_machine_without_go_is_told_so(tmp_path: Path, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(checks_module("console").Missing, match="no Go here"):
        checks_module("cluster_tools").api_server(part, {})
    assert checks_module("cache").api_server_folder() is None


def test_what_was_built_says_which_kubernetes_it_is(api_server: ApiServer) -> None:
    if "KUBEBUILDER_ASSETS" in os.environ:
        pytest.skip("KUBEBUILDER_ASSETS may have any version")
    version = api_server.as_admin.request("GET", "/version")["gitVersion"]
    assert f"k8s.io/kubernetes {version} " in (checks_module("cache").GO_MODULE / "go.mod").read_text()
