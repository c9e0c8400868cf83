# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What stands where an object could not be brought back.

It may be looked at, copied, pickled, deleted and overwritten; anything else raises one sentence that says what it
was, why it is gone and what to do.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

_INFO = "_jupyter_pause_loss"


class LostObjectError(RuntimeError):
    """Something that did not come back was used. The message is one sentence with what to do next."""


def describe(info: Dict[str, Any]) -> str:
    """The sentence of a loss; `info` has ``path``, ``type``, ``reason`` and perhaps ``cell``."""
    cell = info.get("cell")
    made = ", made in cell %s," % cell if cell is not None else ""
    todo = "run that cell again" if cell is not None else "make it again"
    name = info.get("path") or info.get("name") or "it"
    return "%s (%s)%s did not come back after the pause: %s; %s to have it back." % (
        name,
        info.get("type") or "object",
        made,
        info.get("reason") or "it could not be saved",
        todo,
    )


class Tombstone:
    """Takes the place of a lost object. Equality and hash are those of identity, so it may sit in sets and keys."""

    __slots__ = (_INFO, "__weakref__")

    def __init__(self, info: Dict[str, Any]) -> None:
        object.__setattr__(self, _INFO, info)

    def __repr__(self) -> str:
        return "<lost: %s>" % describe(loss_of(self) or {})

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Tombstone, (loss_of(self),)

    def __copy__(self) -> Tombstone:
        return self

    def __deepcopy__(self, memo: Any) -> Tombstone:
        return self

    def __dir__(self) -> Any:
        return []

    def __getattr__(self, name: str) -> Any:
        # Python itself, copy, pickle, inspect and IPython's display ask for these: no is the right answer to them.
        if (name.startswith("__") and name.endswith("__")) or name.startswith(("_repr_", "_ipython_")):
            raise AttributeError(name)
        raise LostObjectError(describe(loss_of(self) or {}))

    def __setattr__(self, name: str, value: Any) -> None:
        raise LostObjectError(describe(loss_of(self) or {}))

    def __delattr__(self, name: str) -> None:
        raise LostObjectError(describe(loss_of(self) or {}))


def loss_of(value: Any) -> Optional[Dict[str, Any]]:
    """What a tombstone says about its loss; None for anything else."""
    return object.__getattribute__(value, _INFO) if type(value) is Tombstone else None


def _refuse(self: Tombstone, *args: Any, **kwargs: Any) -> Any:
    raise LostObjectError(describe(loss_of(self) or {}))


def lost_function(info: Dict[str, Any]) -> Callable[..., Any]:
    """A function that raises the sentence when called: for methods, which classes must be able to bind."""

    def lost(*args: Any, **kwargs: Any) -> Any:
        raise LostObjectError(describe(info))

    lost.__name__ = lost.__qualname__ = str(info.get("function") or "lost")
    lost.__doc__ = describe(info)
    lost._jupyter_pause_loss = info  # type: ignore[attr-defined]
    return lost


_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
_OTHERS = (
    "call iter next len getitem setitem delitem contains bool enter exit aenter aexit await aiter anext lt le gt ge "
    "neg pos abs invert int float complex index round trunc floor ceil reversed length_hint bytes fspath"
).split()
for _name in _OTHERS + [prefix + name for name in _ARITHMETIC for prefix in ("", "r", "i")]:
    if _name not in ("idivmod",):
        setattr(Tombstone, "__%s__" % _name, _refuse)
del _name
