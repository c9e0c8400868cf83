# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Real kernels of several Pythons for the tests of what runs inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import pythons
from .livekernel import Door, LiveKernel


@pytest.fixture(params=["own", "other minor 1", "other minor 2"])
def any_python(request: pytest.FixtureRequest) -> str:
    """Each of three interpreters in turn."""
    if request.param == "own":
        return pythons.own()
    return pythons.other(int(request.param[-1]) - 1)


@pytest.fixture
def new_kernel(tmp_path: Path) -> Iterator[Callable[..., LiveKernel]]:
    """Makes kernels that end with the test; they share their folders, as kernels of one server do."""
    made: list[LiveKernel] = []

    def make(python: str | None = None, **options: Any) -> LiveKernel:
        made.append(LiveKernel(tmp_path, python or pythons.own(), **options))
        return made[-1]

    yield make
    for kernel in made:
        kernel.close()


@pytest.fixture
def kernel(new_kernel: Callable[..., LiveKernel]) -> LiveKernel:
    """A running kernel of this Python, looked after by the process of the test."""
    made = new_kernel()
    made.write_kernel_file()
    return made.start()


@pytest.fixture
def kernel_of_any_python(new_kernel: Callable[..., LiveKernel], any_python: str) -> LiveKernel:
    """A running kernel of each Python in turn."""
    made = new_kernel(any_python)
    made.write_kernel_file()
    return made.start()


@pytest.fixture
def door() -> Iterator[Door]:
    """The server's end of the link."""
    made = Door()
    yield made
    made.close()
