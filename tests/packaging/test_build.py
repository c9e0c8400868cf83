# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""When a bundle that is already there may be used for a wheel."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(tmp_path: Path) -> ModuleType:
    """The build function, over a small checkout whose bundle was just made."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path
    module.BUNDLE = tmp_path / "jupyter_pause" / "labextension"
    module.STAMP = module.BUNDLE / "build.json"
    for name in ("src/index.ts", "src/__tests__/index.spec.ts", "style/base.css", "package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (module.BUNDLE / "static").mkdir(parents=True)
    (module.BUNDLE / "static" / "style.js").write_text("bundle")
    module.STAMP.write_text(json.dumps(module._stamp("production")))
    return module


def test_a_bundle_made_from_these_sources_is_used(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing on PATH: building would fail.
    monkeypatch.setenv("PATH", "")
    build.build_frontend("wheel", "standard")
    build.build_frontend("wheel", "editable")


@pytest.mark.parametrize("name", ["src/index.ts", "style/base.css", "package.json", "src/new.ts"])
def test_a_bundle_older_than_a_source_is_never_shipped(build: ModuleType, name: str) -> None:
    (build.ROOT / name).write_text("changed")
    assert not build._is_current("production")


def test_a_removed_source_makes_the_bundle_stale(build: ModuleType) -> None:
    (build.ROOT / "style" / "base.css").unlink()
    assert not build._is_current("production")


def test_a_bundle_that_something_else_wrote_is_never_shipped(build: ModuleType) -> None:
    (build.BUNDLE / "static" / "style.js").write_text("a development build")
    assert not build._is_current("production")


def test_a_development_bundle_is_not_shipped_in_a_wheel(build: ModuleType) -> None:
    build.STAMP.write_text(json.dumps(build._stamp("development")))
    assert build._is_current("development")
    assert not build._is_current("production")


def test_a_build_that_fails_leaves_no_mark_of_a_finished_one(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in (("node", "echo v22.0.0"), ("jlpm", "exit 7")):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setattr(build.sys, "executable", str(tools / "python"))
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    (build.ROOT / "src" / "index.ts").write_text("changed")
    with pytest.raises(subprocess.CalledProcessError):
        build.build_frontend("wheel", "standard")
    assert not build.STAMP.exists()


def test_a_node_that_is_too_old_is_not_used(build: ModuleType, tmp_path: Path) -> None:
    node = tmp_path / "node"
    for version, usable in (("v18.19.0", False), ("v20.1.0", True), ("v24.0.0", True), ("nonsense", False)):
        node.write_text(f"#!/bin/sh\necho {version}\n")
        node.chmod(0o755)
        assert build._usable(str(node)) is usable
    assert build._usable(None) is False
