# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A Python newer than the machine's, from the distribution's newest suite, in a folder of its own, for test kernels.

Standard library only.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path

from newest_packages import CannotInstall, copy_libraries, fetch, find_loader, run

#: The program is started through the loader of the C library it was built for. (Rewriting its own idea of a loader, as
#: is done for CRIU, breaks it: it is no position-independent executable.) `$0` stays what Python is to believe that it
#: is, so that virtual environments made from it work.
STARTER = """#!/bin/sh
exec {loader} --library-path {libraries} --argv0 "$0" {program} "$@"
"""


def install(minor: str, target: Path) -> Path:
    """Install Python `minor` ("3.14") into `target`, which must not exist. Returns the interpreter.

    It has no pip: make environments with `venv --without-pip` and fill them with another Python's `pip --python`.

    Raises:
        CannotInstall: no apt, an unknown distribution, one without such a Python, or a failed download.
    """
    name = f"python{minor}"
    with tempfile.TemporaryDirectory(prefix="get-python-") as work:
        stage = fetch([name, f"{name}-venv"], Path(work))
        for folder in ("bin", "lib", "program"):
            (target / folder).mkdir(parents=True)
        shutil.copytree(stage / "usr" / "lib" / name, target / "lib" / name, symlinks=True)
        copy_libraries(stage, target / "libraries")
        program = Path(shutil.copy2(stage / "usr" / "bin" / name, target / "program"))
    interpreter = target / "bin" / name
    parts = {"loader": find_loader(target / "libraries"), "libraries": target / "libraries", "program": program}
    interpreter.write_text(STARTER.format(**{key: shlex.quote(str(path)) for key, path in parts.items()}))
    interpreter.chmod(0o755)
    found = run(
        [interpreter, "-c", "import ctypes, sqlite3, ssl, sys; print('%d.%d' % sys.version_info[:2])"], {}
    ).strip()
    if found != minor:
        raise CannotInstall(f"this is Python {found}, not {minor}")
    return interpreter
