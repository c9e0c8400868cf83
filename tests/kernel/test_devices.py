# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which objects count as arrays of a device. No library of one is here: classes with their documented names are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_pause.kernel import devices


def made(module: str, **attributes: Any) -> Any:
    """An object of a class that says it is of that module."""
    return type("Array", (), {"__module__": module, **attributes})()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (made("torch", device=SimpleNamespace(type="cuda")), "cuda"),
        (made("torch", device=SimpleNamespace(type="cpu")), None),
        (made("torch", device=SimpleNamespace(type="meta")), None),
        (made("jaxlib._jax", devices=lambda self: [SimpleNamespace(platform="tpu")]), "tpu"),
        (made("jaxlib._jax", devices=lambda self: [SimpleNamespace(platform="cpu")]), None),
        (made("cupy", __cuda_array_interface__={}), "cuda"),
    ],
)
def test_the_kind_of_device(value: Any, kind: str | None) -> None:
    assert devices.may_be(type(value))
    assert devices.kind_of(value) == kind


@pytest.mark.parametrize("value", [[], "x", made("torch"), made("mine")])
def test_what_is_none(value: Any) -> None:
    assert not devices.may_be(type(value))


def test_one_that_cannot_be_asked_is_none() -> None:
    def refuse(self: Any) -> Any:
        raise RuntimeError("deleted")

    assert devices.kind_of(made("jaxlib", devices=refuse)) is None
