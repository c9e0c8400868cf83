# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A process that loads a checkpoint to see whether it loads, and ends: nothing of it is kept.

It is run as a script, by its path, with the kernel's own interpreter. The server gives it orders on its standard input,
one JSON object a line, and finds the answer in ``answer.json`` in the folder that it was given. When the input ends,
because the server ended it or died, the process ends.

``{"op": "prepare", "folder", "staging", "cloudpickle", "parent"}`` imports what the kernel has imported;
``{"op": "load", "manifest": SHA-256 of manifest.json, "memory": bytes or null}`` loads and answers.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import queue
import signal
import sys
import threading
import time
from types import ModuleType
from typing import Any, Dict, List, Optional

PACKAGE = "jupyter_pause_kernel"
ANSWER, CURRENT = "answer.json", "current"
#: Bytes of address space beyond the memory limit: libraries reserve much that they never use.
_ADDRESS_ROOM = 4 << 30


def register(cloudpickle: str) -> None:
    """Make our package importable under its own name, as in a kernel."""
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "register.py")
    spec: Any = importlib.util.spec_from_file_location("_jupyter_pause_register", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.register(cloudpickle)


def end_with(parent: Optional[int]) -> None:
    """Have the system end this process with the server, whatever it is doing then (elsewhere: the input's end)."""
    if not sys.platform.startswith("linux"):
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG, prctl(2)
    except (OSError, AttributeError, ImportError):
        return
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def be_first_to_go() -> None:
    """When memory gets short, this process is the one to be ended, not the kernel beside it."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as stream:
            stream.write("1000")
    except OSError:
        return


def orders() -> queue.Queue[Any]:
    """Orders as they come in; a thread reads them, and ends the process when there can be no more."""
    came: queue.Queue[Any] = queue.Queue()
    source = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # code of the person's that asks for input gets none

    def read() -> None:
        for line in source:
            came.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, name="jupyter_pause orders", daemon=True).start()
    return came


class Trial:
    """One checkpoint being tried out."""

    def __init__(self, order: Dict[str, Any]) -> None:
        self._folder = order["folder"]
        self._staging = order["staging"]
        os.chdir(self._folder)
        self._current = os.open(CURRENT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._imported: Dict[str, float] = {}

    def confine(self) -> None:
        """From here on nothing outside the own folder is changed."""
        self._confined: Any = importlib.import_module(PACKAGE + ".confined")
        self._own_environment()
        self._confinement: Any = self._confined.Confinement(self._folder)
        self._confinement.begin()

    def _own_environment(self) -> None:
        os.environ.update(self._confined.ENVIRONMENT, TMPDIR=self._folder)

    def prepare(self) -> None:
        """Search path, environment and imports as in the kernel, as far as they are known before it has saved."""
        begin = read_json(os.path.join(self._staging, "start.json"))
        if begin is None:
            return
        self.apply(begin["interpreter"], begin["sys_path"])
        for name in begin["modules"]:
            self.fetch(name)

    def apply(self, state: Dict[str, Any], path: Optional[List[str]]) -> None:
        """The kernel's search path and environment; what is relative there stays relative to its folder."""
        importlib.import_module(PACKAGE + ".interpreter").apply_environment(state)
        self._own_environment()
        if path:
            own = [entry for entry in sys.path if entry not in path]
            sys.path[:] = [os.path.join(state.get("cwd") or "/", entry) for entry in path] + own

    def fetch(self, name: str) -> None:
        """Import one module; what fails will be told by the variable that needs it."""
        if name in self._imported or name in sys.modules:
            return
        began = time.monotonic()
        try:
            importlib.import_module(name)
        except BaseException:
            pass
        self._imported[name] = time.monotonic() - began

    def _tell(self, variable: str) -> None:
        """Which variable is being loaded: were it to end the process, the server finds its name."""
        name = variable.encode("utf-8", "replace")
        os.pwrite(self._current, len(name).to_bytes(4, "little") + name, 0)

    def load(self, order: Dict[str, Any]) -> Dict[str, Any]:
        """Load, compare, and say what is not as it was. Nothing is unpickled that is not what the server read back."""
        layout = importlib.import_module(PACKAGE + ".layout")
        tryout = importlib.import_module(PACKAGE + ".tryout")
        data = layout.read_manifest(self._staging)
        if hashlib.sha256(data).hexdigest() != order["manifest"]:
            return {"status": "failed", "code": "changed", "detail": "the manifest is not the one that was read back"}
        manifest = layout.parse_manifest(data)
        for name in manifest["packages"]:
            self.fetch(name)
        limit_memory(order.get("memory"), sum(pack["bytes"] for pack in manifest["packs"]))
        began = time.monotonic()
        found: Dict[str, Any] = tryout.try_out(
            self._staging, manifest, main_module().__dict__, self._confinement, self._tell
        )
        found["load_seconds"] = round(time.monotonic() - began, 3)
        found["import_seconds"] = round(sum(self._imported.values()), 3)
        return found


def main_module() -> ModuleType:
    """An empty ``__main__``: the notebook's own module in this process."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["_jupyter_pause_shadow"] = sys.modules["__main__"]
    sys.modules["__main__"] = module
    return module


def limit_memory(limit: Optional[int], mapped: int) -> None:
    """A hard end for one huge allocation; the server watches what is really used."""
    if limit is None:
        return
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as stream:
            now = int(stream.read().split()[0]) * resource.getpagesize()
        wanted = now + mapped + limit + _ADDRESS_ROOM
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY or wanted < most:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    except (ImportError, OSError, ValueError, AttributeError):
        return


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """A JSON object, or None where there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def answer(folder: str, found: Dict[str, Any]) -> None:
    """Write the answer, complete or not at all."""
    part = os.path.join(folder, ANSWER + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(found, stream)
    os.replace(part, os.path.join(folder, ANSWER))


def main() -> None:
    """Do as ordered, then leave without any clean-up of the person's."""
    folder_of_script = os.path.dirname(os.path.realpath(__file__))
    if sys.path and os.path.realpath(sys.path[0] or ".") == folder_of_script:
        del sys.path[0]
    came = orders()
    order = came.get()
    end_with(order.get("parent"))
    be_first_to_go()
    sys.dont_write_bytecode = True
    folder = order["folder"]
    try:
        register(order["cloudpickle"])
        trial = Trial(order)
        trial.confine()
        trial.prepare()
        found = trial.load(came.get())
    except MemoryError:
        found = {"status": "failed", "code": "memory", "detail": ""}
    except BaseException as error:  # code of the person's may raise anything, also SystemExit
        found = {"status": "failed", "code": "failed", "detail": "%s: %s" % (type(error).__name__, error)}
    answer(folder, found)
    os._exit(0)


if __name__ == "__main__":
    main()
