# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A scan looks at objects without running what their classes bring along: sizes, lengths, properties, look-ups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .engine import Process

RECORDING = """
calls = []

def told(name, answer):
    def method(self, *arguments):
        calls.append((type(self).__qualname__, name))
        return answer
    return method

def recording(base):
    def look_up(self, name):
        calls.append((type(self).__qualname__, "__getattr__", name))
        raise AttributeError(name)
    body = {"__sizeof__": told("__sizeof__", 7), "nbytes": property(told("nbytes", 7)), "__len__": told("__len__", 1)}
    body["__class__"] = property(told("__class__", int))
    body.update(__getattr__=look_up, __hash__=told("__hash__", 1), __eq__=told("__eq__", False))
    body["__repr__"] = told("__repr__", "?")
    return type("Recording" + base.__name__.title(), (base,), body)
"""


@pytest.mark.parametrize(
    "made",
    ["object, ()", "dict, ({'a': [1]},)", "list, ([[1], [2]],)", "str, ('text',)", "np.ndarray, ((1 << 18,),)"],
)
def test_a_scan_runs_no_code_of_the_objects(start: Callable[..., Process], made: str) -> None:
    there = start().cells("import numpy as np", RECORDING, f"base, given = {made}\nvalue = recording(base)(*given)")
    there.cells("held = {'inside': [value]}", "calls.clear()")
    found = {item["name"]: item for item in there.scan()["variables"]}
    assert there.value("[call for call in calls]") == []
    assert found["value"]["fate"] == "in checkpoint"
