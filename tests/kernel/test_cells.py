# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which cell made a thing, read from the history."""

from __future__ import annotations

import pytest

from jupyter_pause.kernel.cells import cell_naming, cells_binding

BINDINGS = [
    "x = 1",
    "x += 1",
    "x: int = 1",
    "(a, x), *b = [(1, 2)]",
    "for x in range(3): pass",
    "with open('f') as x: pass",
    "import x",
    "import x.y",
    "import y as x",
    "from y import z as x",
    "def x(): pass",
    "async def x(): pass",
    "class x: pass",
    "if (x := 3): pass",
    "[x := n for n in range(3)]",
    "try:\n    x = 1\nexcept ValueError:\n    pass",
]
NO_BINDINGS = [
    "print(x)",
    "def f():\n    x = 1",
    "class C:\n    x = 1",
    "[x for x in range(3)]",
    "lambda x: x",
    "x.attribute = 1",
    "x[0] = 1",
    "x = = 1",
    "'x'",
]


@pytest.mark.parametrize("source", BINDINGS)
def test_finds_the_cell_that_bound_a_name(source: str) -> None:
    assert cells_binding({"x"}, ["", "z = 0", source, "print(x)"]) == {"x": 2}


@pytest.mark.parametrize("source", NO_BINDINGS)
def test_does_not_take_other_mentions_for_a_binding(source: str) -> None:
    assert cells_binding({"x"}, ["", source]) == {}


def test_the_last_of_several_cells_counts() -> None:
    assert cells_binding({"x", "y"}, ["", "x = 1", "x = 2; y = 1", "pass"]) == {"x": 2, "y": 2}


@pytest.mark.parametrize(
    "source",
    [
        'os.environ["API_TOKEN"] = value',
        "os.environ.update({'API_TOKEN': value})",
        "get_ipython().run_line_magic('env', 'API_TOKEN=abc')",
        "get_ipython().run_line_magic('env', 'API_TOKEN abc')",
    ],
)
def test_finds_the_cell_that_set_an_environment_variable(source: str) -> None:
    assert cell_naming("API_TOKEN", ["", "x = 1", source, "API_TOKEN = 1"]) == 2


def test_an_unknown_origin_is_unknown() -> None:
    assert cell_naming("API_TOKEN", ["", "load()", None, "not ( python"]) is None
