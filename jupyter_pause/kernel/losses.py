# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where inside a variable an object lies, and which cell made it: for objects that will not come back."""

from __future__ import annotations

import ast
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from . import cells
from .sizes import ATOMS
from .tombstone import Tombstone

if TYPE_CHECKING:
    from .reducing import Reducer

#: A search in one variable ends after so many objects or seconds; the path is then only the variable's name.
MOST_OBJECTS, MOST_SECONDS = 500_000, 3.0


def type_name(value: Any) -> str:
    """The type as a person knows it."""
    return name_of_type(type(value))


def name_of_type(cls: type) -> str:
    """A type as a person knows it."""
    if cls.__module__ in ("builtins", "__main__"):
        return cls.__qualname__
    return "%s.%s" % (cls.__module__, cls.__qualname__)


def paths_to(
    name: str, value: Any, targets: Iterable[int], reducer: Reducer, seconds: float = MOST_SECONDS
) -> Dict[int, str]:
    """The shortest path from a variable to each object (given by id); those not found in time are left out."""
    wanted = set(targets)
    found: Dict[int, str] = {}
    for path, current in _walk(name, value, reducer, seconds):
        if id(current) in wanted:
            found[id(current)] = path
            wanted.discard(id(current))
        if not wanted:
            break
    return found


def tombstones_in(name: str, value: Any, reducer: Reducer) -> List[Tuple[Tombstone, str]]:
    """Tombstones inside a variable, each with the shortest path to it."""
    return [
        (current, path) for path, current in _walk(name, value, reducer, MOST_SECONDS) if type(current) is Tombstone
    ]


def _walk(name: str, value: Any, reducer: Reducer, seconds: float) -> Iterator[Tuple[str, Any]]:
    """Objects in a variable, nearest first, each once; ends early where there are very many."""
    seen = {id(value)}
    keep: List[Any] = [value]  # ids stay true only while the objects live
    line = deque([(name, value)])
    limit = time.monotonic() + seconds
    yield name, value
    while line and len(seen) < MOST_OBJECTS and time.monotonic() < limit:
        path, current = line.popleft()
        if len(path) > 400:
            continue
        for suffix, child in _children(current, reducer):
            if type(child) in ATOMS or id(child) in seen:
                continue
            seen.add(id(child))
            keep.append(child)
            yield path + suffix, child
            line.append((path + suffix, child))


def _children(value: Any, reducer: Reducer) -> List[Any]:
    from .reducing import children  # a load that loses nothing does without it

    try:
        return children(value, reducer)
    except Exception:
        return []


def add_cells(found: List[Dict[str, Any]], inputs: List[Any]) -> None:
    """Fill in the number of the cell that made each loss: the last one that bound the name, or put something in it."""
    missing = {str(loss["name"]) for loss in found if loss.get("cell") is None}
    if not missing:
        return
    bound = cells.cells_binding(missing, inputs)
    for loss in found:
        if loss.get("cell") is not None:
            continue
        loss["cell"] = bound.get(loss["name"])
        if loss["path"] != loss["name"]:
            later = _last_change(str(loss["name"]), inputs, loss["cell"] or 0)
            loss["cell"] = later if later is not None else loss["cell"]


def _last_change(name: str, inputs: List[Any], after: int) -> Optional[int]:
    """The last cell after `after` that assigns to a part of `name`: ``cfg["lock"] = ...``, ``holder.sock = ...``."""
    for number in range(len(inputs) - 1, after, -1):
        text = inputs[number]
        if not isinstance(text, str) or name not in text:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, (ast.Subscript, ast.Attribute))
                and isinstance(node.ctx, ast.Store)
                and _root(node) == name
            ):
                return number
    return None


def _root(node: Any) -> Optional[str]:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
