# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""CRIU from the distribution's newest suite, with that suite's own libraries, in a folder of its own.

Releases of Debian and Ubuntu carry a CRIU that is too old for current kernels. The newest suite has one that works,
but for a newer libc. So the packages are downloaded with an apt configuration of their own (nothing of the system's
changes, signatures are checked as always), unpacked, and the program is told to take its libraries from beside itself.

Standard library only; run by scripts/get-criu.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from criu_selftest import NotWorking, self_test, version

MINIMUM = (4, 2)
#: The suite of each distribution where new versions arrive first.
NEWEST_SUITE = {"debian": "sid", "ubuntu": "devel"}
KEYRINGS = {"debian": "debian-archive-keyring.gpg", "ubuntu": "ubuntu-archive-keyring.gpg"}
PACKAGES = ("criu", "patchelf")
#: What lets a plain user dump and restore processes of the same user.
CAPABILITIES = "cap_checkpoint_restore,cap_sys_ptrace,cap_setpcap+ep"


class CannotInstall(Exception):
    """There is no way to a new CRIU on this machine; one sentence says why."""


@dataclass(frozen=True)
class Source:
    """An archive of this distribution, as the machine's own apt uses it."""

    uri: str
    suite: str
    #: Path of the keyring with the archive's keys.
    keyring: str


def install(target: Path) -> Path:
    """Install CRIU into `target`, which must not exist or be empty. Returns the program; whether it works is not known.

    Raises:
        CannotInstall: this machine has no apt, its distribution is not known, or a download failed.
    """
    if target.exists() and any(target.iterdir()):
        raise CannotInstall(f"{target} is not empty: name a new folder")
    for tool in ("apt-get", "apt-config", "dpkg-deb"):
        if not shutil.which(tool):
            raise CannotInstall(f"CRIU is installed from Debian's or Ubuntu's packages, and there is no {tool} here")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="get-criu-") as work:
        stage = _unpack(_download(Path(work), newest_source()), Path(work) / "stage")
        program = _assemble(stage, target.resolve())
    if version(program) < MINIMUM:
        raise CannotInstall(f"the newest CRIU of this distribution is {_text(version(program))}, too old")
    return program


def newest_source(etc: Path = Path("/etc")) -> Source:
    """The newest suite, from the archive that this machine's apt takes its release from.

    Raises:
        CannotInstall: the distribution or its archive is not known.
    """
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', (etc / "os-release").read_text(encoding="utf-8"), re.M))
    name, codename = release.get("ID", ""), release.get("VERSION_CODENAME", "")
    if name not in NEWEST_SUITE:
        raise CannotInstall(f"CRIU is installed from Debian's or Ubuntu's packages, and this is {name!r}")
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


def _download(work: Path, source: Source) -> Path:
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
    _run(["apt-get", "update"], env)
    _run(["apt-get", "install", "-y", "--no-install-recommends", "--download-only", *PACKAGES], env)
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
        _run(["dpkg-deb", "--extract", package, stage], dict(os.environ))
    return stage


def _assemble(stage: Path, target: Path) -> Path:
    """The program and all libraries in `target`, and nothing taken from elsewhere. Returns the program."""
    libraries, programs = target / "lib", target / "sbin"
    for folder in (libraries, programs):
        folder.mkdir(exist_ok=True)
    for path in [*stage.glob("usr/lib/*-linux-*/*.so*"), *stage.glob("lib/*-linux-*/*.so*")]:
        if path.is_file():
            shutil.copy2(path, libraries / path.name, follow_symlinks=True)
    criu = programs / "criu"
    shutil.copy2(stage / "usr/sbin/criu", criu)
    env = dict(os.environ)
    loader = _loader(stage, libraries)
    patchelf: list[str | Path] = [loader, "--library-path", libraries, stage / "usr/bin/patchelf"]
    # --force-rpath: RPATH also serves what the libraries need, and LD_LIBRARY_PATH does not come before it.
    _run([*patchelf, "--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries, criu], env)
    for library, path in re.findall(r"^\s*(\S+) => (\S+)", _run([loader, "--list", criu], env), re.M):
        if Path(path).parent != libraries:
            raise CannotInstall(f"CRIU would take {library} from the system; the packages it needs have changed")
    return criu


def _loader(stage: Path, libraries: Path) -> Path:
    """The dynamic loader of the C library that was downloaded."""
    for name in (f"ld-linux-{platform.machine().replace('_', '-')}.so.*", "ld-linux-*.so.*", "ld64.so.*"):
        for path in libraries.glob(name):
            return path
    raise CannotInstall(f"no dynamic loader among {len(list(stage.rglob('*.so*')))} libraries")


def _run(command: Sequence[str | Path], env: dict[str, str]) -> str:
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


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in numbers)


def main() -> int:
    """Install and print the path."""
    parser = argparse.ArgumentParser(
        prog="scripts/get-criu",
        description=f"Installs CRIU {_text(MINIMUM)} or newer with its libraries into a folder of its own, dumps and "
        "restores a small process with it, and prints the path of the program. For Debian and Ubuntu. Changes nothing "
        "of the system. The folder cannot be moved afterwards. Exits with 1 where CRIU cannot be had or does not work.",
    )
    parser.add_argument("folder", type=Path, help="a new folder")
    try:
        program = install(parser.parse_args().folder)
    except CannotInstall as reason:
        print(reason, file=sys.stderr)
        return 1
    print(program)
    try:
        self_test(program)
    except NotWorking as reason:
        print(reason, file=sys.stderr)
        if os.geteuid() != 0:
            print(f"A plain user's CRIU needs, once, as root: setcap {CAPABILITIES} {program}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
