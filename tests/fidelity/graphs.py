# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: B905, UP031  (a cell that also runs under older Pythons)
"""Builds a graph of objects from a plan, and says what a graph looks like: run as a cell in both processes of a test.

A plan is a list of nodes ``[kind, numbers of other nodes, a number]``. Nodes may refer to any other, so there are
shared objects and cycles; immutable ones refer to earlier nodes only. `describe` walks from the root and numbers
objects in the order in which it meets them, so two descriptions are equal when types, values and who-is-who are.
"""

import array
import collections
import weakref

import numpy as np


class Node:
    """An ordinary object."""


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("left", "right")


class Upper(dict):
    """Changes what is put into it."""

    def __setitem__(self, key, value):
        super().__setitem__("changed " + str(key), value)


class Loud(list):
    """Refuses what the unpickler would call."""

    def append(self, value):
        raise TypeError("append")

    extend = append


class Tagged(np.ndarray):
    """An array with an attribute."""


class Bad(Exception):
    """Takes other arguments than it hands on."""

    def __init__(self, first, second):
        super().__init__(first)
        self.second = second


def adder(inside):
    """A closure."""

    def get():
        return inside

    return get


def parts(objects, references, number):
    """The objects that a node refers to."""
    return [objects[index % len(objects)] for index in references] if objects else []


MUTABLE = {
    "list": list,
    "dict": dict,
    "node": Node,
    "slotted": Slotted,
    "upper": Upper,
    "loud": Loud,
    "deque": collections.deque,
    "objects": lambda: np.empty(3, object),
}


def make(kind, earlier, number):
    """One node, still empty where it can change."""
    if kind in MUTABLE:
        return MUTABLE[kind]()
    arrays = [item for item in earlier if isinstance(item, np.ndarray) and item.dtype != object and item.size > 2]
    buffers = [item for item in earlier if type(item) in (bytearray, array.array)]
    if kind == "array":
        return np.arange(number % 50 + 3, dtype="i8")
    if kind == "large":
        return np.arange(5000 + number, dtype="f8")
    if kind == "view":
        return arrays[number % len(arrays)][number % 2 :: 1 + number % 2] if arrays else np.zeros(4)
    if kind == "tagged":
        return (arrays[number % len(arrays)] if arrays else np.zeros(4)).view(Tagged)
    if kind == "masked":
        under = arrays[number % len(arrays)] if arrays else np.zeros(4)
        return np.ma.MaskedArray(under, mask=np.arange(under.size) % 3 == 0)
    if kind == "bytes":
        return bytearray(range(number % 60 + 4))
    if kind == "numbers":
        return array.array("q", range(number % 9 + 2))
    if kind == "over":
        return np.frombuffer(buffers[number % len(buffers)], "u1") if buffers else np.zeros(4)
    if kind == "memory":
        return memoryview(buffers[number % len(buffers)]) if buffers else memoryview(bytearray(4))
    if kind == "tuple":
        return (*earlier[-2:], number)
    if kind == "closure":
        return adder(earlier[number % len(earlier)] if earlier else number)
    if kind == "method":
        owners = [item for item in earlier if type(item) is list]
        return owners[number % len(owners)].append if owners else [].append
    if kind == "weak":
        targets = [item for item in earlier if type(item) is Node]
        return weakref.ref(targets[number % len(targets)]) if targets else number
    if kind == "error":
        return Bad(number, earlier[-1] if earlier else None)
    if kind == "iterator":
        return iter([number, 1, 2])
    return (number, str(number), float(number), None, b"x")[number % 5]


def fill(item, inside, number):
    """Put the references in."""
    kind = type(item)
    if kind is list or kind is collections.deque:
        item.extend(inside)
    elif kind is Loud:
        list.extend(item, inside)
    elif kind is dict or kind is Upper:
        for place, value in enumerate(inside):
            item["k%d" % place] = value
    elif kind is Node or kind is Slotted:
        for name, value in zip(("left", "right"), inside):
            setattr(item, name, value)
    elif kind is Tagged:
        item.tag = inside
    elif kind is np.ndarray and item.dtype == object:
        for place, value in enumerate(inside[:3]):
            item[place] = value


def build(plan):
    """All nodes; the list of them is the root."""
    objects = []
    for kind, _, number in plan:
        objects.append(make(kind, objects, number))
    for item, (_, references, number) in zip(objects, plan):
        fill(item, parts(objects, references, number), number)
    return objects


def touch(objects):
    """Change everything that can change, so that whoever shares it shows it."""
    for number, item in enumerate(objects):
        if isinstance(item, np.ndarray) and item.dtype != object and item.size and item.flags.writeable:
            np.asarray(item)[0] = number + 100
        elif type(item) in (bytearray, array.array) and len(item):
            item[-1] = number % 100
        elif type(item) is memoryview and not item.readonly and item.nbytes:
            item.cast("B")[1 % item.nbytes] = number % 100
        elif type(item) is Node:
            item.touched = number
        elif callable(item) and getattr(item, "__name__", "") == "append":
            item(number)


def describe(root):
    """A text that is equal for graphs that are equal."""
    numbers, keep, lines, line = {}, [], [], [root]

    def mention(item):
        if type(item) in (int, float, str, bytes, type(None), bool):
            return repr(item)
        if id(item) not in numbers:
            numbers[id(item)] = len(numbers)
            keep.append(item)
            line.append(item)
        return "#%d" % numbers[id(item)]

    mention(root)
    line.pop()
    while line:
        item = line.pop(0)
        text = [type(item).__name__]
        if isinstance(item, dict):
            text += ["%s=%s" % (key, mention(value)) for key, value in dict.items(item)]
        elif isinstance(item, (list, tuple, collections.deque)):
            text += [mention(value) for value in item]
        elif isinstance(item, np.ndarray):
            plain = np.ma.getdata(item) if isinstance(item, np.ma.MaskedArray) else np.asarray(item)
            text += [str(item.dtype), str(item.shape), str(item.flags.writeable)]
            text += (
                [mention(value) for value in plain.flat] if plain.dtype == object else [plain.tobytes().hex()[:4000]]
            )
            if isinstance(item, np.ma.MaskedArray):
                text.append(item.mask.tobytes().hex())
            if type(item) is Tagged:
                text.append(mention(getattr(item, "tag", None)))
        elif isinstance(item, (bytearray, array.array, memoryview)):
            text.append(bytes(item).hex())
        elif isinstance(item, Exception):
            text += [repr(item.args), mention(item.second)]
        elif isinstance(item, weakref.ref) or type(item).__name__ == "function":
            text.append(mention(item()))
        elif type(item).__name__ == "builtin_function_or_method":
            text.append(mention(item.__self__))
        elif type(item).__name__ == "list_iterator":
            text.append(repr(item.__reduce__()[1:]))
        else:
            names = sorted(getattr(item, "__dict__", {}) or [n for n in ("left", "right") if hasattr(item, n)])
            text += ["%s=%s" % (name, mention(getattr(item, name))) for name in names]
        lines.append(" ".join(text))
    return "\n".join(lines)
