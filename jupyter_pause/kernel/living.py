# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects of which a process has exactly one: a variable that holds one holds that of the new process afterwards.

The environment (``os.environ``) is one of them; by its content it would bring old tokens back.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import Any, Dict, List, Optional, Tuple

#: Module and name of each.
_NAMES = (
    ("os", "environ"),
    ("os", "environb"),
    ("random", "_inst"),
    ("logging", "lastResort"),
    ("numpy.random.mtrand", "_rand"),
    ("matplotlib", "rcParams"),
    ("matplotlib", "rcParamsDefault"),
    ("pandas", "options"),
)


class Living:
    """Those of this process, as far as their modules were imported."""

    def __init__(self) -> None:
        self._found: Dict[int, Tuple[str, str]] = {}
        #: Their types: only objects of these have to be looked up.
        self.types = set()
        for module, name in _NAMES:
            value = getattr(sys.modules.get(module), name, None)
            if value is not None:
                self._found[id(value)] = (module, name)
                self.types.add(type(value))

    def recipe_of(self, value: Any) -> Optional[Tuple[Any, ...]]:
        """The recipe of one of them; None for any other object."""
        place = self._found.get(id(value))
        return None if place is None else (find, place)


def find(module: str, name: str) -> Any:
    """That of this process."""
    return getattr(importlib.import_module(module), name)


class Stand:
    """Stands in a pickle for an exact dictionary or list of Python's own, which picklers never ask about."""

    def __init__(self, module: str, name: str) -> None:
        self._place = (module, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return find, self._place


def stands() -> List[Tuple[Stand, Any]]:
    """What to pickle, and what it stands for."""
    return [
        (Stand("builtins", "__dict__"), builtins.__dict__),
        (Stand("sys", "modules"), sys.modules),
        (Stand("sys", "path"), sys.path),
    ]
