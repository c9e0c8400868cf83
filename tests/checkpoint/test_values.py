# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""Plain data, shared references, NumPy memory: what was one object stays one object."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernel import pythons

from .engine import Process, manifest, python

Start = Callable[..., Process]


def test_S01_a_token_and_a_million_numbers(start: Start, again: Start) -> None:
    saved = start().cells("import uuid; token = uuid.uuid4().hex; data = list(range(10**6))")
    token = saved.value("token")
    back = again(saved)
    assert back.value("token") == token
    back.true("len(data) == 10**6", "sum(data) == sum(range(10**6))")
    assert back.loaded["outcome"] == "restored"
    assert back.loaded["mismatched"] == [] and back.loaded["compared"] >= 3


def test_references_are_shared_across_variables(start: Start, again: Start) -> None:
    back = again(
        start().cells(
            "shared = [1]; a = {'x': shared}; b = shared; c = (a, b)",
            "loop = []; loop.append(loop); s = {1, 2}; key = (1, 'k'); d = {key: s}; e = frozenset([key])",
            "Out = {3: b}; names = globals()",
        )
    )
    back.true("a['x'] is b is shared is Out[3]", "c[0] is a", "loop[0] is loop", "list(d)[0] is key", "d[key] is s")
    back.true("names is globals()")
    back.cells("shared.append(2)")
    back.true("a['x'] == [1, 2]")


def test_what_looks_at_a_part_of_memory_with_gaps_is_right_and_shares(start: Start, again: Start) -> None:
    """An array of a type of its own keeps the view it was made of as its base, and that may leave elements out."""
    pytest.importorskip("numpy")
    saved = start().cells(
        "import numpy as np",
        "class Tagged(np.ndarray): pass",
        "base = np.arange(12.); every = base[1::2]; tagged = every.view(Tagged); part = tagged[1::2]; tail = tagged[3:]",
        "alone = np.arange(9)[::-3].view(Tagged); of_alone = alone[1:]",
        "under = np.zeros(5).view(Tagged); masked = np.ma.MaskedArray(under, mask=[0, 1, 0, 1, 0])",
        "window = np.lib.stride_tricks.sliding_window_view(base, 3)",
    )
    values = [saved.value(f"{name}.tolist()") for name in ("part", "tail", "of_alone", "window")]
    for _ in range(2):  # the second checkpoint is of views that we made
        back = again(saved)
        assert [back.value(f"{name}.tolist()") for name in ("part", "tail", "of_alone", "window")] == values
        back.true("type(part) is type(tail) is type(of_alone) is Tagged", "masked.mask.tolist() == [0, 1, 0, 1, 0]")
        back.true("np.shares_memory(window, base)", "np.shares_memory(under, masked)", "type(masked.data) is Tagged")
        back.cells("kept = base[3]; base[3] = -7; under[0] = 4; alone[1] += 0")
        back.true("part[0] == tagged[1] == window[1, 2] == -7", "masked[0] == 4", "np.shares_memory(of_alone, alone)")
        back.cells("base[3] = kept")
        saved = back


def test_numpy_views_stay_views_of_the_same_memory(start: Start, again: Start) -> None:
    pytest.importorskip("numpy")
    back = again(
        start().cells(
            "import numpy as np",
            "big = np.arange(1_000_000.); part = big[10:500:2]; backwards = big[::-1]; square = big.reshape(1000, 1000)",
            "overlap = (big[100:200000], big[150000:400000]); bytes_ = big.view('u1'); broad = np.broadcast_to(big[:3], (4, 3))",
            "small = np.arange(10); tail = small[5:]; turned = small[::-1]",
            "fortran = np.asfortranarray(np.arange(90000.).reshape(300, 300)); corner = fortran[3:, ::2]",
            "objects = np.array([[1], None, objects_ := [2]], dtype=object); some = objects[1:]",
            "fixed = np.arange(5000.); fixed.flags.writeable = False; look = fixed[3:9]",
            "when = np.array(['2026-01-01', 'NaT'], 'M8[D]'); words = np.array(['a', 'bc']); none = np.empty((0, 3))",
            "rec = np.zeros(3000, [('a', 'i4'), ('b', 'f8')]); field = rec['b']; scalar = np.float32(1.5); zero = np.array(7)",
        )
    )
    back.cells("big[10] = -1; small[9] = 77; fortran[3, 2] = -5; rec['b'][4] = 9; big[160000] = -3; objects[1] = 'x'")
    back.true("part[0] == -1", "backwards[-11] == -1", "square[0, 10] == -1", "bytes_[80:88].view('f8')[0] == -1")
    back.true("overlap[0][159900] == -3", "overlap[1][10000] == -3", "np.shares_memory(broad, big)")
    back.true("tail[4] == 77", "turned[0] == 77", "small.flags.owndata", "corner[0, 1] == -5", "field[4] == 9")
    back.true("some[0] == 'x'", "objects[2] is objects_", "fortran.flags.f_contiguous", "not broad.flags.writeable")
    back.true("not fixed.flags.writeable", "not look.flags.writeable", "np.shares_memory(fixed, look)")
    back.true("when[0] == np.datetime64('2026-01-01')", "np.isnat(when[1])", "list(words) == ['a', 'bc']")
    back.true("none.shape == (0, 3)", "type(scalar) is np.float32 and scalar == 1.5", "zero.shape == () and zero == 7")
    assert back.loaded["mismatched"] == []
    sizes = [sum(chunk["bytes"] for chunk in region["chunks"]) for region in manifest(back.folder)["regions"]]
    assert sum(sizes) < 8_000_000 + 720_000 + 36_000 + 50_000, "each byte is stored once"


@pytest.mark.parametrize("items", [3_000, 400_000])
def test_equal_arrays_that_were_two_stay_two(start: Start, again: Start, items: int) -> None:
    cell = f"import numpy as np\na, b, c = (np.arange({items}.0) for _ in range(3))"
    back = again(start().cells(cell)).cells("a[0] = 7; b[0] = 8")
    assert back.value("[float(x[0]) for x in (a, b, c)]") == [7.0, 8.0, 0.0]


def test_a_second_pause_of_mapped_arrays(start: Start, again: Start) -> None:
    pytest.importorskip("numpy")
    first = again(start().cells("import numpy as np; x = np.arange(100_000); y = x[5:]; x[7] = -1"))
    first.cells("x[8] = -2")
    second = again(first)
    second.true("x[7] == -1 and x[8] == -2 and y[3] == -2", "np.shares_memory(x, y)", "int(x[99_999]) == 99_999")


def test_memmap_comes_back_on_its_file(start: Start, again: Start) -> None:
    pytest.importorskip("numpy")
    saved = start().cells(
        "import numpy as np",
        "mm = np.memmap('m.bin', 'i4', 'w+', shape=(1000,)); mm[:] = 3; part = mm[10:20]",
        "private = np.memmap('m.bin', 'i4', 'c', shape=(1000,)); mm.flush(); private[0] = 99",
    )
    back = again(saved)
    back.cells("mm[11] = 8; mm.flush()")
    back.true("type(mm) is np.memmap and mm.mode == 'r+'", "part[1] == 8", "private[0] == 99 and private[1] == 3")
    back.true("np.fromfile('m.bin', 'i4')[11] == 8 and np.fromfile('m.bin', 'i4')[0] == 3")


def test_pandas_frames(start: Start, again: Start) -> None:
    pytest.importorskip("pandas")
    back = again(
        start().cells(
            "import pandas as pd, numpy as np",
            "df = pd.DataFrame({'a': np.arange(50_000), 'b': 'text', 'c': pd.Categorical(['x', 'y'] * 25_000)})",
            "column = df['a']; index = pd.date_range('2026-01-01', periods=5, tz='Europe/Berlin')",
        )
    )
    back.true("df.a.sum() == sum(range(50_000))", "df.c.dtype == 'category'", "str(index.tz) == 'Europe/Berlin'")
    back.true("list(df.columns) == ['a', 'b', 'c']", "np.shares_memory(column.to_numpy(), df['a'].to_numpy())")


@pytest.mark.parametrize("number", [0, 1])
def test_numpy_data_moves_between_pythons_and_numpy_versions(start: Start, again: Start, number: int) -> None:
    other = pythons.other(number)
    cells = (
        "import numpy as np; big = np.arange(50_000.); view = big[::2]; small = np.eye(3, dtype='f4'); s = np.int16(4)",
        "obj = np.array([{'a': 1}, None], dtype=object); rec = np.zeros(2, [('a', 'i4')]); gen = np.random.default_rng(1)",
    )
    check = (
        "big[2] == 2 and view[1] == 2 and np.shares_memory(big, view)",
        "small.trace() == 3 and s == 4",
        "obj[0] == {'a': 1}",
    )
    there = again(start().cells(*cells), other)
    there.true(*check, "rec['a'].sum() == 0")
    back = again(there)
    back.true(*check)
    assert back.loaded["losses"] == [] and back.loaded["mismatched"] == []


def test_random_numbers_go_on_where_they_were(start: Start, again: Start) -> None:
    pytest.importorskip("numpy")
    saved = start().cells("import random, numpy as np; random.seed(4); np.random.seed(4); random.gauss(0, 1)")
    saved.cells("own = random.Random(7); own.random(); gen = np.random.default_rng(3)")
    folder = saved.save()
    draw = "(random.random(), random.gauss(0, 1), float(np.random.rand()), own.random(), float(gen.random()))"
    expected = saved.value(draw)
    saved.end()
    new = start()
    new.load(folder)
    assert new.value(draw) == expected


def test_numpy_is_not_imported_for_those_who_did_not(start: Start, again: Start) -> None:
    back = again(start().cells("x = [1]"))
    back.true("'numpy' not in __import__('sys').modules")


@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.12", "3.13"])
def test_deep_nesting(start: Start, again: Start, minor: str) -> None:
    cells = (
        "deep = []\nfor i in range(100_000): deep = [deep]",
        "class Node:\n    def __init__(self, to): self.to = to\nchain = None\nfor i in range(30_000): chain = Node(chain)",
        "x = 5",
    )
    back = again(start(python(minor)).cells(*cells), python(minor))
    back.cells("n = 0\nwhile deep: deep = deep[0]; n += 1", "m = 0\nwhile chain: chain = chain.to; m += 1")
    back.true("n == 100_000", "m == 30_000", "x == 5")


def test_big_frames_are_streamed(start: Start, again: Start) -> None:
    back = again(
        start().cells(
            "text = 'abc' * 4_000_000; raw = bytes(range(256)) * 40_000; rows = [(i, -i) for i in range(400_000)]"
        )
    )
    back.true("text == 'abc' * 4_000_000", "raw == bytes(range(256)) * 40_000", "rows[399_999] == (399_999, -399_999)")
    assert {frame["encoding"] for frame in manifest(back.folder)["frames"]} == {"plain", "zlib"}
