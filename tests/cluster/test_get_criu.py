# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""scripts/get-criu finds the archive that the machine itself uses, whichever way apt's sources are written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .binaries import checks_module

ROOT = Path(__file__).resolve().parents[2]

DEBIAN = 'ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n"

STANZAS = """\
Types: deb deb-src
# URIs: http://old.invalid/debian
URIs: http://mirror.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://mirror.invalid/debian-security
Suites: bookworm-security
Components: main
"""


def etc(tmp_path: Path, release: str, files: dict[str, str]) -> Path:
    """A folder like /etc."""
    (tmp_path / "apt" / "sources.list.d").mkdir(parents=True)
    (tmp_path / "os-release").write_text(release)
    for name, text in files.items():
        (tmp_path / "apt" / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("release", "files", "uri", "suite", "keyring"),
    [
        (DEBIAN, {"sources.list.d/debian.sources": STANZAS}, "http://mirror.invalid/debian", "sid", "/keys/debian.gpg"),
        (
            DEBIAN,
            {
                "sources.list": "# ours\ndeb [arch=amd64 signed-by=/keys/a.gpg] http://m.invalid/debian bookworm main",
                "sources.list.d/tool.list": "deb http://tool.invalid/apt stable main\n",
            },
            "http://m.invalid/debian",
            "sid",
            "/keys/a.gpg",
        ),
        (
            UBUNTU,
            {"sources.list": "deb http://m.invalid/ubuntu noble main universe # ours\n"},
            "http://m.invalid/ubuntu",
            "devel",
            "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        ),
    ],
    ids=["stanzas", "lines", "ubuntu"],
)
def test_the_machines_own_archive(
    tmp_path: Path, release: str, files: dict[str, str], uri: str, suite: str, keyring: str
) -> None:
    source = checks_module("newest_packages").newest_source(etc(tmp_path, release, files))
    assert (source.uri, source.suite, source.keyring) == (uri, suite, keyring)


@pytest.mark.parametrize(
    ("release", "files", "complaint"),
    [
        ("ID=fedora\n", {}, "this machine is 'fedora'"),
        (DEBIAN, {"sources.list": "deb http://tool.invalid/apt stable main\n"}, "name no archive of debian bookworm"),
        (
            DEBIAN,
            {"sources.list.d/off.sources": STANZAS.replace("Types: deb deb-src", "Enabled: no\nTypes: deb deb-src")},
            "name no archive",
        ),
    ],
    ids=["another distribution", "only others' archives", "switched off"],
)
def test_no_archive_is_said_in_a_sentence(tmp_path: Path, release: str, files: dict[str, str], complaint: str) -> None:
    newest = checks_module("newest_packages")
    with pytest.raises(newest.CannotInstall, match=complaint):
        newest.newest_source(etc(tmp_path, release, files))


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("keep")
    command = [ROOT / "scripts" / "get-criu", tmp_path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert (tmp_path / "theirs").read_text() == "keep"
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_libraries_come_with_the_program(criu: Path) -> None:
    loader = subprocess.run(["readelf", "-l", criu], capture_output=True, text=True).stdout
    if loader and str(criu.parent.parent) not in loader:
        pytest.skip("this CRIU was not installed by scripts/get-criu")
    (program,) = (criu.parent.parent / "lib").glob("ld-linux-*.so.*")
    listed = subprocess.run([program, "--list", criu], capture_output=True, text=True, check=True).stdout
    taken = [line.split(" => ")[1].split()[0] for line in listed.splitlines() if " => " in line]
    assert len(taken) > 10
    assert {Path(path).parent for path in taken} == {criu.parent.parent / "lib"}
