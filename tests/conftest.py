# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Fixtures for all tests. pytest-jupyter brings a real Jupyter Server in isolated folders."""

from __future__ import annotations

pytest_plugins = ("pytest_jupyter.jupyter_server",)
