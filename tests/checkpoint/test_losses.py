# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""What cannot come back: named with its path, the rest untouched, and one clear sentence when it is used."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .engine import Process, manifest, python

Start = Callable[..., Process]

BAD = (
    "x = 1\ndef f(): return x",
    "import socket, threading, sys",
    "gen = (i for i in range(3)); cfg = {'gen': gen, 'keep': [1]}",
    "class Holder:\n    pass\nholder = Holder()",
    "holder.sock = socket.socket(); items = [1, 2, 3, sys._getframe()]",
    "thread = threading.Thread(target=threading.Event().wait, daemon=True); thread.start(); again = gen; deep = {'a': [{'b': (1, holder.sock)}]}",
    "def closing(): \n    inner = (c for c in 'x')\n    return lambda: inner\nclose = closing()",
    "class Angry:\n    def __reduce__(self): raise ValueError('not me')\nangry = [Angry()]",
    "class Odd:\n    def __reduce__(self): return 5\nodd = Odd()\nclass Global:\n    def __reduce__(self): return 'nowhere'\nglob = Global()",
    "class Loop:\n    def __getattr__(self, name): return getattr(self, name)\nloop = Loop()",
)
EXPECTED = {
    "gen",
    'cfg["gen"]',
    "holder.sock",
    "items[3]",
    "thread",
    "again",
    "close.<inner>",
    "angry[0]",
    "odd",
    "glob",
}


@pytest.mark.parametrize("minor", ["3.11", "3.9", "3.14"])
def test_S04_two_lists_what_is_back_and_what_is_not(start: Start, again: Start, minor: str) -> None:
    saved = start(python(minor)).cells(*BAD)
    seen = {loss["path"]: loss for loss in saved.scan()["losses"]}
    back = again(saved, python(minor))
    losses = {loss["path"]: loss for loss in back.loaded["losses"]}
    named = set(losses) - {"loop"}
    assert named | {'cfg["gen"]'} == EXPECTED and named >= EXPECTED - {'cfg["gen"]', "gen"}
    assert set(seen) - {"loop"} == named, "the scan says the same before the click"
    assert all(loss["reason"] and loss["type"] for loss in losses.values())
    assert losses["holder.sock"]["cell"] == 5 and losses["thread"]["cell"] == 6 and losses["gen"]["cell"] == 3
    back.true(
        "f() == 1",
        "cfg['keep'] == [1]",
        "items[:3] == [1, 2, 3]",
        "type(holder) is Holder",
        "deep['a'][0]['b'][0] == 1",
    )
    back.true("deep['a'][0]['b'][1] is holder.sock", "again is gen and cfg['gen'] is gen", "type(angry) is list")
    lost = {item["name"] for item in back.loaded["variables"] if item["fate"] == "lost"}
    assert lost - {"loop"} == {"gen", "again", "thread", "odd", "glob"}
    assert back.loaded["outcome"] == "partial"


def test_tombstones_raise_one_sentence_and_let_go(start: Start, again: Start) -> None:
    back = again(start().cells("x = 1", "gen = (i for i in range(3)); box = [gen]"))
    uses = (
        "next(gen)", "iter(gen)", "gen()", "gen.send", "gen[0]", "gen + 1", "1 + gen", "bool(gen)", "len(gen)", "-gen", "1 in gen",
        "gen.x", "setattr(gen, 'x', 1)", "gen < 1", "int(gen)", "list(gen)", "exec('with gen: pass')", "exec('gen[0] = 1')",
        "__import__('asyncio').run(__import__('asyncio').wait_for(gen, 1))", "gen @ gen", "abs(gen)", "exec('g = gen; g += 1')",
    )  # fmt: skip
    for use in uses:
        back.cells(
            f"try:\n    {use}\n    caught = None\nexcept Exception as error:\n    caught = type(error).__name__, str(error)"
        )
        kind, text = back.value("caught")
        assert kind == "LostObjectError", (use, kind, text)
        assert "gen (generator), made in cell 2," in text and "run that cell again" in text and text.endswith(".")
    back.true("isinstance(gen, object) and not isinstance(gen, list)", "gen in {gen: 1}", "gen == gen and gen != 1")
    back.true("'lost' in repr(gen) and 'lost' in f'{gen}'", "not hasattr(gen, '_repr_html_')")
    back.true(
        "__import__('copy').deepcopy(box)[0] is gen", "__import__('pickle').loads(__import__('pickle').dumps(1)) == 1"
    )
    back.cells("gen = 5", "del box[0]")
    back.true("gen == 5 and box == []")


def test_a_second_pause_does_not_ask_about_old_losses(start: Start, again: Start) -> None:
    first = again(start().cells("gen = (i for i in range(3)); box = {'g': gen}; x = 2"))
    _, answer = first.capture()
    assert answer["result"]["losses"] == []
    second = again(first)
    second.true("'did not come back' in repr(gen) and box['g'] is gen and x == 2")
    assert second.scan()["losses"] == []
    assert [loss["path"] for loss in second.loaded["losses"]] == ["gen"]


def test_objects_on_which_the_pickler_itself_gives_up(start: Start, again: Start) -> None:
    back = again(
        start().cells(
            "class Liar:\n    @property\n    def __class__(self): return int\nliar = [Liar()]",
            "class Items(dict):\n    def items(self): raise RuntimeError('no items')\nitems = {'i': Items(a=1), 'n': 4}",
            "class Wrong:\n    def __reduce__(self): return (Wrong, (), None, 5)\nwrong = [Wrong()]",
            "class Never:\n    def __reduce__(self): return (Never, (), {1: (i for i in '')})\n    def __setstate__(self, s): raise KeyError('s')\nnever = [Never()]",
            "good = {'x': [1, 2]}; also = good",
        )
    )
    back.true(
        "good == {'x': [1, 2]} and also is good", "items['n'] == 4", "type(never) is list and type(wrong) is list"
    )
    assert {"items", "wrong", "never"} <= {loss["name"] for loss in back.loaded["losses"]}


def test_a_recipe_that_fails_on_load_costs_only_itself(start: Start, again: Start) -> None:
    back = again(
        start().cells(
            "import numpy as np; first = np.arange(20_000)",
            "def fails(a): raise TypeError(a)\nclass Once:\n    def __reduce__(self): return fails, ('no',)\nonce = {'e': Once(), 'big': np.arange(30_000), 'n': [1]}",
            "shared = once['n']; after = np.arange(40_000); ref = once['big']; tail = [once]",
        )
    )
    back.true(
        "shared is once['n'] and shared == [1]",
        "after[39_999] == 39_999 and ref is once['big'] and ref[29_999] == 29_999",
    )
    back.true("tail[0] is once and first[7] == 7")
    assert [loss["path"] for loss in back.loaded["losses"]] == ['once["e"]']
    assert "TypeError" in back.loaded["losses"][0]["reason"]
    assert back.loaded["outcome"] == "partial" and back.loaded["mismatched"] == []


def test_a_lying_recipe_is_noticed(start: Start, again: Start) -> None:
    back = again(
        start().cells(
            "def give(): return 'not a list'\nclass Lies(list):\n    def __reduce__(self): return give, ()",
            "class Plainly(list):\n    def __reduce__(self): return (str, ('not a list',))\nplainly = Plainly()",
            "import numpy as np\nclass Wrong:\n    n = 0\nimport copyreg",
            "text = 'fine'; lies = Lies([1])",
        )
    )
    assert "lies" in back.loaded["mismatched"]
    assert [loss["path"] for loss in json.loads((back.folder / "manifest.json").read_bytes())["losses"]] == ["plainly"]
    assert back.loaded["outcome"] == "partial" and "text" not in back.loaded["mismatched"]


def test_S02_star_imports_and_redefined_classes(start: Start, again: Start) -> None:
    pytest.importorskip("numpy")
    back = again(
        start().cells(
            "from numpy import *", "class A:\n    n = 1\nold = A()", "class A:\n    n = 2\nnew = A(); data = arange(5)"
        )
    )
    back.true("old.n == 1 and new.n == 2 and type(old) is not A", "data.sum() == 10 and sqrt(16.0) == 4.0")
    assert back.loaded["losses"] == []


def test_variables_changed_by_a_thread_while_they_are_saved(start: Start, again: Start) -> None:
    saved = start().cells(
        "import threading; d = {i: str(i) for i in range(50_000)}; stop = False; x = [1]",
        "def churn():\n    n = 0\n    while not stop:\n        n += 1; d[n % 60_000] = n; d.pop((n * 7) % 60_000, None)\n"
        "t = threading.Thread(target=churn, daemon=True); t.start()",
    )
    back = again(saved)
    back.true("x == [1]")
    assert "t" in {loss["name"] for loss in back.loaded["losses"]}


def test_the_manifest_can_be_read_without_unpickling(start: Start) -> None:
    folder = (
        start()
        .cells("x = [1, 2]; gen = (i for i in ''); import threading; lock = threading.Lock()\nclass C: pass")
        .save()
    )
    found = manifest(folder)
    by_name = {variable["name"]: variable for variable in found["variables"]}
    assert by_name["x"]["type"] == "list" and by_name["x"]["fate"] == "in checkpoint" and by_name["x"]["bytes"] > 0
    assert by_name["gen"]["fate"] == "lost" and by_name["gen"]["kind"] == "tombstone" and by_name["gen"]["reason"]
    assert (
        by_name["lock"]["fate"] == "rebuilt"
        and by_name["C"]["kind"] == "class"
        and by_name["threading"]["kind"] == "module"
    )
    assert "In" not in by_name and found["python"]["magic"] and found["format"] == 1


def test_the_scan_is_sliced_and_changes_nothing(start: Start) -> None:
    process = start().cells(
        "rows = [(i, [i]) for i in range(150_000)]; import io; f = open('x', 'w'); f.write('unflushed')",
        "class Counts:\n    asked = 0\n    def __getstate__(self): Counts.asked += 1; return {}\nc = Counts()",
    )
    answer = process.ask("scan")
    assert answer["slices"] > 3
    rows = next(v for v in answer["result"]["variables"] if v["name"] == "rows")
    assert rows["complete"] and rows["bytes"] > 150_000 * 100
    process.true("open('x').read() == ''", "len(rows) == 150_000")
