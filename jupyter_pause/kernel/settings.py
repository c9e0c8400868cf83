# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Settings of the process that cells changed: they hold for every later cell, and no variable stands for them.

Only what differs from the process's own start (or from a library's defaults) is kept. It travels as the internal
variable `NAME`, so that functions and handlers among it stay one object with the variables that hold them. Each part is
read and written alone: one that fails is a named loss. Reading runs no code of the person's, as the inventory reads
too: what is not plain is compared by identity, and asked for by its type.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # C code, unknown to type stubs
import importlib.util
import logging
import signal
import sys
import types
import warnings
from typing import Any, Callable, Dict, List, Tuple

from . import sizes
from .inside import attributes_of
from .tombstone import loss_of

NAME = "__jupyter_pause_settings__"
#: What a person reads in place of `NAME`.
TITLE = "settings"
_PLAIN = (bool, int, float, str, type(None))
#: Signals that the kernel handles itself.
_KERNEL_SIGNALS = ("SIGINT", "SIGKILL", "SIGSTOP")
#: Who sets handlers that every process sets for itself.
_KERNEL_MODULES = ("ipykernel", "IPython", "tornado", "asyncio", "zmq", "jupyter_pause_kernel", "faulthandler")


class Start:
    """How the process was set when the kernel had started and before the first cell ran."""

    def __init__(self, shell: Any) -> None:
        self.recursion = sys.getrecursionlimit()
        self.warnings = list(warnings.filters)
        self.signals = _signals()
        self.loggers = {name: _state_of(logger) for name, logger in _loggers()}
        self.callbacks = {event: list(calls) for event, calls in _callbacks(shell).items()}
        self.magics = {kind: dict(known) for kind, known in _magics(shell).items()}
        self.config = {name: dict(values) for name, values in _config(shell).items()}


def collect(shell: Any, start: Start) -> Dict[str, Any]:
    """Part -> what cells changed in it. Parts that cannot be read are left out."""
    found = {}
    for name, (read, _) in _PARTS.items():
        try:
            value = read(shell, start)
        except Exception:  # another version of a library, with other insides
            continue
        if value is not None and not (type(value) is dict and not value):
            found[name] = value
    return found


def say_title(losses: List[Dict[str, Any]]) -> None:
    """Call settings by a person's word in losses found inside the variable `NAME`."""
    for loss in losses:
        if loss["name"] == NAME:
            loss.update(name=TITLE, path=loss["path"].replace(NAME, TITLE, 1))


def apply(shell: Any, state: Any) -> List[Dict[str, Any]]:
    """Set everything again; returns losses."""
    losses: List[Dict[str, Any]] = []
    for name, value in (state if isinstance(state, dict) else {}).items():
        if name not in _PARTS or loss_of(value) is not None:
            continue
        try:
            with warnings.catch_warnings() if name != "warnings" else _Nothing():
                _PARTS[name][1](shell, value)
        except Exception as error:
            reason = "it could not be set again: %s: %s" % (type(error).__name__, error)
            losses.append({"name": TITLE, "path": name, "type": "setting", "reason": reason, "cell": None})
    return losses


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


# --- looking without running anything ------------------------------------------------------------------------------

#: Whose objects may be compared by their own rules.
_COMPARED = ("cycler",)
_LAZY: Any = getattr(importlib.util, "_LazyModule", ())


def _differs(one: Any, other: Any) -> bool:
    """Whether two values differ; objects that are not plain are equal only to themselves."""
    if one is other:
        return False
    kind = type(one)
    if kind in _PLAIN and type(other) in _PLAIN:
        return bool(one != other)
    if kind is not type(other):
        return True
    if kind in (list, tuple):
        return len(one) != len(other) or any(_differs(left, right) for left, right in zip(one, other))
    if kind is dict and _is_plain(list(one)) and _is_plain(list(other)):
        return one.keys() != other.keys() or any(_differs(one[key], other[key]) for key in one)
    if (kind is set and _is_plain(one) and _is_plain(other)) or sizes.package_of(kind) in _COMPARED:
        return bool(one != other)
    return True


def _is_in(item: Any, items: Any) -> bool:
    return any(item is one for one in items)


def _imported(name: str) -> Any:
    """A module in use; None for one whose import still waits for its first use."""
    module = sys.modules.get(name)
    return None if module is None or issubclass(type(module), _LAZY) else module


def _module_of(function: Any) -> str:
    """Where a callable, or its class, was defined."""
    kind = type(function)
    if kind is types.MethodType:
        return _module_of(function.__func__)
    if kind in (types.FunctionType, types.BuiltinFunctionType):
        module = function.__module__
    else:
        module = type.__dict__["__module__"].__get__(function if issubclass(kind, type) else kind)
    return module if type(module) is str else ""


# --- Python --------------------------------------------------------------------------------------------------------


def _read_recursion(shell: Any, start: Start) -> Any:
    now = sys.getrecursionlimit()
    return now if now != start.recursion else None


def _write_recursion(shell: Any, value: int) -> None:
    sys.setrecursionlimit(value)


def _read_warnings(shell: Any, start: Start) -> Any:
    now = list(warnings.filters)
    same = len(now) == len(start.warnings) and all(item is before for item, before in zip(now, start.warnings))
    return None if same else now


def _write_warnings(shell: Any, value: List[Any]) -> None:
    filters: Any = warnings.filters
    filters[:] = [item for item in value if type(item) is tuple and loss_of(item[2]) is None]
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):  # tells what was compiled from the old ones
        told = getattr(warnings, name, None)
        if told is not None:
            told()
            break


def _signals() -> Dict[str, Any]:
    names = [item.name for item in signal.Signals if item.name not in _KERNEL_SIGNALS]
    held = {name: _signal.getsignal(getattr(signal, name)) for name in names}  # `signal.getsignal` would compare them
    return {name: signal.Handlers(item) if type(item) is int else item for name, item in held.items()}


def _read_signals(shell: Any, start: Start) -> Any:
    return {
        name: handler
        for name, handler in _signals().items()
        if handler is not None and handler is not start.signals.get(name) and not _is_kernels(handler)
    }


def _write_signals(shell: Any, value: Dict[str, Any]) -> None:
    for name, handler in value.items():
        if loss_of(handler) is None:
            signal.signal(getattr(signal, name), handler)


def _is_kernels(function: Any) -> bool:
    return _module_of(function).split(".")[0] in _KERNEL_MODULES


def _loggers() -> List[Tuple[str, Any]]:
    known = logging.root.manager.loggerDict
    return [("", logging.root)] + [
        (n, item) for n, item in list(known.items()) if issubclass(type(item), logging.Logger)
    ]


def _state_of(logger: Any) -> Any:
    held = attributes_of(logger)
    return held["level"], list(held["handlers"]), list(held["filters"]), held["propagate"], held["disabled"]


_NEVER_SET: Any = (logging.NOTSET, [], [], True, False)


def _read_loggers(shell: Any, start: Start) -> Any:
    found = {}
    for name, logger in _loggers():
        state = _state_of(logger)
        before = start.loggers.get(name)
        if before is None and all(type(handler) is logging.NullHandler for handler in state[1]):
            before, state = _NEVER_SET, (state[0], [], *state[2:])  # a library made it silent
        if _differs(state, before):
            found[name] = logger
    return found


def _write_loggers(shell: Any, value: Any) -> None:
    return None  # a logger sets itself when it comes back


def _read_decimal(shell: Any, start: Start) -> Any:
    decimal = _imported("decimal")
    if decimal is None:
        return None
    now, usual = decimal.getcontext(), decimal.DefaultContext
    if type(now) is not decimal.Context:
        return now
    same = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp", "traps")
    return None if all(getattr(now, name) == getattr(usual, name) for name in same) else now.copy()


def _write_decimal(shell: Any, value: Any) -> None:
    import decimal

    decimal.setcontext(value)


# --- IPython -------------------------------------------------------------------------------------------------------


def _callbacks(shell: Any) -> Dict[str, List[Any]]:
    return dict(getattr(getattr(shell, "events", None), "callbacks", {}))


def _is_notebooks(function: Any) -> bool:
    owner = function.__self__ if type(function) in (types.MethodType, types.BuiltinFunctionType) else None
    modules = (_module_of(function), "" if owner is None else _module_of(type(owner)))
    return callable(function) and "__main__" in modules


def _read_callbacks(shell: Any, start: Start) -> Any:
    """Those of the notebook: an extension registers its own again."""
    return {
        event: new
        for event, calls in _callbacks(shell).items()
        for known in [start.callbacks.get(event, ())]
        for new in [[call for call in calls if not _is_in(call, known) and _is_notebooks(call)]]
        if new
    }


def _write_callbacks(shell: Any, value: Dict[str, List[Any]]) -> None:
    for event, calls in value.items():
        for call in calls:
            if loss_of(call) is None and call not in shell.events.callbacks.get(event, ()):
                shell.events.register(event, call)


def _magics(shell: Any) -> Dict[str, Dict[str, Any]]:
    return dict(getattr(getattr(shell, "magics_manager", None), "magics", {}))


def _read_magics(shell: Any, start: Start) -> Any:
    return {
        kind: new
        for kind, known in _magics(shell).items()
        for before in [start.magics.get(kind, {})]
        for new in [{n: call for n, call in known.items() if before.get(n) is not call and _is_notebooks(call)}]
        if new
    }


def _write_magics(shell: Any, value: Dict[str, Dict[str, Any]]) -> None:
    for kind, known in value.items():
        for name, call in known.items():
            if loss_of(call) is None:
                shell.magics_manager.magics[kind][name] = call


def _config(shell: Any) -> Dict[str, Dict[str, Any]]:
    """Class -> trait -> value, of what ``%config`` can change and is plain."""
    found = {}
    for item in getattr(shell, "configurables", ()):
        traits, values = _traits(item), attributes_of(item)["_trait_values"]
        found[type(item).__name__] = {
            name: values[name] for name in traits if name in values and _is_plain(values[name])
        }
    return found


def _traits(item: Any) -> Dict[str, Any]:
    """What ``%config`` can change, past the object's own methods."""
    known: Dict[str, Any] = sys.modules["traitlets.traitlets"].HasTraits.traits(item, config=True)
    return known


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set):
        return all(type(item) in _PLAIN for item in value)
    if type(value) is dict:
        return all(type(key) in _PLAIN and type(item) in _PLAIN for key, item in value.items())
    return type(value) in _PLAIN


def _read_config(shell: Any, start: Start) -> Any:
    found = {}
    now = _config(shell)
    for item in getattr(shell, "configurables", ()):
        name, traits = type(item).__name__, _traits(item)
        before = start.config.get(name, {})
        changed = {
            trait: value
            for trait, value in now.get(name, {}).items()
            if _differs(value, before.get(trait, traits[trait].default_value))
            and (trait in before or value not in ([], {}, set()))
        }
        if changed:
            found[name] = changed
    return found


def _write_config(shell: Any, value: Dict[str, Dict[str, Any]]) -> None:
    known = {type(item).__name__: item for item in shell.configurables}
    for name, traits in value.items():
        if name == "InlineBackend" and name not in known:
            known[name] = _inline_backend(shell)
        for trait, item in traits.items():
            if name in known:
                setattr(known[name], trait, item)


def _inline_backend(shell: Any) -> Any:
    """The settings of figures in the notebook, which are made when the first figure is."""
    import importlib

    backend = importlib.import_module("matplotlib_inline.config").InlineBackend.instance(parent=shell)
    backend.shell = shell
    if backend not in shell.configurables:
        shell.configurables.append(backend)
    return backend


# --- libraries -----------------------------------------------------------------------------------------------------


def _read_pandas(shell: Any, start: Start) -> Any:
    pandas = _imported("pandas")
    if pandas is None:
        return None
    known = sys.modules["pandas._config.config"]._registered_options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        now = {key: pandas.get_option(key) for key in known}
    return {key: value for key, value in now.items() if _differs(value, known[key].defval)}


def _write_pandas(shell: Any, value: Dict[str, Any]) -> None:
    import importlib

    set_option = importlib.import_module("pandas").set_option
    for key, item in value.items():
        if loss_of(item) is None:
            set_option(key, item)


#: NumPy's own, which do not differ between its versions.
_PRINTING = {
    "edgeitems": 3,
    "threshold": 1000,
    "precision": 8,
    "suppress": False,
    "linewidth": 75,
    "floatmode": "maxprec",
}
_PRINTING.update(nanstr="nan", infstr="inf", sign="-", formatter=None, legacy=False)
_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _read_numpy(shell: Any, start: Start) -> Any:
    numpy = _imported("numpy")
    if numpy is None:
        return None
    printing = numpy.get_printoptions()
    changed = {
        name: printing[name]
        for name, usual in _PRINTING.items()
        if name in printing and _differs(printing[name], usual)
    }
    errors = numpy.geterr()
    return (changed, errors if errors != _ERRORS else {}) if changed or errors != _ERRORS else None


def _write_numpy(shell: Any, value: Any) -> None:
    import numpy as np

    printing, errors = value
    np.set_printoptions(**printing)
    np.seterr(**errors)


def _read_matplotlib(shell: Any, start: Start) -> Any:
    module = _imported("matplotlib")
    if module is None:
        return None
    usual = dict(dict.items(module.rcParamsDefault))
    return {
        key: value
        for key, value in dict.items(module.rcParams)
        if not key.startswith("backend") and key in usual and _differs(value, usual[key])
    }


def _write_matplotlib(shell: Any, value: Dict[str, Any]) -> None:
    import importlib

    importlib.import_module("matplotlib").rcParams.update(value)


def _read_torch(shell: Any, start: Start) -> Any:
    torch = _imported("torch")
    if torch is None:
        return None
    now = (torch.get_default_dtype(), torch.is_grad_enabled())
    return now if now != (torch.float32, True) else None


def _write_torch(shell: Any, value: Any) -> None:
    import importlib

    torch = importlib.import_module("torch")
    torch.set_default_dtype(value[0])
    torch.set_grad_enabled(value[1])


_PARTS: Dict[str, Tuple[Callable[[Any, Start], Any], Callable[[Any, Any], None]]] = {
    "recursion limit": (_read_recursion, _write_recursion),
    "warnings": (_read_warnings, _write_warnings),
    "signal handlers": (_read_signals, _write_signals),
    "loggers": (_read_loggers, _write_loggers),
    "decimal context": (_read_decimal, _write_decimal),
    "IPython callbacks": (_read_callbacks, _write_callbacks),
    "IPython magics": (_read_magics, _write_magics),
    "IPython config": (_read_config, _write_config),
    "pandas options": (_read_pandas, _write_pandas),
    "NumPy options": (_read_numpy, _write_numpy),
    "matplotlib rcParams": (_read_matplotlib, _write_matplotlib),
    "torch defaults": (_read_torch, _write_torch),
}
