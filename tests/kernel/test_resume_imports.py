# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A resume waits for every import, so it imports only what its checkpoint needs."""

from __future__ import annotations

import ast

from .livekernel import LiveKernel

FAMILIES = (
    "{m.split('.')[-1] for m in __import__('sys').modules if m.startswith('jupyter_pause_kernel.revivers.')"
    " or m == 'jupyter_pause_kernel.reducing'} - {'base', 'hopeless'}"
)


def _loaded(kernel: LiveKernel) -> set[str]:
    shown = kernel.value(FAMILIES)
    return set() if shown == "set()" else set(ast.literal_eval(shown))


def test_a_resume_imports_only_the_families_that_its_checkpoint_names(kernel: LiveKernel) -> None:
    kernel.execute("import csv, io, threading\nx = [1, {'a': 2}]\nlock = threading.Lock()\ndef f(): return x")
    kernel.resume(kernel.save())
    assert _loaded(kernel) == set()
    kernel.execute("lines = iter(['a,b'])\nreader = csv.reader(lines)")
    result = kernel.resume(kernel.save())
    assert result["outcome"] == "restored" and "reader" in result["rebuilt"], result
    assert "streams" in _loaded(kernel) and "tensors" not in _loaded(kernel) and "reducing" not in _loaded(kernel)
    assert kernel.value("next(reader)") == "['a', 'b']"
    fates = {item["name"]: item["fate"] for item in kernel.control(op="inventory", wait=60)["variables"]}
    assert fates["lock"] == "rebuilt", "all families serve again as soon as something is taken apart"
    assert {"tensors", "reducing"} <= _loaded(kernel)
