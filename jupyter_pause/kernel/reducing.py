# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""How each object is taken apart, and what its fate is: the one place that capture and scan both ask.

`Reducer.handler_of` picks, once per type, one of a few ways: by recipe of ours, by Python's own pickling rules, or
not at all. A failure never leaves this module as an error: it becomes a `Lost` with its reason.
"""

from __future__ import annotations

import copyreg
import functools
import logging
import pickle
import sys
import types
import typing
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from . import arrays, compiled_types, credentials, devices, generated, inside, living, recipes, revivers, sizes
from .context import live_main, live_shell
from .definitions import CannotSave, Definitions, ModuleGlobals, code_object, new_by_base, refuse_compiled
from .revivers import references
from .sizes import ATOMS
from .tombstone import Tombstone, loss_of

PROTOCOL = 5
CONTAINERS = frozenset((list, tuple, dict, set, frozenset))
#: Libraries whose own pickling copies all their data: never called just to look. Ours does where it stands for a
#: storage on a GPU.
COSTLY = frozenset("torch tensorflow jax jaxlib cupy pyarrow polars xgboost lightgbm catboost dask pyspark ray".split())
COSTLY |= {__name__.partition(".")[0]}


class Lost(Exception):
    """This object cannot be saved; the text is the reason, as a clause."""


class Handler:
    """How objects of one type are treated. `way` is one of: own, recipe, revive, lost, plain."""

    __slots__ = ("call", "note", "reason", "reviver", "way")

    def __init__(self, way: str, call: Callable[[Any], Any], reviver: Any = None, reason: str = "") -> None:
        self.way = way
        self.call = call
        self.reviver = reviver
        self.reason = reason
        #: Says of an object that is kept what a person should know about that; None for nearly all types.
        self.note: Optional[Callable[[Any], Optional[str]]] = None


class Reducer:
    """Takes objects apart for one dump or one scan of a namespace."""

    def __init__(self, namespace: Dict[str, Any], helpers: Any, inputs: Iterable[Any], help: revivers.Help) -> None:
        revivers.load()
        self.namespace = namespace
        self.definitions = Definitions(namespace, inputs, helpers)
        self.help = help
        self.handlers: Dict[type, Handler] = {}
        #: Top-level names of the packages that the checkpoint refers to.
        self.packages: Set[str] = set()
        #: Kinds of devices that hold arrays of it.
        self.devices: Set[str] = set()
        self._bad_classes: Dict[type, str] = {}
        self._singletons: Dict[type, Dict[int, str]] = {}
        self._helpers = helpers
        self._living = living.Living()
        self._table = {
            kind: function
            for kind, function in helpers.Pickler._dispatch_table.items()
            if kind.__module__ not in ("_io", "logging")
        }
        getter = namespace.get("get_ipython")
        self._shell = None
        if callable(getter) and type(getattr(getter, "__self__", None)).__module__.startswith(("IPython", "ipykernel")):
            self._shell = getter.__self__

    # --- choosing ----------------------------------------------------------------------------------------------

    def handler_of(self, cls: type) -> Handler:
        """The way for a type, chosen once."""
        handler = self.handlers.get(cls)
        if handler is None:
            handler = self._choose(cls)
            if devices.may_be(cls):
                handler.call = functools.partial(self._of_device, handler.call)
            handler.note = credentials.reader_of(cls)
            self.handlers[cls] = handler
            self._count(getattr(cls, "__module__", None))
        return handler

    def _of_device(self, call: Callable[[Any], Any], value: Any) -> Any:
        kind = devices.kind_of(value)
        if kind is not None:
            self.devices.add(kind)
        return call(value)

    def _count(self, module: Any) -> None:
        if isinstance(module, str):
            self.packages.add(module.split(".")[0])

    def _choose(self, cls: type) -> Handler:
        if issubclass(cls, type):
            return Handler("own", self._class)
        own = _OWN.get(cls)
        if own is not None:
            return Handler("own", functools.partial(own, self))
        if cls in self._living.types:
            return Handler("own", self._living_or_generic)
        if arrays.serves(cls):
            return Handler("own", self._array)
        if cls is getattr(arrays.module(), "ufunc", None):
            return Handler("own", self._ufunc)
        if self._is_live(cls):
            return Handler("own", self._live)
        reviver = revivers.find(cls)
        if reviver is not None:
            return Handler("revive", functools.partial(self._revive, reviver), reviver)
        reason = revivers.hopeless(cls)
        if reason is not None:
            return Handler("lost", functools.partial(_raise, reason), reason=reason)
        table = self._table.get(cls) or copyreg.dispatch_table.get(cls)
        if table is not None:
            return Handler("recipe", functools.partial(self._by_table, table))
        standard = cls.__reduce_ex__ is object.__reduce_ex__ and cls.__reduce__ is object.__reduce__
        plain = (
            standard
            and getattr(cls, "__getstate__", None) is getattr(object, "__getstate__", None)
            and not hasattr(cls, "__getnewargs_ex__")
            and not hasattr(cls, "__getnewargs__")
        )
        if standard and generated.pickles_as_dataclass(cls) and not self.definitions.by_reference(cls):
            return Handler("recipe", self._frozen_with_slots)
        way = inside.way_of(cls)
        if way is not None:
            return Handler("recipe", functools.partial(self._inside, way))
        return Handler("plain" if plain else "recipe", self._generic)

    def _require_class(self, cls: type) -> None:
        """Raises Lost where a recipe needs a class that can neither be imported nor taken apart."""
        reason = self._bad_classes.get(cls)
        if reason is None:
            reason = ""
            if not self.definitions.by_reference(cls) and self.definitions._builtin_name(cls) is None:
                try:
                    refuse_compiled(cls)
                except CannotSave as error:
                    reason = str(error)
            self._bad_classes[cls] = reason
        if reason:
            raise Lost(reason)

    def _is_live(self, cls: type) -> bool:
        module = getattr(cls, "__module__", "") or ""
        own = module.startswith(("ipykernel.", "IPython.")) and not module.startswith("ipykernel.comm.")
        return own and self._shell is not None

    # --- the ways ----------------------------------------------------------------------------------------------

    def reduce(self, value: Any) -> Any:
        """A recipe, or NotImplemented where the pickler knows what to do. Raises Lost."""
        return self.handler_of(type(value)).call(value)

    def _class(self, cls: Any) -> Any:
        try:
            recipe = self.definitions.class_(cls)
        except CannotSave as error:
            raise Lost(str(error)) from None
        except RecursionError:
            raise
        except Exception as error:
            raise Lost(reason_of(error)) from None
        if recipe is NotImplemented:
            self._count(cls.__module__)
        return recipe

    def _function(self, func: Any) -> Any:
        if self.definitions.by_reference(func):
            self._count(func.__module__)
            return NotImplemented
        return self.definitions.function(func)

    def _cell(self, cell: Any) -> Any:
        return self.definitions.cell(cell)

    def _code(self, code: Any) -> Any:
        return code_object, (self.definitions.code.add(code),)

    def _module(self, module: ModuleType) -> Any:
        name = module.__name__
        if module is sys.modules.get("__main__") or module.__dict__ is self.namespace:
            return live_main, ()
        if sys.modules.get(name) is module:
            self._count(name)
            return recipes.import_module, (name, revivers.modules_inside(name) if hasattr(module, "__path__") else [])
        names = {
            key: value
            for key, value in module.__dict__.items()
            if key not in ("__builtins__", "__loader__", "__spec__")
        }
        return recipes.make_module, (name, module.__doc__), names, None, None, recipes.fill_module

    def _array(self, array: Any) -> Any:
        try:
            recipe = arrays.reduce(array)
        except Exception as error:
            raise Lost(reason_of(error)) from None
        return self._generic(array) if recipe is NotImplemented else recipe

    def _tombstone(self, value: Tombstone) -> Any:
        raise Lost((loss_of(value) or {}).get("reason") or "it was lost before")

    def _builtin(self, value: Any) -> Any:
        owner = getattr(value, "__self__", None)
        if (
            self._shell is not None
            and owner is not None
            and not isinstance(owner, ModuleType)
            and self._is_live(type(owner))
        ):
            return getattr, (owner, value.__name__)
        return self._generic(value)

    def _method(self, value: types.MethodType) -> Any:
        return types.MethodType, (value.__func__, value.__self__)

    def _revive(self, reviver: revivers.Reviver, value: Any) -> Any:
        if isinstance(reviver, references.Cached) and self._global_name(value, value.__qualname__):
            return value.__qualname__
        try:
            return reviver.reduce(value, self.help)
        except revivers.CannotRevive as error:
            raise Lost(str(error)) from None
        except Exception as error:
            raise Lost(reason_of(error)) from None

    def _live(self, value: Any) -> Any:
        if value is self._shell:
            return live_shell, ()
        if value is getattr(self._shell, "kernel", None):
            return live_shell, ("kernel",)
        for name in ("stdout", "stderr", "stdin"):
            if value is getattr(sys, name, None):
                return recipes.live_stream, (name,)
        for name in (
            "history_manager",
            "display_pub",
            "displayhook",
            "events",
            "user_module",
            "compile",
            "magics_manager",
        ):
            if value is getattr(self._shell, name, None):
                return live_shell, (name,)
        return self._generic(value)

    def _by_table(self, function: Callable[[Any], Any], value: Any) -> Any:
        try:
            return self._checked(value, function(value))
        except (Lost, RecursionError):
            raise
        except Exception as error:
            raise Lost(reason_of(error)) from None

    def _generic(self, value: Any) -> Any:
        try:
            recipe = value.__reduce_ex__(PROTOCOL)
        except RecursionError:
            raise
        except Exception as error:
            raise Lost(reason_of(error)) from None
        return self._checked(value, recipe)

    def _frozen_with_slots(self, value: Any) -> Any:
        """By its values: an instance that is an attribute of its own class comes back before the class's rules do."""
        recipe = self._generic(value)
        if type(recipe) is tuple and recipe[0] in (_NEW[0], new_by_base) and len(recipe) > 2:
            return (*recipe[:2], generated.values_inside(value), *recipe[3:5], generated.put_values_inside)
        return recipe

    def _inside(self, way: Callable[[Any], Any], value: Any) -> Any:
        """Past its own methods, where these would get in the way."""
        self._require_class(type(value))
        return self._by_table(way, value)

    def _living_or_generic(self, value: Any) -> Any:
        return self._living.recipe_of(value) or self._generic(value)

    def _ufunc(self, value: Any) -> Any:
        if self._global_name(value, value.__name__):
            return value.__name__
        recipe = arrays.reduce_ufunc(value)
        return self._generic(value) if recipe is NotImplemented else recipe

    def _checked(self, value: Any, recipe: Any) -> Any:
        """What the pickler would refuse later is refused here, where the object is known."""
        if type(recipe) is tuple and 2 <= len(recipe) <= 6 and callable(recipe[0]) and type(recipe[1]) is tuple:
            if recipe[0] in _NEW:
                self._require_class(recipe[1][0])
                if recipe[0] is _NEW[0] and self._has_own_new(type(value)):
                    return (new_by_base, *recipe[1:])
                if len(recipe[1]) == 1 and (len(recipe) == 2 or recipe[2] is None):
                    return self._singleton(value) or recipe
            elif isinstance(recipe[0], type) and _is_unrelated(recipe[0], type(value)):
                raise Lost("its own rules for saving make %s of it" % recipe[0].__qualname__)
            return recipe
        if isinstance(recipe, str):
            if not self._global_name(value, recipe):
                raise Lost("it is known by the name %s only, which cannot be imported" % recipe)
            return recipe
        if recipe is NotImplemented:
            return recipe
        raise Lost("its own rules for saving give something that cannot be used")

    @staticmethod
    def _has_own_new(cls: type) -> bool:
        """A notebook's class whose ``__new__`` was called when the object was made, with arguments now unknown."""
        own = cls.__new__
        rules = (getattr(cls, "__getnewargs__", None), getattr(cls, "__getnewargs_ex__", None))
        return (
            isinstance(own, FunctionType)
            and own.__module__ == "__main__"
            and not any(isinstance(rule, FunctionType) for rule in rules)
        )

    def _singleton(self, value: Any) -> Optional[str]:
        """The name of a marker object in the module of its class (``dataclasses.MISSING``): there must be only one."""
        cls = type(value)
        names = self._singletons.get(cls)
        if names is None:
            names = {}
            module = sys.modules.get(cls.__module__)
            if (
                module is not None
                and cls.__module__ not in ("builtins", "__main__")
                and not getattr(cls, "__slots__", ())
            ):
                names = {id(item): key for key, item in list(vars(module).items()) if type(item) is cls}
            self._singletons[cls] = names
        name = names.get(id(value))
        if name is None or getattr(value, "__module__", None) != cls.__module__ or getattr(value, "__dict__", None):
            return None
        return name

    def _global_name(self, value: Any, name: str) -> bool:
        """Whether the pickler will find this very object by name in an importable module."""
        try:
            module = pickle.whichmodule(value, name)  # type: ignore[attr-defined]
            found: Any = sys.modules[module] if module != "__main__" else None
            for part in name.split("."):
                found = getattr(found, part)
        except Exception:
            return False
        self._count(module)
        return found is value

    def _typing_marker(self, value: Any) -> Any:
        if self._global_name(value, value.__name__):
            return value.__name__
        return type(value), (value.__name__,)

    def _newtype(self, value: Any) -> Any:
        if self._global_name(value, value.__qualname__):
            return value.__qualname__
        return typing.NewType, (value.__name__, value.__supertype__)

    def _module_globals(self, value: ModuleGlobals) -> Any:
        return value.__reduce_ex__(PROTOCOL)

    # --- looking only ------------------------------------------------------------------------------------------

    def judge(self, value: Any) -> Tuple[str, Optional[str]]:
        """(fate, reason) of one object by itself, without any effect on it: in checkpoint, rebuilt or lost."""
        handler = self.handler_of(type(value))
        if handler.way == "lost":
            return "lost", handler.reason
        if type(value) is Tombstone:
            return "lost", (loss_of(value) or {}).get("reason")
        if handler.way == "revive":
            try:
                reason = handler.reviver.describe(value)
            except revivers.CannotRevive as error:
                return "lost", str(error)
            except Exception as error:
                return "lost", reason_of(error)
            return ("rebuilt" if handler.reviver.is_rebuilt(value) else "in checkpoint"), reason
        if handler.note is not None:
            return "in checkpoint", handler.note(value)
        return ("rebuilt" if self._is_imported(value) else "in checkpoint"), None

    def _is_imported(self, value: Any) -> bool:
        """A module that comes back by importing it again; one made by hand is stored with its content."""
        if not issubclass(type(value), ModuleType):
            return False
        # Past the module's own look-up: asking a lazy module for its name would import it.
        names: Any = vars(ModuleType)["__dict__"]
        name = names.__get__(value).get("__name__")
        return type(name) is str and value is sys.modules.get(name)

    def look(self, value: Any) -> Any:
        """The recipe of an object where having it costs nothing and changes nothing; else None. Raises Lost."""
        cls = type(value)
        if cls in ATOMS:
            return None
        handler = self.handler_of(cls)
        if handler.way in ("own", "revive", "lost") or sizes.package_of(cls) in COSTLY:
            return None
        # The state of what pandas makes refers to its arrays and copies none.
        if sizes.package_of(cls) != "pandas" and sizes.held_bytes(value) > 1 << 20:
            return None
        return handler.call(value)


_NEW = (copyreg.__newobj__, copyreg.__newobj_ex__)  # type: ignore[attr-defined]


def _is_unrelated(made: type, cls: type) -> bool:
    """Whether calling `made` cannot give an object of `cls`: the recipe of a type that is no relative lies."""
    if made is cls or issubclass(made, cls) or not cls.__flags__ & (1 << 9):
        return False  # types in C are Python's and libraries' own: what they say is so
    # A type of a library may stand for several, as `pathlib.Path` does; a type that a person wrote says what it is.
    return not issubclass(cls, made) or (cls.__module__ == "__main__" and not isinstance(made.__new__, FunctionType))


def _raise(reason: str, value: Any) -> Any:
    raise Lost(reason)


def reason_of(error: BaseException) -> str:
    """An exception as a clause; long texts are cut."""
    text = " ".join(str(error).split())
    if len(text) > 200:
        text = text[:197] + "..."
    return (
        "saving it raised %s: %s" % (type(error).__name__, text)
        if text
        else "saving it raised %s" % type(error).__name__
    )


_OWN: Dict[type, Callable[..., Any]] = {
    FunctionType: Reducer._function,
    types.CellType: Reducer._cell,
    types.CodeType: Reducer._code,
    ModuleType: Reducer._module,
    types.MethodType: Reducer._method,
    types.BuiltinFunctionType: Reducer._builtin,
    Tombstone: Reducer._tombstone,
    ModuleGlobals: Reducer._module_globals,
}
for _name in ("ParamSpec", "TypeVarTuple"):
    if hasattr(typing, _name):
        _OWN[getattr(typing, _name)] = Reducer._typing_marker
if isinstance(typing.NewType, type):
    _OWN[typing.NewType] = Reducer._newtype


def children(value: Any, reducer: Reducer) -> List[Tuple[str, Any]]:
    """What the pickler would visit inside an object, each with the path suffix that leads to it."""
    cls = type(value)
    if cls is dict:
        return [("[%s]" % key_text(key), item) for key, item in list(value.items())] + [
            (".keys()", k) for k in list(value) if type(k) not in ATOMS
        ]
    if cls in (list, tuple):
        return [("[%d]" % index, item) for index, item in enumerate(value)]
    if cls in (set, frozenset):
        return [("{...}", item) for item in list(value)]
    if cls is FunctionType:
        return _inside_function(value, reducer)
    if cls is types.CellType:
        try:
            return [(".cell_contents", value.cell_contents)]
        except ValueError:
            return []
    if cls is types.MethodType:
        return [(".__self__", value.__self__), (".__func__", value.__func__)]
    if cls is functools.partial:
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    if issubclass(type(value), type):
        return _inside_class(value, reducer)
    handler = reducer.handler_of(cls)
    if handler.way == "revive":
        return _inside_revived(value, handler)
    if handler.way == "own":
        np = arrays.module()
        if np is not None and isinstance(value, np.ndarray) and value.dtype.hasobject:
            places = "[%d]" if value.ndim == 1 else "[...]"
            return [(places % index if value.ndim == 1 else places, item) for index, item in enumerate(value.flat)]
        return []
    if cls.__name__ == "DataFrame" and cls.__module__.split(".")[0] == "pandas":
        return _columns(value)
    return _inside_recipe(value, reducer)


def _columns(frame: Any) -> List[Tuple[str, Any]]:
    """Columns of a pandas DataFrame that hold any objects."""
    found = []
    for number, name in enumerate(frame.columns):
        column = frame.iloc[:, number]
        if column.dtype == object:
            found.append(("[%s]" % key_text(name), column.to_numpy()))
    return found


def key_text(key: Any) -> str:
    """A dictionary key inside a path."""
    if type(key) is str:
        return '"%s"' % (key if len(key) <= 60 else key[:57] + "...").replace('"', '\\"')
    return repr(key) if type(key) in (int, bool, float, bytes, type(None)) else "..."


def _inside_function(value: Any, reducer: Reducer) -> List[Tuple[str, Any]]:
    if reducer.definitions.by_reference(value):
        return []
    found: List[Tuple[str, Any]] = []
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
        try:
            found.append((".<%s>" % name, cell.cell_contents))
        except ValueError:
            continue
    found += [(".__defaults__", value.__defaults__), (".__kwdefaults__", value.__kwdefaults__)]
    return found + [("." + name, item) for name, item in value.__dict__.items()]


def _inside_class(value: Any, reducer: Reducer) -> List[Tuple[str, Any]]:
    if reducer.definitions.by_reference(value) or reducer.definitions._builtin_name(value) is not None:
        return []
    skip = (
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "_abc_impl",
        "__dataclass_fields__",
        "__dataclass_params__",
    )
    found = []
    for name, item in list(value.__dict__.items()):
        made = isinstance(item, (types.MemberDescriptorType, types.GetSetDescriptorType))
        if name not in skip and not made and not compiled_types.is_field(value, name, item):
            found.append(
                ("." + name, getattr(item, "__func__", item) if isinstance(item, (staticmethod, classmethod)) else item)
            )
    return found + [(".__bases__", base) for base in value.__bases__]


def _inside_revived(value: Any, handler: Handler) -> List[Tuple[str, Any]]:
    if not handler.reviver.rebuilt:  # its recipe has no effect, and holds what the object holds
        try:
            return inside_recipe(value, handler.call(value))
        except (Lost, RecursionError):
            return []
    inner = getattr(value, "queue", None)
    if inner is not None and type(value).__module__ == "queue":
        return [(".queue[%d]" % index, item) for index, item in enumerate(list(inner))]
    if hasattr(value, "__wrapped__"):
        return [("", value.__wrapped__)]
    if isinstance(value, logging.Logger):
        return [(".handlers[%d]" % number, handler) for number, handler in enumerate(value.handlers)]
    return []


def _inside_recipe(value: Any, reducer: Reducer) -> List[Tuple[str, Any]]:
    try:
        return inside_recipe(value, reducer.look(value))
    except (Lost, RecursionError):
        return []


def inside_recipe(value: Any, recipe: Any) -> List[Tuple[str, Any]]:
    """What a recipe refers to, with path suffixes."""
    if not isinstance(recipe, tuple):
        return []
    past = inside.inside(value, recipe, key_text)
    if past is not None:
        return past + ([(".__class__", type(value))] if type(value).__module__ == "__main__" else [])
    arguments = recipe[1]
    if recipe[0] in _NEW or recipe[0] is new_by_base:
        arguments = arguments[1:]
    found: List[Tuple[str, Any]] = [
        ("" if len(arguments) == 1 else ".args[%d]" % i, a) for i, a in enumerate(arguments)
    ]
    if type(value).__module__ == "__main__":
        found.append((".__class__", type(value)))
    state = recipe[2] if len(recipe) > 2 else None
    parts = state if type(state) is tuple else (state,)
    for part in parts:
        if type(part) is dict:
            found += [("." + str(name), item) for name, item in list(part.items())]
        elif part is not None:
            found.append((".state", part))
    return found + _inside_items(value, recipe)


def _inside_items(value: Any, recipe: Tuple[Any, ...]) -> List[Tuple[str, Any]]:
    found: List[Tuple[str, Any]] = []
    if len(recipe) > 3 and recipe[3] is not None:
        found += [("[%d]" % index, item) for index, item in enumerate(recipe[3])]
    if len(recipe) > 4 and recipe[4] is not None:
        found += [("[%s]" % key_text(key), item) for key, item in recipe[4]]
    return found
