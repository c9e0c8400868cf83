# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A pickler for nesting that the C pickler refuses.

From Python 3.12 on, C code may only recurse a few thousand levels, whatever the recursion limit and the stack; Python
code may recurse as deep as the limit says. This one is Python throughout. It is slow, so it is used for single
variables, with the memo of the C pickler.
"""

from __future__ import annotations

import pickle
import sys
from types import FunctionType
from typing import Any, Callable, Dict, Tuple

from .reducing import PROTOCOL

#: Before Python 3.12 the C pickler goes as deep as this one could.
NEEDED = sys.version_info >= (3, 12)

Memo = Dict[int, Tuple[int, Any]]
_save_by_type: Dict[type, Callable[..., Any]] = pickle._Pickler.dispatch


class DeepPickler(pickle._Pickler):
    """`override` is asked about objects as ``reducer_override`` of the C pickler is."""

    def __init__(self, file: Any, memo: Memo, buffer_callback: Any, override: Callable[[Any], Any]) -> None:
        super().__init__(file, PROTOCOL, buffer_callback=buffer_callback)
        self.memo: Memo = memo
        self._override = override

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write one object. Every call in here is one from Python to Python, which needs no C stack."""
        self.framer.commit_frame()  # type: ignore[attr-defined]
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))  # type: ignore[attr-defined]
            return
        cls = type(obj)
        save = _save_by_type.get(cls)
        if save is not None and cls is not type and cls is not FunctionType:
            save(self, obj)
            return
        recipe = self._override(obj)
        if recipe is NotImplemented or isinstance(recipe, str):
            self.save_global(obj, recipe if isinstance(recipe, str) else None)  # type: ignore[attr-defined]
            return
        func, args, state, items, pairs, setter = (tuple(recipe) + (None,) * 4)[:6]
        self.save_reduce(func, args, state, items, pairs, setter, obj=obj)  # type: ignore[attr-defined]
