# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What would become of every variable, and how large it is, found in short slices and without writing anything.

It asks the same `Reducer` as the capture does, so both say the same. Containers are walked by iterators and never
copied; ids of visited objects are kept so that shared objects count once.
"""

from __future__ import annotations

import gc
import sys
import time
import types
from collections import deque
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from . import arrays, capture, losses, settings, sizes
from .inside import attributes_of
from .reducing import Lost, Reducer, children, inside_recipe, key_text, reason_of
from .revivers import Help
from .sizes import ATOMS
from .tombstone import loss_of

#: More objects than this are not looked at: sizes are then "at least".
MOST_OBJECTS = 4_000_000
#: Items handled between two looks at the clock.
BATCH = 200

#: A path is kept as (path before, kind of step, step) and only put together for a loss.
Path = Optional[Tuple[Any, str, Any]]


class _Frame:
    """One container being walked; `kind` is dict, list, set, or inside (pairs of path suffix and object)."""

    __slots__ = ("items", "kind", "name", "path", "position")

    def __init__(self, items: Iterator[Any], kind: str, path: Path) -> None:
        self.items = items
        self.kind = kind
        self.path = path
        self.position = -1
        self.name: Any = None

    def next(self) -> Any:
        """The next child. Raises StopIteration, RuntimeError (changed meanwhile)."""
        item = next(self.items)
        self.position += 1
        if self.kind in ("inside", "dict"):
            self.name = item[0]
            return item[1]
        return item

    def path_here(self) -> Path:
        """The path of the child given last."""
        return self.path, self.kind, self.position if self.kind in ("list", "set") else self.name


class _Ids:
    """A set of ids in many small parts: one large set takes longer than a slice to grow."""

    PARTS = 256

    def __init__(self) -> None:
        self._parts: List[Set[int]] = [set() for _ in range(self.PARTS)]
        self.count = 0

    def __contains__(self, number: int) -> bool:
        return number in self._parts[(number >> 5) % self.PARTS]

    def add(self, number: int) -> None:
        """Add an id that is not in it."""
        self._parts[(number >> 5) % self.PARTS].add(number)
        self.count += 1


class Scanner:
    """Scans a namespace; `hidden` names are left out. Call `step` until it says True, then `result`.

    `changed` is what `settings.collect` gave: it is looked into last, as the capture does.
    """

    def __init__(self, namespace: Dict[str, Any], hidden: Set[str], changed: Optional[Dict[str, Any]] = None) -> None:
        from ._cloudpickle import cloudpickle  # type: ignore[import-not-found,unused-ignore]

        inputs = namespace.get("In")
        self._inputs = list(inputs) if isinstance(inputs, list) else []
        self._reducer = Reducer(namespace, cloudpickle, self._inputs, Help("", lambda function: function()))
        self._left = deque(capture.items_to_keep(namespace, hidden))
        if changed:
            self._left.append((settings.NAME, changed))
        self._seen = _Ids()
        self._stack: List[_Frame] = []
        self._variables: List[Dict[str, Any]] = []
        self._losses: List[Dict[str, Any]] = []
        self._lost: Dict[int, str] = {}
        self._now: Dict[str, Any] = {}
        self._kept: List[Any] = [namespace, changed]
        self._seen.add(id(namespace))

    def step(self, seconds: float) -> bool:
        """Work for about `seconds`; True when everything was looked at.

        Cyclic collection waits until the end of the slice: it would make the slice longer.
        """
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self._work(time.perf_counter() + seconds)
        finally:
            if collecting:
                gc.enable()

    def _work(self, limit: float) -> bool:
        while True:
            if not self._stack:
                self._close_variable()
                if not self._left:
                    return True
                self._open_variable(*self._left.popleft())
            else:
                self._batch()
            if time.perf_counter() >= limit:
                return False

    def result(self) -> Dict[str, Any]:
        """``{"variables": [...], "losses": [...]}``: see docs/developers/checkpoint-format.md; losses have their
        cell."""
        losses.add_cells(self._losses, self._inputs)
        settings.say_title(self._losses)
        return {"variables": list(self._variables), "losses": list(self._losses)}

    # --- variables ---------------------------------------------------------------------------------------------

    def _open_variable(self, name: str, value: Any) -> None:
        fate, reason = self._judge(value)
        self._now = {
            "name": name,
            "type": losses.type_name(value),
            "kind": "tombstone" if fate == "lost" else capture.kind_of(value),
            "bytes": 0,
            "complete": True,
            "fate": fate,
            "reason": reason,
        }
        if fate == "lost" and id(value) in self._seen:  # a second name of a lost object
            self._lose((None, "inside", name), value, reason or "")
        self._visit((None, "inside", name), value)

    def _close_variable(self) -> None:
        now, self._now = self._now, {}
        if now and not capture.is_internal(now["name"]):
            self._variables.append(now)

    def _judge(self, value: Any) -> Tuple[str, Optional[str]]:
        if id(value) in self._lost:
            return "lost", self._lost[id(value)]
        try:
            fate, reason = self._reducer.judge(value)
            if fate == "in checkpoint":
                self._refuse_class(value)
                self._reducer.look(value)
        except Lost as error:
            return "lost", str(error)
        except RecursionError:
            return "in checkpoint", None
        except Exception as error:
            return "lost", reason_of(error)
        return fate, reason

    def _refuse_class(self, value: Any) -> None:
        if issubclass(type(value), type):
            self._reducer._require_class(value)

    # --- objects -----------------------------------------------------------------------------------------------

    def _batch(self) -> None:
        frame = self._stack[-1]
        for _ in range(BATCH):
            try:
                value = frame.next()
            except StopIteration:
                self._stack.pop()
                return
            except RuntimeError:
                self._now["complete"] = False
                self._stack.pop()
                return
            cls = type(value)
            if cls in ATOMS:
                if cls in _MEASURED:
                    self._now["bytes"] += sys.getsizeof(value)
            elif id(value) not in self._seen and not (cls in _EXACT and self._is_flat(value)):
                self._visit(frame.path_here(), value)
                if self._stack[-1] is not frame:
                    return

    def _is_flat(self, value: Any) -> bool:
        """Small containers of plain values, of which there may be millions, are done at once."""
        if len(value) > 16 or type(value) is dict:
            return False
        size = 0
        for item in value:
            cls = type(item)
            if cls not in ATOMS:
                return False
            if cls in _MEASURED:
                size += sys.getsizeof(item)
        self._seen.add(id(value))
        self._now["bytes"] += sys.getsizeof(value) + size
        return True

    def _visit(self, path: Path, value: Any) -> None:
        if id(value) in self._seen:
            return
        if self._seen.count >= MOST_OBJECTS:
            self._now["complete"] = False
            return
        self._seen.add(id(value))
        self._now["bytes"] += _own_size(value)
        items = _walk(value)
        if type(value) in ATOMS:
            return  # a recipe of a bytearray would hold a copy of it
        if items is not None:
            self._stack.append(_Frame(items[0], items[1], path))
            if type(value) in _EXACT:
                return
        self._look_inside(path, value, plain=items is not None)

    def _look_inside(self, path: Path, value: Any, plain: bool) -> None:
        """Objects that are not plain containers: their fate, and what their recipe refers to."""
        self._kept.append(value)  # recipes make new objects: ids must stay theirs
        fate, reason = self._judge(value)
        if fate == "lost":
            self._lose(path, value, reason or "")
            if plain:
                self._stack.pop()
            return
        inside = self._inside(value)
        if plain:  # items of a list or dict of the person's own type are walked already
            inside = [pair for pair in inside if not pair[0].startswith("[")]
        if inside:
            self._kept.append(inside)
            self._stack.append(_Frame(iter(inside), "inside", path))

    def _inside(self, value: Any) -> List[Tuple[str, Any]]:
        try:
            handler = self._reducer.handler_of(type(value))
            if handler.way in ("plain", "recipe") and _walk(value) is None:
                return inside_recipe(value, self._reducer.look(value))
            if _walk(value) is not None:
                return [("." + name, item) for name, item in attributes_of(value).items()]
            return children(value, self._reducer)
        except Exception:
            return []

    def _lose(self, path: Path, value: Any, reason: str) -> None:
        self._lost[id(value)] = reason
        if loss_of(value) is not None:
            return  # lost in an earlier pause
        self._losses.append(
            {"name": self._now["name"], "path": _text(path), "type": losses.type_name(value), "reason": reason}
        )


_SEQUENCES: Tuple[Tuple[Any, str], ...] = (
    (list, "list"),
    (tuple, "list"),
    (deque, "list"),
    (set, "set"),
    (frozenset, "set"),
)
_EXACT = (list, tuple, dict, set, frozenset)
#: Plain values whose memory counts; the others are a few bytes each.
_MEASURED = frozenset((str, bytes, bytearray, float))


def _walk(value: Any) -> Optional[Tuple[Iterator[Any], str]]:
    """An iterator over what a container holds, without copying it; None for other objects."""
    cls = type(value)  # never isinstance: it asks the object for its ``__class__``
    if issubclass(cls, dict):
        return iter(dict.items(value)), "dict"
    for kind, step in _SEQUENCES:
        if issubclass(cls, kind):
            return kind.__iter__(value), step
    np = arrays.module()
    if np is not None and type(value) is getattr(np, "ndarray", None) and value.dtype.hasobject:
        return iter(value.flat), "list"
    return None


def _own_size(value: Any) -> int:
    """Bytes of the object itself with the memory that it owns."""
    cls = type(value)
    if arrays.is_array(value):
        return 128 if arrays.is_array(value.base) else sizes.array_bytes(value)
    if issubclass(cls, (type, types.ModuleType, types.FunctionType)):
        return 0
    size = sizes.own_bytes(value)
    if sizes.package_of(cls) in ("builtins", "pandas", __package__):
        return size
    return max(size, sizes.held_bytes(value))


def _text(path: Path) -> str:
    """A path as a person would write it."""
    parts: List[str] = []
    while path is not None:
        before, kind, step = path
        if kind == "dict":
            parts.append("[%s]" % key_text(step))
        elif kind == "list":
            parts.append("[%d]" % step)
        else:
            parts.append("{...}" if kind == "set" else str(step))
        path = before
    return "".join(reversed(parts))
