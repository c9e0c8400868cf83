# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Rules that hold for every file of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ROOT / "jupyter_pause" / "kernel"
HEADER = ("Copyright (c) jupyter-pause contributors.", "Distributed under the terms of the Apache License 2.0.")


def _tracked(*endings: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name.endswith(endings) and (ROOT / name).is_file()]


def test_every_source_file_begins_with_the_licence_header() -> None:
    files = _tracked(".py", ".ts", ".tsx", ".css")
    generated = {ROOT / "src" / "api" / "types.ts"}
    assert files
    bare = [path for path in files if path not in generated and path.stat().st_size and not _has_header(path)]
    assert not bare


def _has_header(path: Path) -> bool:
    beginning = path.read_text(encoding="utf-8")[:400]
    return all(line in beginning for line in HEADER)


@pytest.mark.parametrize("path", sorted(KERNEL.rglob("*.py")), ids=lambda path: path.name)
def test_kernel_code_is_python_3_9_and_imports_the_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    #: Handed over by the person's own kernel or by the server; imported where they are there, never required.
    given = {
        "jupyter_pause_kernel",
        "IPython",
        "ipykernel",
        "traitlets",
        "tornado",
        "zmq",
        "numpy",
        "torch",
        "matplotlib",
        "jupyter_client",
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                assert name.name.split(".")[0] in sys.stdlib_module_names | given, name.name
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            assert node.module.split(".")[0] in sys.stdlib_module_names | given, node.module
        depth = len(path.relative_to(KERNEL).parts)
        assert not (isinstance(node, ast.ImportFrom) and node.level > depth), "imports outside its own package"


def test_the_lock_files_name_no_registry() -> None:
    for path in (ROOT / "yarn.lock", ROOT / "ui-tests" / "yarn.lock"):
        assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path


def test_no_file_names_a_folder_of_one_machine() -> None:
    pattern = re.compile(r"/root/(?:dev|\.pyenv|\.cache)|/work/(?:main|shared)")
    this = Path(__file__).resolve()
    files = _tracked(".py", ".ts", ".tsx", ".md", ".json", ".toml", ".yaml", "run", "test")
    guilty = [path for path in files if path != this and pattern.search(path.read_text(encoding="utf-8"))]
    assert not guilty
