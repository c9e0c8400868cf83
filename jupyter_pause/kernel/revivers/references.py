# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What refers to something else or wraps it: weak references, views of memory, caches, context variables."""

from __future__ import annotations

import contextvars
import functools
import gc
import operator
import struct
import types
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

from .. import recipes
from ..regions import address_of
from .base import CannotRevive, Help, Reviver


class Cached(Reviver):
    types = ("functools._lru_cache_wrapper",)

    def describe(self, value: Any) -> Optional[str]:
        return "its cache comes back empty"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        parameters = (
            value.cache_parameters()
            if hasattr(value, "cache_parameters")
            else {"maxsize": value.cache_info().maxsize, "typed": False}
        )
        state = {key: item for key, item in value.__dict__.items() if key != "__wrapped__" and not callable(item)}
        return recipes.make_cached, (value.__wrapped__, parameters["maxsize"], parameters["typed"]), state


class _CachedProperty(Reviver):
    types = ("functools.cached_property",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return recipes.make_cached_property, (value.func, value.attrname)


class _WeakReference(Reviver):
    types = ("builtins.weakref", "weakref.ReferenceType", "builtins.ReferenceType")
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        target = value()
        return (recipes.make_dead_reference, ()) if target is None else (recipes.make_reference, (target,))


class _WeakMethod(Reviver):
    types = ("weakref.WeakMethod",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        target = value()
        return (recipes.make_dead_reference, ()) if target is None else (weakref.WeakMethod, (target,))


class _Proxy(Reviver):
    types = (
        "builtins.weakproxy",
        "builtins.weakcallableproxy",
        "weakref.ProxyType",
        "weakref.CallableProxyType",
        "weakref.weakproxy",
    )
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        try:
            return recipes.make_proxy, (value.__reduce_ex__.__self__,)
        except ReferenceError:
            raise CannotRevive("what it pointed to was gone already") from None


class _WeakContainer(Reviver):
    types = ("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary", "weakref.WeakSet", "_weakrefset.WeakSet")
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        items = list(value) if isinstance(value, weakref.WeakSet) else list(value.items())
        return type(value), (), items, None, None, recipes.fill_weak


class _SystemRandom(Reviver):
    types = ("random.SystemRandom",)

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return type(value), ()


class _MemoryView(Reviver):
    types = ("builtins.memoryview",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        try:
            base = value.obj
            whole = memoryview(base)
        except (TypeError, ValueError):
            raise CannotRevive("the memory that it looked at is gone") from None
        if value.nbytes == 0 or not whole.c_contiguous:
            return recipes.make_memoryview, (bytes(value), value.format, value.shape, value.readonly)
        # Writing through one is seen by the other, also through a view of a part: it stays a view of its base.
        offset = address_of(value) - address_of(whole)
        step = 1
        if not value.c_contiguous:
            if value.ndim != 1 or offset % value.itemsize or value.strides[0] % value.itemsize:
                raise CannotRevive("a view with gaps in several dimensions cannot be made again")
            step = value.strides[0] // value.itemsize
        return recipes.make_memoryview, (base, value.format, value.shape, value.readonly, offset, step)


class _ContextVariable(Reviver):
    types = ("_contextvars.ContextVar", "contextvars.ContextVar", "builtins.ContextVar")

    def describe(self, value: Any) -> Optional[str]:
        return "it has the value that cells saw"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        default = _found(lambda: contextvars.Context().run(value.get))
        now = _found(value.get)
        now = () if default and now and now[0] is default[0] else now
        return make_context_variable, (value.name, *default), now, None, None, set_context_variable


def _found(get: Callable[[], Any]) -> Tuple[Any, ...]:
    try:
        return (get(),)
    except LookupError:
        return ()


def make_context_variable(name: str, *default: Any) -> Any:
    """A context variable, with its default where it has one."""
    return contextvars.ContextVar(name, default=default[0]) if default else contextvars.ContextVar(name)


def set_context_variable(made: Any, value: Any) -> None:
    """The value that cells will see."""
    if value:
        made.set(value[0])


class _ReadOnlyView(Reviver):
    """What ``types.MappingProxyType`` gives: it goes on looking at the same dictionary."""

    types = ("builtins.mappingproxy",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        inside = gc.get_referents(value)
        if len(inside) != 1 or "__dict__" in value or "__module__" in value:  # the names of a class
            return types.MappingProxyType, (dict(value),)
        return types.MappingProxyType, (inside[0],)


class _DictIterator(Reviver):
    types = ("builtins.dict_keyiterator", "builtins.dict_valueiterator", "builtins.dict_itemiterator")
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        kind = type(value).__name__[len("dict_") : -len("iterator")]
        inside = [item for item in gc.get_referents(value) if isinstance(item, dict)]
        if not inside:  # it has come to its end
            return iterate, (kind, {}, 0)
        return iterate, (kind, inside[0], len(inside[0]) - operator.length_hint(value))


def iterate(kind: str, inside: Any, done: int) -> Any:
    """An iterator over a dictionary that has given some items."""
    iterator = iter(dict.items(inside) if kind == "item" else dict.values(inside) if kind == "value" else inside)
    for _ in range(done):
        next(iterator)
    return iterator


class _SetIterator(Reviver):
    types = ("builtins.set_iterator",)

    def describe(self, value: Any) -> Optional[str]:
        return "it gives what was left, in another order"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return iterate_set, (value.__reduce__()[1][0],)


def iterate_set(left: Any) -> Any:
    """An iterator over a set of what was left."""
    return iter(set(left))


class _Struct(Reviver):
    types = ("_struct.Struct",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return struct.Struct, (value.format,)


class _JsonDecoder(Reviver):
    types = ("json.decoder.JSONDecoder",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        names = ("object_hook", "parse_float", "parse_int", "parse_constant", "strict", "object_pairs_hook")
        return make_json_decoder, ({name: getattr(value, name) for name in names},)


def make_json_decoder(options: Dict[str, Any]) -> Any:
    """A decoder with the same options."""
    import json

    return json.JSONDecoder(**options)


class _Key(Reviver):
    """What ``functools.cmp_to_key`` gives; its comparison is only known to the garbage collector."""

    types = ("functools.KeyWrapper",)
    rebuilt = False

    def describe(self, value: Any) -> Optional[str]:
        self._function(value)
        return None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return functools.cmp_to_key, (self._function(value),)

    @staticmethod
    def _function(value: Any) -> Any:
        inside = [item for item in gc.get_referents(value) if callable(item) and item is not type(value)]
        if len(inside) != 1:
            raise CannotRevive("what it compares with is not known")
        return inside[0]


class _Match(Reviver):
    types = ("re.Match",)
    rebuilt = False

    def describe(self, value: Any) -> Optional[str]:
        self._again(value)
        return None

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        way, start = self._again(value)
        return match_again, (value.re, value.string, start, value.endpos, way)

    def _again(self, value: Any) -> Tuple[str, int]:
        for way in ("match", "search", "fullmatch"):
            try:
                again = getattr(value.re, way)(value.string, value.pos, value.endpos)
            except Exception:
                break
            if again is not None and again.regs == value.regs:
                return way, value.pos
        again = value.re.match(value.string, value.start(), value.endpos)  # one of several that were found
        if again is not None and again.regs == value.regs:
            return "match", value.start()
        raise CannotRevive("the same match was not found again")


def match_again(pattern: Any, text: Any, start: int, end: int, way: str) -> Any:
    """The same match, by looking again."""
    return getattr(pattern, way)(text, start, end)
