# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a reviver is, and the registry that says which one serves a type."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple


class CannotRevive(Exception):
    """This one cannot be made again; the text is the reason, as a clause."""


class Help(NamedTuple):
    """What a reviver may use while saving: a folder for temporary files, and a way onto the main thread."""

    folder: str
    on_main_thread: Callable[[Callable[[], Any]], Any]


class Reviver:
    """How objects of some types are made again."""

    #: Full names: module, dot, qualified name.
    types: Tuple[str, ...] = ()
    #: Whether types derived from these are served too, unless they have rules of their own for saving.
    derived = False
    #: Whether the object counts as rebuilt (its inner state is not kept) rather than as kept.
    rebuilt = True

    def is_rebuilt(self, value: Any) -> bool:
        """The same for one object; it must be quick."""
        return self.rebuilt

    def describe(self, value: Any) -> Optional[str]:
        """What will be different about it, or None. Raises CannotRevive. Has no effect on the object."""
        return None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        """The recipe (as for ``__reduce__``). Raises CannotRevive."""
        raise NotImplementedError


REGISTRY: Dict[str, Reviver] = {}

#: A derived type that defines one of these knows how to save itself.
OWN_RULES = frozenset(("__reduce__", "__reduce_ex__", "__getstate__"))


def register(reviver: Reviver) -> None:
    """Add a reviver; the last one registered for a type serves it."""
    for name in reviver.types:
        REGISTRY[name] = reviver


def register_all(names: Dict[str, Any]) -> None:
    """Add every reviver class among a module's names."""
    for kind in list(names.values()):
        if isinstance(kind, type) and issubclass(kind, Reviver) and kind.types and kind.__module__ == names["__name__"]:
            register(kind())


def full_name(cls: type) -> str:
    """Module, dot, qualified name."""
    return "%s.%s" % (cls.__module__, cls.__qualname__)


def find(cls: type) -> Optional[Reviver]:
    """The reviver for a type, or for the nearest type that it derives from."""
    for number, base in enumerate(cls.__mro__):
        found = REGISTRY.get(full_name(base))
        if found is not None and (number == 0 or found.derived):
            return found
        if number == 0 and base.__module__ == "__main__" and not OWN_RULES.isdisjoint(base.__dict__):
            return None
    return None
