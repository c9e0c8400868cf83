# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Random numbers of GPUs: PyTorch's part is played by a stand-in, since there is no GPU here."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jupyter_pause.kernel import randomness


class Tensor:
    """As much of a tensor as a state is asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)

    def numpy(self) -> Any:
        return np.frombuffer(self.data, "uint8")


class Cuda:
    """`torch.cuda` with some GPUs."""

    def __init__(self, *states: bytes, initialized: bool = True) -> None:
        self.states = list(states)
        self._initialized = initialized

    def is_initialized(self) -> bool:
        return self._initialized

    def device_count(self) -> int:
        return len(self.states)

    def get_rng_state_all(self) -> list[Tensor]:
        assert self._initialized, "asking takes memory on every GPU"
        return [Tensor(state) for state in self.states]

    def set_rng_state_all(self, states: list[Tensor]) -> None:
        self.states = [state.data for state in states]


def torch_with(cuda: Cuda) -> SimpleNamespace:
    return SimpleNamespace(cuda=cuda, uint8="uint8", frombuffer=lambda data, dtype: Tensor(data))


def test_each_gpus_state_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with(Cuda(b"one", b"two")))
    states = randomness.collect()
    assert states["torch.cuda"] == [b"one", b"two"]
    later = Cuda(b"other", b"numbers")
    monkeypatch.setitem(sys.modules, "torch", torch_with(later))
    assert randomness.restore({"torch.cuda": states["torch.cuda"]}) == []
    assert later.states == [b"one", b"two"]


def test_a_gpu_that_was_not_used_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with(Cuda(b"one", initialized=False)))
    assert "torch.cuda" not in randomness.collect()


def test_another_number_of_gpus_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with(Cuda(b"only")))
    ((name, reason),) = randomness.restore({"torch.cuda": [b"one", b"two"]})
    assert name == "torch.cuda"
    assert "it was saved with 2 GPUs, and PyTorch finds 1 here" in reason
