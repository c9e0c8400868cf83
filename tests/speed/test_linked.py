# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""Chains of 100,000 nodes: pickling one is as deep as the chain is long, and no recursion limit stops us."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checkpoint.engine import Process, python
from tests.kernel.livekernel import LiveKernel

COUNT = 100_000
DEPTH = "def depth(item, step):\n    n = 0\n    while item:\n        item = step(item); n += 1\n    return n"
CLASSES = (
    "class Link:\n    def __init__(self, value, next=None): self.value = value; self.next = next; self.before = None"
)
SLOTS = "class Slim:\n    __slots__ = ('next',)\n    def __init__(self, next): self.next = next"
TREE = "import collections; Pair = collections.namedtuple('Pair', 'left right')"
#: name -> (cells, expression that is COUNT afterwards)
CHAINS = {
    "lists": ([f"deep = []\nfor _ in range({COUNT}): deep = [deep]"], "depth(deep, lambda item: item[0])"),
    "dicts": (
        [f"chain = {{}}\nfor _ in range({COUNT}): chain = {{'next': chain}}"],
        "depth(chain, lambda item: item['next'])",
    ),
    "objects in both directions": (
        [
            CLASSES,
            f"head = None\nfor n in range({COUNT}):\n    new = Link(n, head)\n    if head: head.before = new\n    head = new",
        ],
        "depth(head, lambda item: item.next) if head.next.before is head else 0",
    ),
    "objects with slots": (
        [SLOTS, f"slim = None\nfor _ in range({COUNT}): slim = Slim(slim)"],
        "depth(slim, lambda item: item.next)",
    ),
    "named tuples": (
        [TREE, f"pair = None\nfor n in range({COUNT}): pair = Pair(pair, n)"],
        "depth(pair, lambda item: item.left)",
    ),
}


@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.12", "3.14"])
def test_all_chains_come_back_under_every_kind_of_python(
    start: Callable[..., Process], again: Callable[..., Process], minor: str
) -> None:
    """Before 3.12 C code may recurse as deep as the limit says, in 3.12 and 3.13 never deep, later as its stack allows."""
    cells = [DEPTH, *(cell for texts, _ in CHAINS.values() for cell in texts)]
    before = start(python(minor)).cells(*cells)
    assert before.scan()["losses"] == []
    new = again(before, python(minor))
    assert new.loaded["outcome"] == "restored", new.loaded["losses"]  # type: ignore[attr-defined]
    for name, (_, expression) in CHAINS.items():
        assert new.value(expression) == COUNT, name


def test_a_chain_comes_back_in_a_real_kernel(kernel: LiveKernel) -> None:
    for text in (DEPTH, *CHAINS["objects in both directions"][0], *CHAINS["lists"][0]):
        assert kernel.execute(text).status == "ok"
    result = kernel.resume(kernel.save())
    assert result["outcome"] == "restored", result["losses"]
    assert kernel.value(CHAINS["objects in both directions"][1]) == str(COUNT)
    assert kernel.value(CHAINS["lists"][1]) == str(COUNT)
