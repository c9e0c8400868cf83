# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The pause button for notebooks: what Jupyter looks for when it finds this package."""

from __future__ import annotations

from typing import Any

try:
    from ._version import __version__ as __version__
except ImportError:  # a checkout that was never built
    __version__ = "dev"


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where the prebuilt frontend lies."""
    return [{"src": "labextension", "dest": "jupyter-pause"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """The server extension."""
    from .app import PauseApp

    return [{"module": "jupyter_pause.app", "app": PauseApp}]
