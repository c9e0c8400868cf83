# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects whose own rules for saving do not tell the truth are named, with their place, while the kernel still runs."""

from __future__ import annotations

import pytest

from tests.server.conftest import Driver

from .conftest import lost

#: Cell, path, part of the reason.
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
    "number_made_anew": (
        "class Length(int):\n    def __reduce__(self): return (Length, (int(self) + 1,))\nlength = (1, Length(3))",
        "length[1]",
        "content",
    ),
    "dict_made_anew": (
        "class Doubled(dict):\n    def __reduce__(self): return (Doubled, ({k: v * 2 for k, v in self.items()},))\n"
        "prices = {'all': Doubled(a=2)}",
        'prices["all"]',
        "content",
    ),
    "raises": (
        "class Once:\n    def __init__(self): self.a = 1\n    def __setstate__(self, state): raise KeyError('gone')\n"
        "last = {'error': Once()}",
        'last["error"]',
        "KeyError",
    ),
    "inside_its_own_class": (
        "class Level:\n    def __init__(self, n): self.n = n\n    def __reduce__(self): return (Level, (-self.n,))\n"
        "Level.first = Level(4)",
        "Level.first",
        "TypeError",
    ),
    "frame_with_attributes": (
        "import pandas as pd\nframes = [pd.DataFrame({'a': [1]})]; frames[0].source = 'here'",
        "frames[0].source",
        "leave it out",
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
#: Cell, path, and what is true where the object comes back right: either is well, silence is not.
NAMED_OR_RIGHT = {
    "error_with_other_arguments": (
        "class Failed(Exception):\n    def __init__(self, code): super().__init__('failed with %s' % code)\n"
        "results = [Failed(3)]",
        "results[0]",
        "results[0].args == ('failed with 3',)",
    ),
    "error_that_needs_more": (
        "class Pair(Exception):\n    def __init__(self, a, b): super().__init__(a); self.b = b\n"
        "last = {'error': Pair(1, 2)}",
        'last["error"]',
        "(last['error'].args, last['error'].b) == ((1,), 2)",
    ),
    "proxy": (
        "class Proxy:\n    def __init__(self, target): self.target = target\n"
        "    def __getattr__(self, name): return lambda *a, **k: None\nproxy = Proxy([1])",
        "proxy.target",
        "proxy.target == [1]",
    ),
    "dict_that_changes": (
        "class Doubled(dict):\n    def __setitem__(self, key, value): super().__setitem__(key, value * 2)\n"
        "prices = Doubled(); prices['a'] = 2",
        "prices",
        "dict(prices) == {'a': 4}",
    ),
    "list_that_changes": (
        "class Steps(list):\n    def append(self, x): super().append(x + 1)\n"
        "    def extend(self, xs): super().extend(x + 1 for x in xs)\nsteps = Steps([1, 2])",
        "steps",
        "list(steps) == [1, 2]",
    ),
    "array_with_attributes": (
        "import numpy as np\nclass Tagged(np.ndarray): pass\ntagged = np.arange(5).view(Tagged); tagged.unit = 'm'",
        "tagged.unit",
        "tagged.unit == 'm' and int(tagged.sum()) == 10",
    ),
    "instance_of_its_own_class": (
        "class Level:\n    def __init__(self, n): self.n = n\n    def __getstate__(self): return {'n': -self.n}\n"
        "    def __setstate__(self, state): self.n = -state['n']\nLevel.first = Level(4)",
        "Level.first.n",
        "Level.first.n == 4",
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


@pytest.mark.parametrize("case", NAMED_OR_RIGHT)
async def test_what_pickling_alone_would_lose_is_named_or_comes_back_right(driver: Driver, case: str) -> None:
    cell, path, right = NAMED_OR_RIGHT[case]
    kernel = await driver.notebook()
    await driver.run(kernel, cell)
    found = await lost(driver, kernel)
    if found:
        assert list(found) == [path]
        return
    resumed = await driver.resume(kernel=kernel)
    assert resumed["outcome"] == "restored"
    assert await driver.run(kernel, "", right) == "True"


async def test_what_was_accepted_is_named_after_the_resume(driver: Driver) -> None:
    kernel = await driver.notebook()
    chosen = [LIES[name] for name in ("own_state", "forgets", "raises")]
    for cell, _, _ in chosen:
        await driver.run(kernel, cell)
    paused = await driver.pause(kernel, on_loss="accept")
    assert paused["state"] == "done"
    assert paused["shadow"]["state"] == "checked"
    paths = sorted(path for _, path, _ in chosen)
    manifest = await driver.get("checkpoints", paused["checkpoint"])
    assert sorted(loss["path"] for loss in manifest["losses"]) == paths
    assert all(loss["cell"] for loss in manifest["losses"])
    resumed = await driver.resume(kernel=kernel)
    assert resumed["outcome"] == "partial"
    report = (await driver.row(kernel))["last_resume"]
    assert sorted(loss["path"] for loss in report["losses"]) == paths
