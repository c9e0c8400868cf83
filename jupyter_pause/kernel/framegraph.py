# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Reads pickle frames as a graph of recipes, without making a single object: says where in a variable an object lies.

It is needed for objects that came back as something else, which can no longer be found by looking for them.
"""

from __future__ import annotations

import pickle
from collections import deque
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .reducing import key_text

#: A path longer than this is only the variable's name.
LONGEST_PATH = 400


class Node:
    """What one recipe makes: called, with what, and what is put in afterwards."""

    __slots__ = ("arguments", "items", "maker", "pairs", "state")

    def __init__(self, maker: Any, arguments: Tuple[Any, ...] = ()) -> None:
        self.maker = maker
        self.arguments = arguments
        self.state: Any = None
        self.items: List[Any] = []
        self.pairs: List[Tuple[Any, Any]] = []

    @property
    def is_ours(self) -> bool:
        """Whether the engine's own code would be called."""
        maker = self.maker.maker if type(self.maker) is Node else self.maker
        return isinstance(maker, str) and maker.startswith(__name__.partition(".")[0] + ".")


#: Python's own unpickler in Python; its parts are what subclasses override.
_Slow: Any = pickle._Unpickler


class _GraphUnpickler(_Slow):  # type: ignore[misc]
    """Goes through frames in their order, with one memo."""

    dispatch = dict(_Slow.dispatch)  # noqa: RUF012  (what the base class looks in)

    def find_class(self, module: str, name: str) -> Any:
        """A name, not what it stands for."""
        return Node("%s.%s" % (module, name))

    def load_reduce(self) -> None:
        """A recipe is noted, not followed; one of ours that gives its state to what lies below it does so."""
        arguments = self.stack.pop()
        made = self.stack[-1] = Node(self.stack[-1], arguments if type(arguments) is tuple else (arguments,))
        below = self.stack[-2] if len(self.stack) > 1 else None
        if type(below) is Node and len(made.arguments) == 2 and made.arguments[0] is below and made.is_ours:
            below.state = made.arguments[1]

    def load_newobj(self) -> None:
        """An instance; its class is not one of its parts."""
        arguments = self.stack.pop()
        self.stack[-1] = Node(self.stack[-1], arguments)

    def load_newobj_ex(self) -> None:
        """The same with keywords."""
        keywords, arguments = self.stack.pop(), self.stack.pop()
        self.stack[-1] = Node(self.stack[-1], (*arguments, *keywords.values()))

    def load_build(self) -> None:
        """Its state."""
        state = self.stack.pop()
        if type(self.stack[-1]) is Node:
            self.stack[-1].state = state

    def _append(self, items: List[Any]) -> None:
        target = self.stack[-1]
        (target if type(target) is list else target.items).extend(items)

    def load_append(self) -> None:
        """One item."""
        item = self.stack.pop()
        self._append([item])

    def load_appends(self) -> None:
        """Many items."""
        items = self.pop_mark()
        self._append(items)

    def load_additems(self) -> None:
        """Items of a set."""
        items = self.pop_mark()
        target = self.stack[-1]
        target.update(items) if type(target) is set else target.items.extend(items)

    def _set(self, pairs: List[Tuple[Any, Any]]) -> None:
        target = self.stack[-1]
        if type(target) is dict:
            target.update(pairs)
        else:
            target.pairs.extend(pairs)

    def load_setitem(self) -> None:
        """One key and value."""
        value, key = self.stack.pop(), self.stack.pop()
        self._set([(key, value)])

    def load_setitems(self) -> None:
        """Many keys and values."""
        items = self.pop_mark()
        self._set(list(zip(items[::2], items[1::2])))

    def load_next_buffer(self) -> None:
        """Raw memory is not looked at."""
        self.append(Node("buffer"))

    def load_readonly_buffer(self) -> None:
        """Nor is whether it may be written to."""

    for _opcode, _method in (
        (pickle.REDUCE, load_reduce),
        (pickle.NEWOBJ, load_newobj),
        (pickle.NEWOBJ_EX, load_newobj_ex),
        (pickle.BUILD, load_build),
        (pickle.APPEND, load_append),
        (pickle.APPENDS, load_appends),
        (pickle.ADDITEMS, load_additems),
        (pickle.SETITEM, load_setitem),
        (pickle.SETITEMS, load_setitems),
        (pickle.NEXT_BUFFER, load_next_buffer),
        (pickle.READONLY_BUFFER, load_readonly_buffer),
    ):
        dispatch[_opcode[0]] = _method
    del _opcode, _method


class FrameGraph:
    """The frames read so far. `file` is what the frames are opened in (`revive.FrameFile`)."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._reader = _GraphUnpickler(file)
        self._roots: Dict[str, Any] = {}
        self._paths: Dict[str, Dict[int, str]] = {}

    def add(self, data: Any) -> Any:
        """Read the next frame; returns what it holds. Raises what a damaged pickle makes the unpickler raise."""
        self._file.open(data)
        name, value = self._reader.load()[:2]
        self._roots[str(name).partition(":")[2]] = value
        return value

    def path(self, variable: str, node: Any) -> Optional[str]:
        """The shortest way from a variable to an object of it; None where there is none."""
        paths = self._paths.get(variable)
        if paths is None:
            paths = self._paths[variable] = {}
            if variable in self._roots:
                paths.update((id(found), path) for path, found in _walk(variable, self._roots[variable]))
        return paths.get(id(node))


def _walk(name: str, root: Any) -> Iterator[Tuple[str, Any]]:
    """Parts of a graph, nearest first, each once."""
    seen = {id(root)}
    keep = [root]
    line = deque([(name, root)])
    yield name, root
    while line:
        path, current = line.popleft()
        if len(path) > LONGEST_PATH:
            continue
        for suffix, child in _inside(current):
            if type(child) not in (Node, dict, list, tuple, set, frozenset) or id(child) in seen:
                continue
            seen.add(id(child))
            keep.append(child)
            yield path + suffix, child
            line.append((path + suffix, child))


def _inside(value: Any) -> List[Tuple[str, Any]]:
    cls = type(value)
    if cls is dict:
        return [("[%s]" % key_text(key), item) for key, item in value.items()] + [(".keys()", key) for key in value]
    if cls in (list, tuple):
        return [("[%d]" % index, item) for index, item in enumerate(value)]
    if cls in (set, frozenset):
        return [("{...}", item) for item in value]
    arguments = value.arguments
    found = [("" if len(arguments) == 1 else ".args[%d]" % i, item) for i, item in enumerate(arguments)]
    found += _inside_state(value.state)
    found += [("[%d]" % index, item) for index, item in enumerate(value.items)]
    return found + [("[%s]" % key_text(key), item) for key, item in value.pairs] + [(".__class__", value.maker)]


def _inside_state(state: Any) -> List[Tuple[str, Any]]:
    parts = state if type(state) is tuple and len(state) == 2 and type(state[1]) in (dict, type(None)) else (state,)
    found: List[Tuple[str, Any]] = []
    for part in parts:
        if type(part) is dict:
            inner: Any = part.get("attributes")
            inner = inner if type(inner) is dict else {}  # a class of the notebook
            found += [("." + str(name), item) for name, item in [*inner.items(), *part.items()]]
        elif part is not None:
            found.append((".state", part))
    return found
