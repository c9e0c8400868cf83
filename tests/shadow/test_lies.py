# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects whose own rules for saving do not tell the truth are named, with their place, while the kernel still runs."""

from __future__ import annotations

import pytest

from tests.server.conftest import Driver

from .conftest import lost

LIES = {
    "another_type": (
        "class Meter:\n    def __reduce__(self): return (int, (5,))\nhouse = {'rooms': [1, Meter()]}",
        'house["rooms"][1]',
        "int",
    ),
    "forgets": (
        "class Stack:\n    def __init__(self): self._items = []\n    def __reduce__(self): return (Stack, ())\n"
        "stack = Stack(); stack._items.append(3)",
        "stack._items",
        "another value",
    ),
    "other_arguments": (
        "class Failed(Exception):\n    def __init__(self, code): super().__init__('failed with %s' % code)\n"
        "results = [Failed(3)]",
        "results[0]",
        "content",
    ),
    "raises": (
        "class Pair(Exception):\n    def __init__(self, a, b): super().__init__(a)\nlast = {'error': Pair(1, 2)}",
        'last["error"]',
        "TypeError",
    ),
    "proxy": (
        "class Proxy:\n    def __init__(self, target): self.target = target\n"
        "    def __getattr__(self, name): return lambda *a, **k: None\nproxy = Proxy([1])",
        "proxy.target",
        "leave it out",
    ),
    "dict_that_changes": (
        "class Doubled(dict):\n    def __setitem__(self, key, value): super().__setitem__(key, value * 2)\n"
        "prices = Doubled(); prices['a'] = 2",
        "prices",
        "content",
    ),
    "list_that_changes": (
        "class Steps(list):\n    def append(self, x): super().append(x + 1)\n"
        "    def extend(self, xs): super().extend(x + 1 for x in xs)\nsteps = Steps([1, 2])",
        "steps",
        "content",
    ),
    "array_with_attributes": (
        "import numpy as np\nclass Tagged(np.ndarray): pass\ntagged = np.arange(5).view(Tagged); tagged.unit = 'm'",
        "tagged.unit",
        "leave it out",
    ),
    "own_state": (
        "class Reset:\n    def __init__(self): self.count = 0\n    def __setstate__(self, state): self.count = 0\n"
        "class Holder: pass\nholder = Holder(); holder.inner = Reset(); holder.inner.count = 7",
        "holder.inner.count",
        "another value",
    ),
    "text_with_attributes": (
        "class Note(str):\n    def __reduce__(self): return (Note, (str(self),))\nnote = Note('a'); note.author = 'me'",
        "note.author",
        "leave it out",
    ),
    "number_with_attributes": (
        "class Length(int):\n    def __getnewargs__(self): return (int(self) + 1,)\nlength = Length(3)",
        "length",
        "content",
    ),
    "inside_its_own_class": (
        "class Level:\n    def __init__(self, n): self.n = n\n    def __getstate__(self): return {'n': -self.n}\n"
        "    def __setstate__(self, state): self.n = -state['n']\nLevel.first = Level(4)",
        "Level.first.n",
        "another value",
    ),
    "ends_the_process": (
        "import ctypes\nclass Crash:\n    def __setstate__(self, state): ctypes.string_at(0)\n"
        "    def __getstate__(self): return {'a': 1}\ncrash = Crash()",
        "crash",
        "SIGSEGV",
    ),
    "exits": (
        "class Exits:\n    def __init__(self): self.a = 1\n    def __setstate__(self, state): raise SystemExit\n"
        "exits = [Exits()]",
        "exits[0]",
        "SystemExit",
    ),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_named_before_the_process_ends(driver: Driver, lie: str) -> None:
    cell, path, reason = LIES[lie]
    kernel = await driver.notebook()
    await driver.run(kernel, cell)
    pid = driver.pid(kernel)
    found = await lost(driver, kernel)
    assert list(found) == [path]
    assert reason in found[path]
    assert driver.pid(kernel) == pid
    assert await driver.run(kernel, "", "1 + 1") == "2"


async def test_what_was_accepted_is_named_after_the_resume(driver: Driver) -> None:
    kernel = await driver.notebook()
    for cell, _, _ in (LIES["own_state"], LIES["another_type"], LIES["raises"]):
        await driver.run(kernel, cell)
    paused = await driver.pause(kernel, on_loss="accept")
    assert paused["state"] == "done"
    assert paused["shadow"]["state"] == "checked"
    paths = {"holder.inner.count", 'house["rooms"][1]', 'last["error"]'}
    manifest = await driver.get("checkpoints", paused["checkpoint"])
    assert {loss["path"] for loss in manifest["losses"]} == paths
    assert all(loss["cell"] for loss in manifest["losses"])
    resumed = await driver.resume(kernel=kernel)
    assert resumed["outcome"] == "partial"
    report = (await driver.row(kernel))["last_resume"]
    assert sorted(loss["path"] for loss in report["losses"]) == sorted(paths)
