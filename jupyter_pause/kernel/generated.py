# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Classes whose code was generated: named tuples, typed dictionaries, dataclasses, enumerations.

Generated code has no source and differs between Python versions, so it is generated again instead of being stored.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import types
import typing
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

Recipe = Tuple[Callable[..., Any], Tuple[Any, ...], Set[str]]


def recipe_of(cls: Any) -> Optional[Recipe]:
    """How to make a named tuple or typed dictionary again, with the names that this brings; None for others."""
    if issubclass(cls, tuple) and cls.__bases__[0] is tuple and "_make" in cls.__dict__ and "_fields" in cls.__dict__:
        return _namedtuple(cls)
    if type(cls).__name__ == "_TypedDictMeta":
        hints = dict(cls.__dict__.get("__annotations__", {}))
        arguments = (cls.__name__, hints, bool(cls.__total__), cls.__module__)
        return make_typeddict, arguments, set(cls.__dict__) - {"__doc__"}
    return None


def _namedtuple(cls: Any) -> Recipe:
    defaults = tuple(cls._field_defaults[name] for name in cls._fields if name in cls._field_defaults)
    make: Any = collections.namedtuple
    blank = make("blank", cls._fields, rename=True)
    made = set(blank.__dict__) - {"__doc__"}
    made -= {name for name in made if _is_notebook_function(cls.__dict__.get(name))}
    generic = cls.__bases__[1:]
    return (
        make_namedtuple,
        (cls.__name__, cls._fields, defaults, cls.__module__, cls.__qualname__, generic),
        made | {"_field_types"},
    )


def _is_notebook_function(value: Any) -> bool:
    function = getattr(value, "__func__", value)
    function = getattr(function, "fget", function)
    return (
        isinstance(function, types.FunctionType)
        and function.__module__ == "__main__"
        and (not function.__code__.co_filename.startswith(("<string>", "<namedtuple")))
        and function.__code__.co_filename != collections.__file__
    )


def make_namedtuple(
    name: str,
    fields: Tuple[str, ...],
    defaults: Tuple[Any, ...],
    module: str,
    qualname: str,
    generic: Tuple[Any, ...] = (),
) -> Any:
    """A named tuple type with these fields."""
    make: Any = collections.namedtuple
    cls = make(name, fields, defaults=defaults, module=module)
    if generic:
        names = {key: value for key, value in cls.__dict__.items() if key not in ("__dict__", "__weakref__")}
        cls = type(name, (tuple, *generic), dict(names, __orig_bases__=(typing.NamedTuple,)))
    cls.__qualname__ = qualname
    return cls


def make_typeddict(name: str, hints: Dict[str, Any], total: bool, module: str) -> Any:
    """A typed dictionary type."""
    make: Any = typing.TypedDict
    cls = make(name, hints, total=total)
    cls.__module__ = module
    return cls


# --- dataclasses ---------------------------------------------------------------------------------------------------

_FIELD_OPTIONS = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")
_MADE_BY_OPTION = {
    "__init__": "init",
    "__repr__": "repr",
    "__eq__": "eq",
    "__lt__": "order",
    "__le__": "order",
    "__gt__": "order",
    "__ge__": "order",
    "__setattr__": "frozen",
    "__delattr__": "frozen",
}
_PICKLING = ("__getstate__", "__setstate__")


def dataclass_of(cls: Any) -> Optional[Tuple[Dict[str, Any], Set[str]]]:
    """Parameters and own fields of a dataclass, with the names that the decorator made; None for other classes."""
    fields = cls.__dict__.get("__dataclass_fields__")
    parameters = cls.__dict__.get("__dataclass_params__")
    if fields is None or parameters is None:
        return None
    annotations = cls.__dict__.get("__annotations__") or getattr(cls, "__annotations__", {})
    own: Dict[str, Dict[str, Any]] = {}
    for name, field in fields.items():
        if name in annotations and field._field_type in (dataclasses._FIELD, dataclasses._FIELD_INITVAR):  # type: ignore[attr-defined]
            own[name] = _field_options(field)
    options = {name: getattr(parameters, name) for name in _parameter_names(parameters)}
    made = {"__dataclass_fields__", "__dataclass_params__", "__match_args__"}
    # What an option did not ask for is not generated again: it belongs to the person or to another decorator.
    made |= {
        name for name, option in _MADE_BY_OPTION.items() if options.get(option) and _was_generated(vars(cls).get(name))
    }
    made |= {"__replace__"} if _is_of_dataclasses(vars(cls).get("__replace__")) else set()
    made |= {"__hash__"} if _hash_was_generated(cls, options) else set()
    pickling = [name for name in _PICKLING if _is_of_dataclasses(vars(cls).get(name))]
    return {"options": options, "fields": own, "pickling": pickling}, made | set(pickling)


def _hash_was_generated(cls: Any, options: Dict[str, Any]) -> bool:
    value = cls.__dict__.get("__hash__", 0)
    if value is None:
        return bool(options["eq"])
    return bool(options["unsafe_hash"] or (options["eq"] and options["frozen"])) and _was_generated(value)


def _parameter_names(parameters: Any) -> List[str]:
    names = getattr(type(parameters), "__slots__", ()) or vars(parameters)
    return [name for name in names if hasattr(parameters, name)]


def _field_options(field: Any) -> Dict[str, Any]:
    found = {}
    for name in _FIELD_OPTIONS:
        value = getattr(field, name, dataclasses.MISSING)
        if value is dataclasses.MISSING or (name == "metadata" and not value):
            continue
        found[name] = dict(value) if name == "metadata" else value
    return found


def _was_generated(function: Any) -> bool:
    function = inspect.unwrap(function) if callable(function) else function
    if not isinstance(function, types.FunctionType):
        return False
    return function.__code__.co_filename == "<string>" or function.__module__ == "dataclasses"


def _is_of_dataclasses(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__module__ == "dataclasses"


def apply_dataclass(cls: Any, state: Dict[str, Any]) -> None:
    """Generate again what ``@dataclass`` generated. Options that this Python does not know are left out."""
    known = set(inspect.signature(dataclasses.field).parameters)
    slots = {name: cls.__dict__[name] for name in state["fields"] if _is_slot(cls.__dict__.get(name))}
    for name, options in state["fields"].items():
        type.__setattr__(cls, name, dataclasses.field(**{k: v for k, v in options.items() if k in known}))
    options = {k: v for k, v in state["options"].items() if k in inspect.signature(dataclasses.dataclass).parameters}
    # The class has its slots already: asking for them would make a second class.
    of_slots = {name: options.pop(name) for name in ("slots", "weakref_slot") if name in options}
    hidden = cls.__dict__.get("__post_init__")
    dataclasses.dataclass(**options)(cls)
    if hidden is not None:
        type.__setattr__(cls, "__post_init__", hidden)
    for name, descriptor in slots.items():
        type.__setattr__(cls, name, descriptor)
    for name in of_slots.keys() & set(_parameter_names(cls.__dataclass_params__)):
        setattr(cls.__dataclass_params__, name, of_slots[name])
    for name in state.get("pickling", ()):
        type.__setattr__(cls, name, _pickling_function(name))


def _pickling_function(name: str) -> Any:
    """What ``dataclass`` gives a class that is frozen and has slots; without it the class cannot be copied or pickled.

    It does so only together with making the slots, which is why these are put in by name. Python 3.9 has none.
    """
    own = {"__getstate__": _field_values, "__setstate__": _set_field_values}[name]
    return getattr(dataclasses, "_dataclass_" + name.strip("_"), own)


def _field_values(self: Any) -> List[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_field_values(self: Any, state: List[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state):
        object.__setattr__(self, field.name, value)


def pickles_as_dataclass(cls: Any) -> bool:
    """Whether instances are saved by the functions that ``dataclass`` puts into a frozen class with slots."""
    return all(_is_of_dataclasses(getattr(cls, name, None)) for name in _PICKLING)


def values_inside(value: Any) -> Dict[str, Any]:
    """All that an instance holds, in slots and in its dictionary, read past its own rules and without calling them."""
    found = {}
    for base in type(value).__mro__:
        for name, slot in base.__dict__.items():
            if _is_slot(slot) and name not in found:
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:  # never set, or deleted
                    pass
    found.update(getattr(value, "__dict__", {}))
    return found


def put_values_inside(made: Any, values: Dict[str, Any]) -> None:
    """Opposite of `values_inside`; works on a frozen class, and while the class is still without its methods."""
    for name, value in values.items():
        object.__setattr__(made, name, value)


# So that the next pause takes them for what they stand for.
_field_values.__module__ = _set_field_values.__module__ = "dataclasses"


def _is_slot(value: Any) -> bool:
    return isinstance(value, types.MemberDescriptorType)


# --- enumerations --------------------------------------------------------------------------------------------------

ENUM_MEMBER_NAMES = frozenset(("_value_", "_name_", "__objclass__", "_sort_order_", "_add_alias_", "_add_value_alias_"))


def enum_names(cls: Any) -> Set[str]:
    """Names in an enumeration's dictionary that its metaclass makes."""
    found = set()
    for name, value in cls.__dict__.items():
        if name.startswith("_") and name.endswith("_"):
            function = getattr(value, "__func__", value)
            function = getattr(function, "fget", function)
            by_person = isinstance(function, types.FunctionType) and function.__module__ == cls.__module__
            if (
                name in ("__new__", "__new_member__", "_new_member_")
                or not (by_person or name in ("__doc__", "__annotations__"))
                or name == "_generate_next_value_"
            ):
                found.add(name)
    return found


def member_values(cls: Any) -> Dict[str, Any]:
    """Name -> (value, data) for every member and alias; data is what the member is as a number, text and so on."""
    return {name: (member._value_, _data_of(member)) for name, member in cls.__members__.items()}


def _data_of(member: Any) -> Any:
    if isinstance(member, int):
        return int.__int__(member)
    if isinstance(member, str):
        return str.__str__(member)
    if isinstance(member, float):
        return float.__float__(member)
    if isinstance(member, bytes):
        return bytes.__getitem__(member, slice(None))
    return tuple(member) if isinstance(member, tuple) else member._value_


def member_maker(bases: Tuple[Any, ...]) -> Callable[..., Any]:
    """How members are made: directly, because the class's own ``__new__`` was called when it was defined."""
    data_type: Any = object
    for base in bases:
        for candidate in base.__mro__:
            if candidate is not object and not issubclass(candidate, enum.Enum) and "__new__" in candidate.__dict__:
                data_type = candidate
                break

    def make(cls: Any, value: Any, data: Any) -> Any:
        member = object.__new__(cls) if data_type is object else data_type.__new__(cls, data)
        member._value_ = value
        return member

    return make
