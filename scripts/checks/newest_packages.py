# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Packages of the distribution's newest suite, unpacked into a folder of their own, with all libraries they need.

The packages are downloaded with an apt configuration of their own: nothing of the system's changes, signatures are
checked as always. Programs among them need a newer C library than the machine's; its loader is among the libraries.

Standard library only.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: The suite of each distribution where new versions arrive first.
NEWEST_SUITE = {"debian": "sid", "ubuntu": "devel"}
KEYRINGS = {"debian": "debian-archive-keyring.gpg", "ubuntu": "ubuntu-archive-keyring.gpg"}


class CannotInstall(Exception):
    """There is no way to the packages on this machine; one sentence says why."""


@dataclass(frozen=True)
class Source:
    """An archive of this distribution, as the machine's own apt uses it."""

    uri: str
    suite: str
    #: Path of the keyring with the archive's keys.
    keyring: str


def fetch(packages: Sequence[str], work: Path) -> Path:
    """Download the packages with all they need and unpack them below `work`. Returns the folder with `usr` in it.

    Raises:
        CannotInstall: this machine has no apt, its distribution is not known, or a download failed.
    """
    for tool in ("apt-get", "apt-config", "dpkg-deb"):
        if not shutil.which(tool):
            raise CannotInstall(f"this is installed from Debian's or Ubuntu's packages, and there is no {tool} here")
    return _unpack(_download(work, newest_source(), packages), work / "stage")


def copy_libraries(stage: Path, libraries: Path) -> None:
    """All shared libraries of the unpacked packages into one new folder."""
    libraries.mkdir()
    for path in [*stage.glob("usr/lib/*-linux-*/*.so*"), *stage.glob("lib/*-linux-*/*.so*")]:
        if path.is_file():
            shutil.copy2(path, libraries / path.name, follow_symlinks=True)


def newest_source(etc: Path = Path("/etc")) -> Source:
    """The newest suite, from the archive that this machine's apt takes its release from.

    Raises:
        CannotInstall: the distribution or its archive is not known.
    """
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', (etc / "os-release").read_text(encoding="utf-8"), re.M))
    name, codename = release.get("ID", ""), release.get("VERSION_CODENAME", "")
    if name not in NEWEST_SUITE:
        raise CannotInstall(f"this is installed from Debian's or Ubuntu's packages, and this machine is {name!r}")
    suite = NEWEST_SUITE[name]
    for uri, suites, keyring in _entries(etc / "apt"):
        if {codename, suite, "unstable"} & suites:
            return Source(uri, suite, keyring or f"/usr/share/keyrings/{KEYRINGS[name]}")
    raise CannotInstall(f"apt's sources name no archive of {name} {codename}")


def _entries(apt: Path) -> Iterator[tuple[str, set[str], str]]:
    """URI, suites and keyring of every binary source with the component `main`, of both formats of apt."""
    for path in sorted([apt / "sources.list", *(apt / "sources.list.d").glob("*")]):
        if path.suffix == ".sources":
            yield from _stanzas(path.read_text(encoding="utf-8"))
        elif path.suffix == ".list" and path.is_file():
            yield from _lines(path.read_text(encoding="utf-8"))


def _stanzas(text: str) -> Iterator[tuple[str, set[str], str]]:
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    for stanza in re.split(r"\n\s*\n", text):
        found = re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.M)
        fields = {key.lower(): value.split() for key, value in found}
        usable = "deb" in fields.get("types", []) and "main" in fields.get("components", [])
        if usable and fields.get("enabled", ["yes"])[0].lower() not in ("no", "false", "0"):
            signed = fields.get("signed-by", [])
            keyring = signed[0] if len(signed) == 1 and signed[0].startswith("/") else ""
            for uri in fields.get("uris", []):
                yield uri, set(fields.get("suites", [])), keyring


def _lines(text: str) -> Iterator[tuple[str, set[str], str]]:
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s+(.*)", line)
        if found and "main" in found[4].split("#")[0].split():
            keyring = re.search(r"signed-by=(/[^\s,]+)", found[1] or "")
            yield found[2], {found[3]}, keyring[1] if keyring else ""


def _download(work: Path, source: Source, packages: Sequence[str]) -> Path:
    """Download the packages and all they need, as for a machine that has none. Returns the folder they lie in."""
    # apt drops its rights for downloads: that user must be able to pass through, nobody to look.
    work.chmod(0o711)
    for name in ("lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    stanza = {"Types": "deb", "URIs": source.uri, "Suites": source.suite, "Components": "main"}
    stanza["Signed-By"] = source.keyring
    _write_private(work / "apt.sources", "".join(f"{field}: {value}\n" for field, value in stanza.items()))
    _write_private(work / "apt.conf", _configuration(work))
    env = {**os.environ, "APT_CONFIG": str(work / "apt.conf"), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    run(["apt-get", "update"], env)
    run(["apt-get", "install", "-y", "--no-install-recommends", "--download-only", *packages], env)
    return work / "cache" / "archives"


def _configuration(work: Path) -> str:
    """The machine's own way to its archives (proxies, certificates), and folders of our own for everything else."""
    acquire = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout.splitlines()
    kept = [line for line in acquire if line.startswith("Acquire::") and "IndexTargets" not in line]
    folders = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": work / "apt.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::State::extended_states": work / "extended_states",
        "Dir::Cache": work / "cache",
        "Dir::Log": work,
        # Mirrors may be frozen copies, whose signed index is past its date. Its signature is checked all the same.
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Languages": "none",
        # The folders are ours alone; the system's locks are not needed and may not be ours to take.
        "Debug::NoLocking": "true",
    }
    return "\n".join([*kept, *(f'{name} "{value}";' for name, value in folders.items())]) + "\n"


def _unpack(archives: Path, stage: Path) -> Path:
    for package in sorted(archives.glob("*.deb")):
        run(["dpkg-deb", "--extract", package, stage], dict(os.environ))
    return stage


def find_loader(libraries: Path) -> Path:
    """The dynamic loader of the C library that was downloaded."""
    for name in (f"ld-linux-{platform.machine().replace('_', '-')}.so.*", "ld-linux-*.so.*", "ld64.so.*"):
        for path in libraries.glob(name):
            return path
    raise CannotInstall(f"no dynamic loader among the libraries in {libraries.name}")


def run(command: Sequence[str | Path], env: dict[str, str]) -> str:
    """What the command printed. Raises CannotInstall with its end when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise CannotInstall(f"{command[0]} failed:\n{done.stdout[-3000:]}")
    return done.stdout


def _write_private(path: Path, text: str) -> None:
    """An owner-only file: addresses and proxies may hold a password."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
