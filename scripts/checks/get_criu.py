# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""CRIU from the distribution's newest suite, with that suite's own libraries, in a folder of its own.

Releases of Debian and Ubuntu carry a CRIU that is too old for current kernels. The newest suite has one that works,
but for a newer libc: the program is told to take its libraries from beside itself.

Standard library only; run by scripts/get-criu.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from criu_selftest import NotWorking, self_test, version
from newest_packages import CannotInstall, copy_libraries, fetch, find_loader, run

MINIMUM = (4, 2)
PACKAGES = ("criu", "patchelf")
#: What lets a plain user dump and restore processes of the same user.
CAPABILITIES = "cap_checkpoint_restore,cap_sys_ptrace,cap_setpcap+ep"


def install(target: Path) -> Path:
    """Install CRIU into `target`, which must not exist or be empty. Returns the program; whether it works is not known.

    Raises:
        CannotInstall: this machine has no apt, its distribution is not known, or a download failed.
    """
    if target.exists() and any(target.iterdir()):
        raise CannotInstall(f"{target} is not empty: name a new folder")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="get-criu-") as work:
        program = _assemble(fetch(PACKAGES, Path(work)), target.resolve())
    if version(program) < MINIMUM:
        raise CannotInstall(f"the newest CRIU of this distribution is {_text(version(program))}, too old")
    return program


def _assemble(stage: Path, target: Path) -> Path:
    """The program and all libraries in `target`, and nothing taken from elsewhere. Returns the program."""
    libraries, programs = target / "lib", target / "sbin"
    programs.mkdir()
    copy_libraries(stage, libraries)
    criu = programs / "criu"
    shutil.copy2(stage / "usr/sbin/criu", criu)
    env = dict(os.environ)
    loader = find_loader(libraries)
    patchelf: list[str | Path] = [loader, "--library-path", libraries, stage / "usr/bin/patchelf"]
    # --force-rpath: RPATH also serves what the libraries need, and LD_LIBRARY_PATH does not come before it.
    run([*patchelf, "--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries, criu], env)
    for library, path in re.findall(r"^\s*(\S+) => (\S+)", run([loader, "--list", criu], env), re.M):
        if Path(path).parent != libraries:
            raise CannotInstall(f"CRIU would take {library} from the system; the packages it needs have changed")
    return criu


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
