# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Processes that save and load, and real kernels."""

from __future__ import annotations

from tests.checkpoint.conftest import again, secret, start
from tests.kernel.conftest import kernel, new_kernel

__all__ = ["again", "kernel", "new_kernel", "secret", "start"]
