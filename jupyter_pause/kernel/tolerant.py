# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""An unpickler that goes on: what cannot be made becomes a tombstone where it stands, at any depth.

It is Python's own unpickler in Python, so it is slow; it is used only for a frame in which the fast one failed.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any, Dict, Iterator, Tuple

from .context import LoadContext
from .tombstone import Tombstone, loss_of

#: What code of the person's may raise while it is loaded; only an interrupt ends the load.
RAISED = (Exception, SystemExit, GeneratorExit)
#: Names that only newer versions have, and what they were called before.
_FORMER_NAMES = {("enum", "EnumType"): "EnumMeta"}


def find_global(module: str, name: str) -> Any:
    """An importable object by name. Names that moved between versions are tried in their other place.

    Raises ImportError, AttributeError.
    """
    try:
        return _get(module, name)
    except (ImportError, AttributeError) as error:
        for other_module, other_name in _other_places(module, name):
            try:
                return _get(other_module, other_name)
            except (ImportError, AttributeError):
                continue
        raise error


def _get(module: str, name: str) -> Any:
    importlib.import_module(module)
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _other_places(module: str, name: str) -> Iterator[Tuple[str, str]]:
    former = _FORMER_NAMES.get((module, name))
    if former is not None:
        yield module, former
    if module.startswith("numpy._core"):
        yield "numpy.core" + module[len("numpy._core") :], name
    if module.startswith("numpy.core"):
        yield "numpy._core" + module[len("numpy.core") :], name
    parent, _, last = module.rpartition(".")
    if parent and last.startswith("_"):
        yield parent, name  # pathlib._local of Python 3.13


def type_named(value: Any) -> str:
    """A readable name of what a recipe calls."""
    info = loss_of(value)
    if info is not None:
        return str(info.get("type") or "object")
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", type(value).__qualname__)
    return name if module in (None, "builtins", "__main__") else "%s.%s" % (module, name)


def clause(error: BaseException) -> str:
    """An exception as a reason."""
    return "making it again raised %s: %s" % (type(error).__name__, error)


#: Python's own unpickler in Python; its name begins with an underscore, but its parts are what subclasses override.
_Slow: Any = pickle._Unpickler


class TolerantUnpickler(_Slow):  # type: ignore[misc]
    """Loads one frame; the memo of the frames before is given as a dict."""

    dispatch = dict(_Slow.dispatch)  # noqa: RUF012  (what the base class looks in)

    def __init__(self, file: Any, buffers: Any, memo: Dict[int, Any], context: LoadContext) -> None:
        super().__init__(file, buffers=buffers)
        self.memo = memo
        self._context = context

    def find_class(self, module: str, name: str) -> Any:
        """Never raises for something that is not there."""
        try:
            return find_global(module, name)
        except RAISED as error:
            reason = "%s.%s is not to be had here (%s)" % (module, name, error)
            return self._context.tombstone("%s.%s" % (module, name), reason)

    def _lost(self, maker: Any, error: BaseException) -> Tombstone:
        info = loss_of(maker)
        if info is not None:
            return self._context.tombstone(str(info.get("type")), str(info.get("reason")))
        return self._context.tombstone(type_named(maker), clause(error))

    def load_reduce(self) -> None:
        """Call a recipe."""
        stack = self.stack
        arguments = stack.pop()
        maker = stack[-1]
        try:
            stack[-1] = maker(*arguments)
        except RAISED as error:
            stack[-1] = self._lost(_real_maker(maker, arguments), error)

    def load_newobj(self) -> None:
        """Make an instance without calling its ``__init__``."""
        arguments = self.stack.pop()
        cls = self.stack.pop()
        self.append(self._instance(cls, arguments, {}))

    def load_newobj_ex(self) -> None:
        """The same with keyword arguments."""
        keywords = self.stack.pop()
        arguments = self.stack.pop()
        cls = self.stack.pop()
        self.append(self._instance(cls, arguments, keywords))

    def _instance(self, cls: Any, arguments: Any, keywords: Any) -> Any:
        try:
            return cls.__new__(cls, *arguments, **keywords)
        except RAISED as error:
            return self._lost(cls, error)

    def load_build(self) -> None:
        """Give an object its state."""
        stack = self.stack
        if isinstance(stack[-2], Tombstone):
            stack.pop()
            return
        keep = len(stack) - 1
        try:
            super().load_build()
        except RAISED as error:
            del stack[keep:]
            self._replace(stack[-1], error)

    def _replace(self, target: Any, error: BaseException) -> None:
        stone = self._lost(type(target), error)
        self.stack[-1] = stone
        for key, value in self.memo.items():
            if value is target:
                self.memo[key] = stone

    def _guarded(self, load: Any, keep: int) -> None:
        """Append, add or set items; a container that refuses becomes a tombstone."""
        try:
            load(self)
        except RAISED as error:
            del self.stack[keep:]
            if not isinstance(self.stack[-1], Tombstone):
                self._replace(self.stack[-1], error)

    def load_append(self) -> None:
        """One item."""
        self._guarded(_Slow.load_append, len(self.stack) - 1)

    def load_setitem(self) -> None:
        """One key and value."""
        self._guarded(_Slow.load_setitem, len(self.stack) - 2)

    def load_appends(self) -> None:
        """Many items."""
        self._guarded(_Slow.load_appends, len(self.metastack[-1]))

    def load_setitems(self) -> None:
        """Many keys and values."""
        self._guarded(_Slow.load_setitems, len(self.metastack[-1]))

    def load_additems(self) -> None:
        """Many items of a set."""
        self._guarded(_Slow.load_additems, len(self.metastack[-1]))

    for _opcode, _method in (
        (pickle.REDUCE, load_reduce),
        (pickle.NEWOBJ, load_newobj),
        (pickle.NEWOBJ_EX, load_newobj_ex),
        (pickle.BUILD, load_build),
        (pickle.APPEND, load_append),
        (pickle.SETITEM, load_setitem),
        (pickle.APPENDS, load_appends),
        (pickle.SETITEMS, load_setitems),
        (pickle.ADDITEMS, load_additems),
    ):
        dispatch[_opcode[0]] = _method
    del _opcode, _method


def _real_maker(maker: Any, arguments: Any) -> Any:
    """What a helper function was asked to make: the class is often its first argument."""
    if arguments and (isinstance(arguments[0], type) or loss_of(arguments[0]) is not None):
        return arguments[0]
    return maker
