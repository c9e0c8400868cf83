# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a wheel built from this checkout holds."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ".data/data/share/jupyter/labextensions/jupyter-pause/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that `scripts/test` built with no Node.js on PATH, or one built now."""
    given = os.environ.get("JUPYTER_PAUSE_TEST_WHEEL")
    if given:
        return zipfile.ZipFile(given)
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "-q", "-w", str(folder)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def _tracked(folder: str, *endings: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.name.endswith(endings)}


@pytest.mark.parametrize(
    ("folder", "endings"),
    [
        ("jupyter_pause", (".py",)),
        ("jupyter_pause", ("openapi.yaml", "py.typed")),
        ("jupyter_pause/events", (".yaml",)),
        ("jupyter_pause/kernel", (".py",)),
    ],
)
def test_the_wheel_holds_every_file_of_the_package(
    wheel: zipfile.ZipFile, folder: str, endings: tuple[str, ...]
) -> None:
    wanted = _tracked(folder, *endings)
    assert wanted
    assert wanted - set(wheel.namelist()) == set()


def test_the_wheel_holds_the_prebuilt_labextension_once(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    for wanted in ("package.json", "install.json", "static/style.js"):
        assert sum(name.endswith(SHARED + wanted) for name in names) == 1, wanted
    assert any(SHARED + "static/remoteEntry." in name and name.endswith(".js") for name in names)
    assert not any(name.startswith("jupyter_pause/labextension") for name in names)


def test_the_wheel_holds_the_settings_schemas(wheel: zipfile.ZipFile) -> None:
    schemas = sorted(path.name for path in (ROOT / "schema").glob("*.json"))
    assert schemas
    for schema in schemas:
        assert any(name.endswith(f"{SHARED}schemas/jupyter-pause/{schema}") for name in wheel.namelist()), schema


def test_the_server_extension_is_enabled_by_the_wheel(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("jupyter_server_config.d/jupyter_pause.json")]
    assert b'"jupyter_pause": true' in wheel.read(name)


def test_the_wheel_names_its_licence_command_and_provisioner(wheel: zipfile.ZipFile) -> None:
    def text(ending: str) -> str:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/" + ending)]
        return wheel.read(name).decode()

    assert Parser().parsestr(text("METADATA"))["License-Expression"] == "Apache-2.0"
    assert "Apache License" in text("licenses/LICENSE")
    assert "jupyter-pause = jupyter_pause.cli:main" in text("entry_points.txt")
    assert "jupyter-pause-provisioner = jupyter_pause.provisioner:PauseProvisioner" in text("entry_points.txt")


def test_nothing_of_the_checkout_or_the_machine_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert not [name for name in names if "node_modules" in name or "/tests/" in name or "__pycache__" in name]
    place = str(ROOT).encode()
    assert not [name for name in names if not name.endswith(".map") and place in wheel.read(name)]
