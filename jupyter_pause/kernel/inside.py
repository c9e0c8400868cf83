# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects whose own methods get in the way of saving them: taken apart by what they hold, made again without a call.

Three kinds: containers that change or refuse what is put into them, or whose ``__init__`` takes other arguments;
exceptions whose ``__init__`` does; objects whose ``__getattr__`` answers everything. Types with rules of their own for
saving (``__reduce__``, ``__getstate__``, ...) are left to these.
"""

from __future__ import annotations

import collections
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Callable, Dict, List, Optional, Tuple

from .definitions import new_by_base
from .generated import put_values_inside

_RULES = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__", "__getnewargs__")
_LOOKUPS = ("__getattr__", "__getattribute__")
#: What the unpickler would call to fill a container.
_FILLS = ("__setitem__", "__init__", "append", "extend", "update", "add", "setdefault")
#: The order matters: an OrderedDict is a dict.
_CONTAINERS: Tuple[Any, ...] = (
    collections.OrderedDict,
    collections.defaultdict,
    dict,
    list,
    set,
    collections.deque,
)


def way_of(cls: type) -> Optional[Callable[[Any], Any]]:
    """How objects of a type are taken apart here; None where the usual rules serve."""
    if any(isinstance(getattr(cls, rule, None), FunctionType) for rule in _RULES):
        return None
    if issubclass(cls, BaseException):
        return _error
    odd = any(isinstance(getattr(cls, name, None), FunctionType) for name in _LOOKUPS)
    kind = _container_of(cls)
    if kind is not None:
        own = any(isinstance(getattr(cls, name, None), FunctionType) for name in _FILLS)
        return _container if odd or own else None
    plain = next((base for base in cls.__mro__ if not base.__flags__ & (1 << 9)), object) is object
    return _plain if odd and plain else None


def _container_of(cls: type) -> Any:
    return next((kind for kind in _CONTAINERS if issubclass(cls, kind) and cls is not kind), None)


def attributes_of(value: Any) -> Dict[str, Any]:
    """What an object holds in slots and in its dictionary, without calling anything of its own."""
    found: Dict[str, Any] = {}
    for base in type(value).__mro__:
        if "__slots__" not in base.__dict__:
            continue
        for name, slot in base.__dict__.items():
            if isinstance(slot, MemberDescriptorType) and name not in found:
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:  # never set, or deleted
                    pass
    try:
        found.update(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        pass
    return found


def _plain(value: Any) -> Tuple[Any, ...]:
    return new_by_base, (type(value),), attributes_of(value), None, None, put_values_inside


# --- containers ----------------------------------------------------------------------------------------------------


def content_of(value: Any) -> Any:
    """Pairs of a dictionary, items of another container, read past its own methods."""
    kind = _container_of(type(value))
    return list(kind.items(value) if issubclass(kind, dict) else kind.__iter__(value))


def _container(value: Any) -> Tuple[Any, ...]:
    kind = _container_of(type(value))
    more = None
    if kind is collections.defaultdict:
        more = collections.defaultdict.__dict__["default_factory"].__get__(value)
    elif kind is collections.deque:
        more = collections.deque.__dict__["maxlen"].__get__(value)
    state = (content_of(value), more, attributes_of(value))
    return new_by_base, (type(value),), state, None, None, fill_container


def fill_container(made: Any, state: Any) -> None:
    """Put everything in as Python itself does it, not by the methods of its type."""
    content, more, attributes = state
    kind = _container_of(type(made))
    if kind is collections.OrderedDict:
        for key, item in content:
            kind.__setitem__(made, key, item)
    elif issubclass(kind, dict):
        if kind is collections.defaultdict:
            kind.__init__(made, more)
        dict.update(made, content)
    elif kind is list:
        list.extend(made, content)
    elif kind is set:
        set.update(made, content)
    else:
        kind.__init__(made, content, more)
    put_values_inside(made, attributes)


# --- exceptions ----------------------------------------------------------------------------------------------------

_CHAIN = ("__cause__", "__context__", "__suppress_context__")


def _error(value: Any) -> Tuple[Any, ...]:
    cls = type(value)
    chain = {name: getattr(value, name) for name in _CHAIN if getattr(value, name)}
    if not isinstance(cls.__init__, FunctionType) and not isinstance(cls.__new__, FunctionType):
        recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
        state = recipe[2] if len(recipe) > 2 else None
        if not chain or len(recipe) > 3 or type(state) not in (dict, type(None)):
            return recipe
        return recipe[0], recipe[1], (None, state or {}, chain), None, None, fill_error
    held = (value.args, _members(value), attributes_of(value))
    return new_error, (cls, value.args), ((held[0], held[1]), held[2], chain), None, None, fill_error


def _members(value: Any) -> Dict[str, Any]:
    """What Python's own exception types keep beside ``args``: the number of an OSError, the exit code."""
    found: Dict[str, Any] = {}
    for base in type(value).__mro__:
        if base.__flags__ & (1 << 9) or base in (BaseException, object):
            continue
        for name, item in base.__dict__.items():
            if isinstance(item, (MemberDescriptorType, GetSetDescriptorType)) and not name.startswith("__"):
                try:
                    held = item.__get__(value)
                except AttributeError:
                    continue
                if held is not None:
                    found[name] = held
    return found


def new_error(cls: Any, arguments: Tuple[Any, ...]) -> Any:
    """An exception without calling its ``__init__``."""
    made = new_by_base(cls, *arguments)
    made.args = arguments
    return made


def fill_error(made: Any, state: Any) -> None:
    """What it holds, and the exceptions that it came from."""
    held, attributes, chain = state
    if held is not None:
        for name, item in held[1].items():
            try:
                object.__setattr__(made, name, item)
            except (AttributeError, TypeError):
                continue
        made.args = held[0]
    put_values_inside(made, attributes)
    for name in _CHAIN:
        item = chain.get(name)
        if isinstance(item, (BaseException, bool)):
            setattr(made, name, item)


def inside(value: Any, recipe: Tuple[Any, ...], key_text: Callable[[Any], str]) -> Optional[List[Tuple[str, Any]]]:
    """What a recipe of this module refers to, with path suffixes; None for another's recipe."""
    if len(recipe) < 6 or recipe[5] not in (fill_container, fill_error, put_values_inside):
        return None
    if recipe[5] is put_values_inside:
        return [("." + str(name), item) for name, item in recipe[2].items()] if type(recipe[2]) is dict else None
    state = recipe[2]
    found: List[Tuple[str, Any]] = []
    if recipe[5] is fill_container:
        attributes = state[2]
        if isinstance(value, dict):
            found += [("[%s]" % key_text(key), item) for key, item in state[0]]
            found += [(".keys()", key) for key, _ in state[0]]
        else:
            found += [("[%d]" % number, item) for number, item in enumerate(state[0])]
        found.append((".default_factory", state[1]))
    else:
        found += [(".args[%d]" % number, item) for number, item in enumerate(value.args)]
        attributes = dict(state[1], **state[2])
    return found + [("." + str(name), item) for name, item in attributes.items()]
