# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Starts ipykernel the way ``python -m ipykernel_launcher`` does, with our agent in it.

It is run as a script, by its path, so that nothing has to be installed in the kernel's own environment. A person's
kernel must start whatever goes wrong in here: every step of ours is fenced, and says what failed in the result file
(where one was asked for), never in the notebook.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from typing import Any

PACKAGE = "jupyter_pause_kernel"


def _leave_search_path(folder: str) -> None:
    """Take our own folder off the search path: a script's folder is put there, a module run by -m has none."""
    if sys.path and os.path.realpath(sys.path[0] or ".") == folder:
        del sys.path[0]


def register_package(folder: str) -> Any:
    """Make `folder` importable as ``jupyter_pause_kernel``; returns the package."""
    if PACKAGE in sys.modules:
        return sys.modules[PACKAGE]
    spec: Any = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[PACKAGE]
        raise
    return module


def connection_file(argv: list[str]) -> str | None:
    """The connection file named on the command line, as an absolute path, or None."""
    for index, word in enumerate(argv):
        if word in ("-f", "--f", "--IPKernelApp.connection_file") and index + 1 < len(argv):
            return os.path.abspath(argv[index + 1])
        for start in ("-f=", "--f=", "--IPKernelApp.connection_file="):
            if word.startswith(start):
                return os.path.abspath(word[len(start) :])
    return None


def hook_application(folder: str, argv: list[str]) -> None:
    """Have our agent installed between ipykernel's start-up and its first message."""
    register_package(folder)
    # It imports nothing that the launcher would not import next.
    application: Any = importlib.import_module("ipykernel.kernelapp").IPKernelApp
    original = application.initialize

    def initialize(self: Any, argv: Any = None) -> None:
        if os.name == "posix" and not self.parent_handle:
            # Pid 1 is ipykernel's own word for "no parent to watch"; without one it prints a note on the terminal.
            self.parent_handle = 1
        original(self, argv)
        if getattr(self, "kernel", None) is None:  # a sub-command such as "install"
            return
        try:
            importlib.import_module(PACKAGE + ".agent").install(self, connection)
        except Exception as error:
            report_failure(connection, error)

    connection = connection_file(argv)
    application.initialize = initialize


def report_failure(connection: str | None, error: BaseException) -> None:
    """Say in the result file, if one was asked for, that nothing was loaded; never raises.

    The load file is removed: a later restart of this kernel must not load a checkpoint that nobody waits for.
    """
    try:
        folder, name = os.path.split(connection or "")
        kernel_id = name[len("kernel-") : -len(".json")]
        load_file = os.path.join(folder, "jupyter-pause-load-" + kernel_id + ".json")
        with open(load_file, encoding="utf-8") as stream:
            request = json.load(stream)
        os.unlink(load_file)
        result = {
            "status": "failed",
            "outcome": "fresh",
            "code": "agent_failed",
            "message": "jupyter-pause could not start in this kernel: {}: {}".format(type(error).__name__, error),
            "seconds": 0.0,
            "variables": [],
            "losses": [],
            "rebuilt": [],
            "compared": 0,
            "mismatched": [],
            "execution_count": 1,
            "pid": os.getpid(),
        }
        part = request["result"] + ".part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(result, stream)
        os.replace(part, request["result"])
    except Exception:
        return


def serve_on_inherited_ports(folder: str) -> None:
    """Use the listening sockets that the server handed over; without that, let them go so that ports can be bound."""
    try:
        register_package(folder)
        importlib.import_module(PACKAGE + ".held_ports").install()
    except Exception:
        for pair in os.environ.pop("JUPYTER_PAUSE_LISTEN_FDS", "").split(","):
            if pair.partition(":")[2].isdigit():
                os.close(int(pair.partition(":")[2]))


def run_launcher() -> None:
    """Become ``ipykernel_launcher``: its code runs in ``__main__``, from which everything of ours is gone."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, os.getcwd())  # what -m does; the launcher takes it out again
    spec: Any = importlib.util.find_spec("ipykernel_launcher")
    if spec is None:
        raise SystemExit("{}: No module named ipykernel_launcher".format(sys.executable))
    code = spec.loader.get_code("ipykernel_launcher")
    sys.argv[0] = spec.origin
    namespace = sys.modules["__main__"].__dict__
    for name in [name for name in namespace if not name.startswith("__")]:
        del namespace[name]
    namespace.update(__file__=spec.origin, __cached__=spec.cached, __doc__=None, __loader__=spec.loader)
    namespace.update(__package__=spec.parent, __spec__=spec)
    exec(code, namespace)


def main() -> None:
    """Install our hook, then run the launcher."""
    folder = os.path.dirname(os.path.realpath(__file__))
    _leave_search_path(folder)
    argv = sys.argv[1:]
    serve_on_inherited_ports(folder)
    try:
        hook_application(folder, argv)
    except Exception as error:
        report_failure(connection_file(argv), error)
    run_launcher()


if __name__ == "__main__":
    # A second copy of this file does the work: __main__ is emptied for the launcher, and with it the globals of
    # everything that was defined in it.
    _spec: Any = importlib.util.spec_from_file_location("_jupyter_pause_bootstrap", __file__)
    _copy = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_copy)
    _copy.main()
