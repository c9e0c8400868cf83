# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Functions and classes that were defined in the notebook: how they are taken apart and made again.

Code is never inside a data frame. It lies in the code table (`CodeTable`): byte code for the same Python minor, source
for all others. A function is made again on the *live* global names, so it sees later changes of them. A class is made
again as an empty class of the same kind, then its attributes are put in; what decorators such as ``dataclass``
generated is generated again, because generated code has no source.
"""

from __future__ import annotations

import abc
import enum
import importlib.util
import linecache
import marshal
import sys
import types
import typing
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from . import compiled_types, generated, source
from .context import current
from .tombstone import Tombstone, loss_of, lost_function

MAGIC = importlib.util.MAGIC_NUMBER.hex()
_LARGEST_SOURCE = 2_000_000


class CannotSave(Exception):
    """A definition that cannot be taken apart; the text is the reason."""


class CodeLost(Exception):
    """A code object cannot be had under this Python; the text is the reason."""


# --- saving: the code table ----------------------------------------------------------------------------------------


class CodeTable:
    """Numbers code objects and finds their source."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        self._inputs = list(inputs)
        self._numbers: Dict[int, int] = {}
        self._codes: List[CodeType] = []
        self._entries: List[Dict[str, Any]] = []
        self._texts: List[Dict[str, Any]] = []
        self._compiled: Dict[Any, Optional[source.Source]] = {}
        self._text_numbers: Dict[Any, int] = {}

    def add(self, code: CodeType) -> int:
        """The number of a code object; the table keeps it alive, so ids stay true."""
        number = self._numbers.get(id(code))
        if number is None:
            number = len(self._codes)
            self._numbers[id(code)] = number
            self._codes.append(code)
        return number

    def write(self, add_frame: Callable[[bytes], int]) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
        """Write one frame per code object and per source; returns both parts of the manifest.

        Finding sources takes longer than anything else here, so it is done once, at the end.
        """
        entries = []
        for number, code in enumerate(self._codes):
            text, position = self._find(code)
            entries.append(
                {
                    "id": number,
                    "name": code.co_name,
                    "magic": MAGIC,
                    "frame": add_frame(marshal.dumps(code)),
                    "source": text,
                    "position": position,
                    "flags": code.co_flags,
                    "freevars": list(code.co_freevars),
                    "arguments": source.arguments_of(code),
                    "filename": code.co_filename,
                    "firstlineno": code.co_firstlineno,
                }
            )
        texts = [
            {"filename": text["filename"], "frame": add_frame(text["text"].encode("utf-8", "surrogatepass"))}
            for text in self._texts
        ]
        return entries, texts

    def _find(self, code: CodeType) -> Tuple[Optional[int], Optional[List[int]]]:
        text = source.of_code(code)
        for candidate in [text] if text else source.cell_bodies(self._inputs):
            compiled = self._compile(candidate, code)
            position = compiled.position(code) if compiled is not None else None
            if position is not None:
                return self._text(code.co_filename, candidate), position
        if text is not None and not code.co_filename.startswith("<"):
            return self._text(code.co_filename, text), None  # for tracebacks and inspect
        return None, None

    def _compile(self, text: str, code: CodeType) -> Optional[source.Source]:
        key = (text, code.co_filename, code.co_flags & source._FUTURE_FLAGS)
        if key not in self._compiled:
            self._compiled[key] = None
            if len(text) <= _LARGEST_SOURCE:
                try:
                    self._compiled[key] = source.Source(text, code.co_filename, code.co_flags)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    pass
        return self._compiled[key]

    def _text(self, filename: str, text: str) -> int:
        key = (filename, text)
        if key not in self._text_numbers:
            self._text_numbers[key] = len(self._texts)
            self._texts.append({"filename": filename, "text": text})
        return self._text_numbers[key]


# --- loading: the code table ---------------------------------------------------------------------------------------


class CodeLoader:
    """Gives code objects back by number: byte code under the same Python minor, compiled source under another."""

    def __init__(self, manifest: Dict[str, Any], read_frame: Callable[[int], Any]) -> None:
        python = manifest.get("python") or {}
        self._entries = manifest.get("code") or []
        self._texts = manifest.get("sources") or []
        self._read = read_frame
        self._version = ".".join(str(python.get("version", "?")).split(".")[:2])
        self._same = python.get("magic") == MAGIC and python.get("implementation") == sys.implementation.name
        self._codes: Dict[int, CodeType] = {}
        self._compiled: Dict[Any, Any] = {}

    def remember_sources(self) -> None:
        """Let tracebacks, `inspect.getsource` and a later pause find the text of cells again."""
        for number, entry in enumerate(self._texts):
            name = str(entry["filename"])
            if name not in linecache.cache:
                text = self._text(number)
                linecache.cache[name] = (len(text), None, text.splitlines(True), name)

    def freevars(self, number: int) -> List[str]:
        """Names of the closure variables, in the order in which they were saved."""
        return [str(name) for name in self._entries[number]["freevars"]]

    def name(self, number: int) -> str:
        """The function's name."""
        return str(self._entries[number]["name"])

    def get(self, number: int) -> CodeType:
        """The code object. Raises CodeLost with the reason."""
        if number not in self._codes:
            entry = self._entries[number]
            same = self._same and entry["magic"] == MAGIC
            self._codes[number] = marshal.loads(self._read(entry["frame"])) if same else self._from_source(entry)
        return self._codes[number]

    def _text(self, number: int) -> str:
        return bytes(self._read(self._texts[number]["frame"])).decode("utf-8", "surrogatepass")

    def _from_source(self, entry: Dict[str, Any]) -> CodeType:
        here = "%d.%d" % sys.version_info[:2]
        was = "it was saved by Python %s and this is Python %s" % (self._version, here)
        if entry.get("source") is None or entry.get("position") is None:
            raise CodeLost(was + ", and the source of this function was not to be had")
        key = (entry["source"], entry["flags"] & source._FUTURE_FLAGS)
        if key not in self._compiled:
            try:
                self._compiled[key] = source.Source(self._text(entry["source"]), entry["filename"], entry["flags"])
            except (SyntaxError, ValueError) as error:
                self._compiled[key] = CodeLost("%s, which cannot compile the cell (%s)" % (was, error))
        compiled = self._compiled[key]
        if isinstance(compiled, CodeLost):
            raise compiled
        code = compiled.find(entry["name"], entry["firstlineno"], entry["position"])
        if (
            code is None
            or source.arguments_of(code) != entry["arguments"]
            or set(code.co_freevars) != set(entry["freevars"])
        ):
            raise CodeLost(was + ", and the function was not found again in its source")
        return typing.cast(CodeType, code)


# --- saving: functions ---------------------------------------------------------------------------------------------


class ModuleGlobals:
    """Stands for the global names of an importable module in a pickle."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce_ex__(self, protocol: Any) -> Any:
        return module_globals, (self.name,)


class Definitions:
    """Takes functions and classes apart, for one dump. `helpers` is the private cloudpickle module."""

    def __init__(self, namespace: Dict[str, Any], inputs: Iterable[Any], helpers: Any) -> None:
        self.code = CodeTable(inputs)
        self._helpers = helpers
        self._namespace = namespace
        self._cells: Set[int] = set()
        self._modules: Dict[str, ModuleGlobals] = {}
        self._other_globals: Dict[int, Tuple[Dict[str, Any], Dict[str, Any]]] = {}

    def by_reference(self, value: Any) -> bool:
        """Whether an importable module has this very object under its own name."""
        try:
            return bool(self._helpers._should_pickle_by_reference(value))
        except Exception:
            return False

    def function(self, func: FunctionType) -> Tuple[Any, ...]:
        """The recipe of a function that cannot be imported."""
        supertype = getattr(func, "__supertype__", None)
        if supertype is not None and func.__code__.co_filename == typing.__file__:  # NewType before Python 3.10
            return typing.NewType, (func.__name__, supertype)
        number = self.code.add(func.__code__)
        cells = func.__closure__ or ()
        names = func.__code__.co_freevars
        global_names, extra = self._globals_of(func)
        state = {
            "name": func.__name__,
            "qualname": func.__qualname__,
            "module": func.__module__,
            "doc": func.__doc__,
            "defaults": func.__defaults__,
            "kwdefaults": func.__kwdefaults__,
            "annotations": _annotations_of(func),
            "dict": dict(func.__dict__),
            "cells": self._contents(cells),
            "globals": extra,
        }
        type_params = getattr(func, "__type_params__", ())
        if type_params:
            state["type_params"] = type_params
        named = tuple((name, cell) for name, cell in zip(names, cells))
        return make_function, (number, global_names, named), state, None, None, set_function

    def cell(self, cell: Any) -> Tuple[Any, ...]:
        """A closure cell. Its content is pickled once, with the first function (or holder) that has it."""
        if id(cell) in self._cells:
            return make_cell, ()
        contents = self._contents((cell,))
        if not contents:
            return make_cell, ()
        return make_cell, (), (contents[0][1],), None, None, set_cell

    def _contents(self, cells: Iterable[Any]) -> List[Tuple[Any, Any]]:
        found = []
        for cell in cells:
            if id(cell) in self._cells:
                continue
            self._cells.add(id(cell))
            try:
                found.append((cell, cell.cell_contents))
            except ValueError:
                continue  # empty, for instance a name deleted with `del`
        return found

    def _globals_of(self, func: FunctionType) -> Tuple[Any, Optional[Dict[str, Any]]]:
        """What stands for the function's global names, and the names to add to a private dictionary of them."""
        names = func.__globals__
        main = sys.modules.get("__main__")
        if names is self._namespace or (main is not None and names is main.__dict__):
            return self._namespace, None
        module_name = names.get("__name__")
        module = sys.modules.get(module_name) if isinstance(module_name, str) else None
        if module is not None and getattr(module, "__dict__", None) is names:
            return self._modules.setdefault(module.__name__, ModuleGlobals(str(module_name))), None
        if "__file__" not in names and "__spec__" not in names:
            return names, None  # a dictionary that somebody gave to `exec`: whoever holds it sees what functions set
        _, shared = self._other_globals.setdefault(id(names), (names, {}))
        wanted = set(self._helpers._extract_code_globals(func.__code__)) | {"__name__", "__package__", "__file__"}
        return shared, {name: names[name] for name in sorted(wanted) if name in names and name != "__builtins__"}

    # --- classes ---------------------------------------------------------------------------------------------------

    def class_(self, cls: type) -> Any:
        """The recipe of a class; NotImplemented where the pickler should refer to it by its name."""
        if cls in (type(None), type(Ellipsis), type(NotImplemented)):
            return type, ({type(None): None, type(Ellipsis): ..., type(NotImplemented): NotImplemented}[cls],)
        name = self._builtin_name(cls)
        if name is not None:
            return builtin_type, (name,)
        if self.by_reference(cls):
            return NotImplemented
        recipe = compiled_types.recipe_of(cls)
        if recipe is not None:
            return recipe
        refuse_compiled(cls)
        recipe = generated.recipe_of(cls)
        if recipe is not None:
            make, arguments, skip = recipe
            return make, arguments, self._class_state(cls, skip), None, None, set_class
        if issubclass(type(cls), enum.EnumMeta):
            return self._enum(cls)
        return (
            make_class,
            (type(cls), cls.__name__, cls.__bases__, _creation_names(cls)),
            self._class_state(cls),
            None,
            None,
            set_class,
        )

    def _builtin_name(self, cls: type) -> Optional[str]:
        if cls in (type(None), type(Ellipsis), type(NotImplemented)):
            return cls.__name__
        try:
            return typing.cast(Optional[str], self._helpers._BUILTIN_TYPE_NAMES.get(cls))
        except TypeError:  # a metaclass without a hash
            return None

    def _enum(self, cls: Any) -> Tuple[Any, ...]:
        inside = {
            member._name_: {k: v for k, v in vars(member).items() if k not in generated.ENUM_MEMBER_NAMES}
            for member in cls
        }
        arguments = (type(cls), cls.__name__, cls.__bases__, _creation_names(cls), generated.member_values(cls))
        skip = set(cls.__members__) | generated.enum_names(cls)
        state = self._class_state(cls, skip)
        state["members"] = {name: values for name, values in inside.items() if values}
        return make_enum, arguments, state, None, None, set_class

    def _class_state(self, cls: Any, skip: Iterable[str] = ()) -> Dict[str, Any]:
        state: Dict[str, Any] = {"attributes": {}}
        unwanted = set(skip) | {
            "__dict__",
            "__weakref__",
            "__module__",
            "_abc_impl",
            "__annotate_func__",
            "__annotate__",
            "__annotations_cache__",
        }
        dataclass = generated.dataclass_of(cls)
        if dataclass is not None:
            state["dataclass"], made = dataclass
            unwanted |= made
        for name in ("__init__", "__subclasshook__"):  # `typing` puts them into protocols, and does so again
            if getattr(cls.__dict__.get(name), "__module__", None) == "typing":
                unwanted.add(name)
        for name, value in list(cls.__dict__.items()):
            if name in unwanted or _is_own_slot(cls, value) or compiled_types.is_field(cls, name, value):
                continue
            state["attributes"][name] = value
        annotations = _annotations_of(cls) if "__annotations__" not in state["attributes"] else None
        if annotations:
            state["attributes"]["__annotations__"] = annotations
        if isinstance(cls, abc.ABCMeta):
            try:
                state["registered"] = [ref() for ref in abc._get_dump(cls)[0] if ref() is not None]  # type: ignore[attr-defined]
            except (AttributeError, TypeError):
                pass
        return state


def _annotations_of(thing: Any) -> Dict[str, Any]:
    """Annotations of a function or a class itself; those that cannot be evaluated (Python 3.14) are left out."""
    try:
        if issubclass(type(thing), type):
            found = thing.__dict__.get("__annotations__")
            if found is None and sys.version_info >= (3, 14):
                found = thing.__annotations__
        else:
            found = thing.__annotations__
    except Exception:
        return {}
    return dict(found) if isinstance(found, dict) else {}


def refuse_compiled(cls: type) -> None:
    """Raises CannotSave for a class written in C: it has no source and no attributes to take apart."""
    heap = bool(cls.__flags__ & (1 << 9))
    own = (types.MethodDescriptorType, types.WrapperDescriptorType)
    if not heap or any(isinstance(v, own) and v.__objclass__ is cls for v in list(cls.__dict__.values())):
        raise CannotSave("its class %s is compiled code that cannot be imported by name" % cls.__qualname__)


def _is_own_slot(cls: type, value: Any) -> bool:
    kinds = (types.MemberDescriptorType, types.GetSetDescriptorType)
    return isinstance(value, kinds) and getattr(value, "__objclass__", None) is cls


def _creation_names(cls: Any) -> Dict[str, Any]:
    """What a class must know at the moment it is made."""
    names = {"__module__": cls.__dict__.get("__module__", "__main__"), "__qualname__": cls.__qualname__}
    for name in ("__slots__", "__orig_bases__", "_is_protocol", *compiled_types.names_of(cls)):
        if name in cls.__dict__:
            value = cls.__dict__[name]
            names[name] = value if isinstance(value, (str, tuple, list, dict, bool)) else tuple(value)
    return names


# --- loading: functions --------------------------------------------------------------------------------------------


def module_globals(name: str) -> Dict[str, Any]:
    """The global names of an importable module. Raises ImportError."""
    importlib.import_module(name)
    return sys.modules[name].__dict__


def builtin_type(name: str) -> Any:
    """A type that Python gives no importable name, by its name in `types`."""
    return getattr(types, name)


def make_cell() -> Any:
    """An empty closure cell."""
    return types.CellType()


def set_cell(cell: Any, state: Any) -> None:
    """Fill a cell."""
    cell.cell_contents = state[0]


def code_object(number: int) -> Any:
    """A code object that a variable holds, or its tombstone."""
    context = current()
    try:
        return context.code.get(number)
    except CodeLost as error:
        return context.tombstone("code", str(error))


def make_function(number: int, global_names: Any, cells: Any) -> Any:
    """An empty shell of a function on the given global names; its tombstone where the code cannot be had."""
    context = current()
    try:
        code = context.code.get(number)
        by_name = dict(cells)
        closure = tuple(by_name[name] for name in code.co_freevars)
        return FunctionType(code, global_names, None, None, closure)
    except CodeLost as error:
        name = context.code.name(number)
        variable = context.variable
        info = context.lost(
            "function", str(error), name if name in ("<lambda>", variable) else "%s (in %s)" % (name, variable)
        )
        return Tombstone(dict(info, function=name))


def set_function(func: Any, state: Dict[str, Any]) -> None:
    """Give a function what it had."""
    if state["globals"] is not None and not isinstance(func, Tombstone):
        for name, value in state["globals"].items():
            func.__globals__.setdefault(name, value)
    for cell, content in state["cells"]:
        cell.cell_contents = content
    if isinstance(func, Tombstone):
        return
    func.__name__ = state["name"]
    func.__qualname__ = state["qualname"]
    func.__module__ = state["module"]
    func.__doc__ = state["doc"]
    func.__defaults__ = state["defaults"]
    func.__kwdefaults__ = state["kwdefaults"]
    func.__annotations__ = state["annotations"]
    func.__dict__.update(state["dict"])
    if state.get("type_params") and hasattr(func, "__type_params__"):
        func.__type_params__ = state["type_params"]


# --- loading: classes ----------------------------------------------------------------------------------------------


def make_class(meta: Any, name: str, bases: Tuple[Any, ...], names: Dict[str, Any]) -> Any:
    """An empty class of the same kind. No code of the notebook (metaclass, ``__init_subclass__``) runs for it."""
    maker = _library_metaclass(meta)
    with _without_init_subclass(bases):
        return maker.__new__(maker if maker is meta else meta, name, bases, dict(names))


def make_enum(meta: Any, name: str, bases: Tuple[Any, ...], names: Dict[str, Any], members: Dict[str, Any]) -> Any:
    """An enumeration with its members; methods follow."""
    maker = _library_metaclass(meta)
    body = maker.__prepare__(name, bases)
    for key, value in names.items():
        body[key] = value
    body["__new__"] = generated.member_maker(bases)
    for key, value in members.items():
        body[key] = value
    with _without_init_subclass(bases):
        return maker.__new__(meta, name, bases, body)


def new_by_base(cls: Any, *arguments: Any) -> Any:
    """An instance made by the nearest ``__new__`` that is not the notebook's own, whose arguments are not known."""
    for base in cls.__mro__:
        make = base.__dict__.get("__new__")
        if make is not None and not isinstance(getattr(make, "__func__", make), FunctionType):
            return base.__new__(cls, *arguments)
    return object.__new__(cls)


def set_class(cls: Any, state: Dict[str, Any]) -> None:
    """Put the attributes into a class that was made empty."""
    for name, value in state["attributes"].items():
        _set_attribute(cls, name, value)
    if "dataclass" in state:
        generated.apply_dataclass(cls, state["dataclass"])
        for name, value in state["attributes"].items():
            if not isinstance(cls.__dict__.get(name), types.MemberDescriptorType):
                _set_attribute(cls, name, value)
    for registered in state.get("registered") or ():
        if isinstance(registered, type):
            cls.register(registered)
    for name, values in (state.get("members") or {}).items():
        for key, value in values.items():
            object.__setattr__(cls.__members__[name], key, value)


def _set_attribute(cls: Any, name: str, value: Any) -> None:
    info = loss_of(value)
    if info is not None and info.get("function"):
        value = lost_function(info)
    try:
        type.__setattr__(cls, name, value)
    except (AttributeError, TypeError):
        if name not in ("__slots__", "__abstractmethods__", "__type_params__"):
            current().note("the attribute %s of class %s could not be set again" % (name, cls.__name__))


def _library_metaclass(meta: Any) -> Any:
    """The nearest metaclass that is not the notebook's own."""
    for candidate in meta.__mro__:
        if candidate.__module__ != "__main__" and issubclass(candidate, type):
            return candidate
    return type


def _do_nothing(cls: Any, **arguments: Any) -> None:
    return None


_nothing: Any = _do_nothing


class _without_init_subclass:  # noqa: N801
    """Hides the notebook's own ``__init_subclass__`` while one of its subclasses is made empty.

    It ran when the class was first defined, with arguments that an empty class does not have; what it did is in the
    attributes that are put back.
    """

    def __init__(self, bases: Tuple[Any, ...]) -> None:
        self._hidden: List[Tuple[Any, Any]] = []
        self._owners = {cls for base in bases for cls in getattr(base, "__mro__", ()) if cls.__module__ == "__main__"}

    def __enter__(self) -> None:
        for cls in self._owners:
            own = cls.__dict__.get("__init_subclass__")
            if own is not None:
                self._hidden.append((cls, own))
                type.__setattr__(cls, "__init_subclass__", classmethod(_nothing))

    def __exit__(self, *error: Any) -> None:
        for cls, own in self._hidden:
            type.__setattr__(cls, "__init_subclass__", own)
