# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Saves and loads the objects of the fidelity table with another pickler; run by the interpreter that has it.

Standard input is a list of ``[name, setup, check, has_check]``; one line of JSON per object comes out. Each save and
each load is a process of its own (a fork of this one, which has imported nothing but the pickler).
"""

import ast
import contextlib
import importlib
import json
import os
import pickle
import signal
import sys
import tempfile
import types

LIMIT = 20


def fresh_main():
    """A new ``__main__``, whose names are the notebook's."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    return main.__dict__


def names_of(setup, check):
    """``x``, and what the check uses beside it: that is what a person would save together."""
    used = {node.id for node in ast.walk(ast.parse(check)) if isinstance(node, ast.Name)}
    bound = {
        node.id for node in ast.walk(ast.parse(setup)) if isinstance(node, ast.Name) and type(node.ctx) is ast.Store
    }
    bound |= {node.name for node in ast.parse(setup).body if hasattr(node, "name")}
    return {"x"} | (used & bound)


def type_of(value):
    """Module and name."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def save(peer, setup, check, path):
    """Write the file. Returns the type of ``x``."""
    space = fresh_main()
    exec(compile(setup, "<cell>", "exec"), space)
    wanted = {name: space[name] for name in names_of(setup, check) if name in space}
    modules = [name for name, value in wanted.items() if isinstance(value, types.ModuleType) and name != "x"]
    for name in modules:
        del wanted[name]
    data = importlib.import_module(peer).dumps(wanted)
    with open(path, "wb") as stream:
        stream.write(data)
    return type_of(space["x"])


def load(peer, setup, check, path):
    """(type of ``x``, whether the check holds or why not)."""
    space = fresh_main()
    with open(path, "rb") as stream:
        data = stream.read()
    space.update(pickle.loads(data) if peer == "cloudpickle" else importlib.import_module(peer).loads(data))
    for node in ast.parse(setup).body:  # a notebook's imports are there again
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not any(a.asname == "x" for a in node.names):
            exec(compile(ast.Module([node], []), "<imports>", "exec"), space)
    kind = type_of(space["x"])
    try:
        tree = ast.parse(check)
        last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, "<check>", "exec"), space)
        good = bool(eval(compile(last, "<check>", "eval"), space))
    except BaseException:
        good = False
    return [kind, good]


def in_a_process(work, *arguments):
    """[True, what it returned] or [False, the error] of a call in a fork of this process, all of whose children end."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        signal.alarm(LIMIT)
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(quiet, number)
        try:
            answer = [True, work(*arguments)]
        except BaseException as error:
            answer = [False, f"{type(error).__name__}: {error}"[:200]]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the object started
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    return json.loads(data) if data else [False, "it took too long, or the process died"]


def outcome(peer, setup, check, has_check):
    """equal, type only (nothing more to check), differs, another type, fails to load, refuses."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        path = os.path.join(folder, "saved")
        saved, kind = in_a_process(save, peer, setup, check, path)
        if not saved:
            return "refuses"
        loaded, answer = in_a_process(load, peer, setup, check, path)
        os.chdir("/")
    if not loaded:
        return "fails to load"
    if answer[0] != kind:
        return "another type"
    if not answer[1]:
        return "differs"
    return "equal" if has_check else "type only"


def main():
    """One object after the other."""
    peer = sys.argv[1]
    importlib.import_module(peer)
    out = os.dup(1)
    for name, setup, check, has_check in json.load(sys.stdin):
        os.write(out, (json.dumps([name, outcome(peer, setup, check, has_check)]) + "\n").encode())


if __name__ == "__main__":
    main()
