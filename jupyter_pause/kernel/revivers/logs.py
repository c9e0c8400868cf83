# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Loggers: found again by name, with their level, handlers and filters."""

from __future__ import annotations

import logging
from typing import Any, Tuple

from .. import recipes
from .base import Help, Reviver


class _Logger(Reviver):
    types = ("logging.Logger", "logging.RootLogger")
    derived = True

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        root = value is logging.getLogger()
        handlers = list(value.handlers)
        state = (value.level, bool(value.disabled), value.propagate, handlers, list(value.filters))
        return recipes.make_logger, (None if root else value.name,), state, None, None, recipes.set_logger
