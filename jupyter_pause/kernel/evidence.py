# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What objects with rules of their own hold when they are saved, and whether they hold it again when they are loaded.

Pickling believes what an object says about itself. For objects that can lie (own ``__reduce__``, ``__setstate__``,
``__getattr__``, containers that change what is put into them, builtin types with attributes) their type, content and
attributes are noted beside the pickle. The notes are the last frame that the same pickler writes: it refers to the
objects, so that each note meets what its object became.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

from . import losses, memberwise, structure
from .tombstone import Tombstone

#: Seconds that all notes of one dump may take.
MOST_SECONDS = 0.3
#: What the names of attributes with computed values have in common.
_COMPUTED = ("cache", "hash", "memo")
_UNKNOWN = object()


class Difference(NamedTuple):
    """One thing that did not come back as it was: `number` is that of its note, `path` is None for the whole object."""

    number: int
    variable: str
    type: str
    path: Optional[str]
    reason: str


class Witness:
    """Takes the notes of one dump."""

    def __init__(self) -> None:
        self._kinds: Dict[type, Optional[memberwise.Kind]] = {}
        self._count: Dict[type, int] = {}
        self._seconds = MOST_SECONDS
        self.notes: List[List[Any]] = []
        #: Objects with rules of their own that were not looked at because there are so many.
        self.unseen = 0

    def see(self, value: Any, recipe: Any, variable: Optional[str]) -> None:
        """Note what an object holds that is being pickled by `recipe`. Never raises an Exception."""
        cls = type(value)
        kind = self._kinds.get(cls, _UNKNOWN)
        if kind is _UNKNOWN:
            kind = self._kinds[cls] = memberwise.kind_of(cls)
        if kind is None:
            return
        assert isinstance(kind, memberwise.Kind)
        count = self._count[cls] = self._count.get(cls, 0) + 1
        if count > kind.most or self._seconds <= 0:
            self.unseen += kind.own
            return
        began = time.monotonic()
        try:
            self.notes.append(_note(value, recipe, kind, variable or ""))
        except Exception:
            self.unseen += 1
        self._seconds -= time.monotonic() - began


def _note(value: Any, recipe: Any, kind: memberwise.Kind, variable: str) -> List[Any]:
    """The object, its variable, its type, its own content, its attributes, and those that its rules leave out."""
    content = kind.content(value) if kind.content is not None else None
    held = memberwise.attributes(value, kind) if kind.own else {}
    attributes = {name: structure.digest(item) for name, item in held.items()}
    return [value, variable, kind.name, content, attributes, _left_out(recipe, held)]


def _left_out(recipe: Any, held: Dict[str, Any]) -> List[str]:
    """Attributes that the state of a recipe does not have although it has others: left out on purpose."""
    state = recipe[2] if type(recipe) is tuple and len(recipe) > 2 else None
    if state is None:
        return []
    stated: Set[Any] = set()
    for part in state if type(state) in (tuple, list) else (state,):
        stated.add(id(part))
        if type(part) is dict:
            stated.update(part)
            stated.update(id(item) for item in part.values())
    left_out = [name for name, item in held.items() if name not in stated and id(item) not in stated]
    return left_out if len(left_out) < len(held) else []


def differences(notes: List[List[Any]]) -> Iterator[Difference]:
    """What is not as it was noted; `notes` were loaded with the objects that they are about."""
    for number, (value, variable, name, content, attributes, left_out) in enumerate(notes):
        if type(value) is Tombstone:
            continue  # said already
        now = losses.name_of_type(type(value))
        if now.rpartition(".")[2] != name.rpartition(".")[2]:
            reason = "its own rules for saving bring it back as %s" % now
            yield Difference(number, variable, name, None, reason)
            continue
        kind = memberwise.kind_of(type(value))
        if kind is None:
            continue
        if content is not None and kind.content is not None and kind.content(value) not in (None, content):
            yield Difference(number, variable, name, None, "its content comes back changed by its own rules")
        elif attributes and kind.own:
            yield from _changed(number, variable, memberwise.attributes(value, kind), attributes, left_out)


def _changed(
    number: int, variable: str, held: Dict[str, Any], noted: Dict[str, Optional[str]], left_out: List[str]
) -> Iterator[Difference]:
    for name, before in noted.items():
        private = name.startswith("_")
        if name not in held:
            if not (private and (name in left_out or _is_computed(name))):
                reason = "its object's own rules for saving leave it out"
                yield Difference(number, variable, "attribute", "." + name, reason)
            continue
        if before is None or name in left_out or (private and _is_computed(name)):
            continue
        now = structure.digest(held[name])
        if now is not None and now != before:
            reason = "its object's own rules bring it back with another value"
            yield Difference(number, variable, losses.type_name(held[name]), "." + name, reason)


def _is_computed(name: str) -> bool:
    return any(word in name.lower() for word in _COMPUTED)
