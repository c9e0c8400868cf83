# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""A process that runs cells, saves and loads, on JSON commands from a test. Runs under any Python that kernels may have.

It is no kernel: cells are compiled one by one under names of their own, with their text in `linecache`, as IPython does.
"""

import importlib.util
import json
import linecache
import os
import sys
import time
import traceback
import types

KERNEL_FOLDER, CLOUDPICKLE = sys.argv[1:3]
MARK = "\x1e"


def load_package():
    spec = importlib.util.spec_from_file_location("register", os.path.join(KERNEL_FOLDER, "register.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.register(CLOUDPICKLE)


load_package()
from jupyter_pause_kernel import capture, layout, revive, scan  # noqa: E402

main = types.ModuleType("__main__")
sys.modules["__main__"] = main
namespace = main.__dict__
namespace["In"] = [""]
BUILTIN = {name for name in namespace if name.startswith("__")} | {"__builtins__"}


def cell(text):
    inputs = namespace["In"]
    name = f"<cell-{os.getpid()}-{len(inputs)}>"
    inputs.append(text)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)


def save(root, identifier, cancel_after=None, request=None):
    staging = os.path.join(root, "staging", identifier)
    layout.make_private_dir(os.path.join(root, "checkpoints"))
    layout.make_private_dir(staging)
    seen = []

    def on_progress(progress):
        seen.append(progress)

    def cancelled():
        return cancel_after is not None and len(seen) >= cancel_after

    facts = {"checkpoint_id": identifier, "kernel_id": "k", "created": "2026-01-01T00:00:00.000Z"}
    facts.update(request or {})
    state = {"execution_count": len(namespace["In"]), "env": {"set": {}, "removed": [], "not_stored": []}}
    result = capture.capture(
        namespace, staging, facts, interpreter=state, hidden=BUILTIN, on_progress=on_progress, cancelled=cancelled
    )
    return {"result": result, "left": sorted(os.listdir(staging)), "phases": sorted({p["phase"] for p in seen})}


def commit(root, identifier, secret):
    final = os.path.join(root, "checkpoints", identifier)
    layout.commit(os.path.join(root, "staging", identifier), final, bytes.fromhex(secret))
    return final


def load(folder, secret):
    return revive.load(folder, namespace, secret=bytes.fromhex(secret))


def scan_all():
    scanner = scan.Scanner(namespace, BUILTIN)
    slices = []
    while True:
        began = time.process_time()
        done = scanner.step(0.02)
        slices.append(time.process_time() - began)
        if done:
            return {"result": scanner.result(), "slices": len(slices), "longest": max(slices)}


def rlimit(bytes_):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))


def die_before(function, number, error=None):
    """End this process, or raise an OSError, at the number-th call of a function of `os`."""
    import errno

    real, calls = getattr(os, function), []

    def call(*args, **kwargs):
        calls.append(function)
        if len(calls) == number and error is None:
            os._exit(9)
        if len(calls) >= number and error is not None:
            raise OSError(getattr(errno, error), error)
        return real(*args, **kwargs)

    setattr(os, function, call)


hashed = []


def count_hashes():
    """Note how many bytes each chunk has that is hashed from now on."""
    from jupyter_pause_kernel import packs

    real = packs.sha256

    def counting(data):
        hashed.append(len(data))
        return real(data)

    packs.sha256 = counting


COMMANDS = {
    "cell": cell,
    "save": save,
    "commit": commit,
    "load": load,
    "scan": scan_all,
    "rlimit": rlimit,
    "die_before": die_before,
    "count_hashes": count_hashes,
    "counted_hashes": lambda: hashed,
    "value": lambda text: repr(eval(text, namespace)),
}


def serve():
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = [True, COMMANDS[name](**arguments)]
        except BaseException as error:
            answer = [False, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"]
        sys.stdout.write(MARK + json.dumps(answer) + "\n")
        sys.stdout.flush()


serve()
