# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The hidden state of random number generators: Python's, and NumPy's and PyTorch's where the person imported them.

PyTorch has one more for each GPU. That part is untested on a GPU.
"""

from __future__ import annotations

import random
import sys
from typing import Any, Callable, Dict, List, Tuple


def collect() -> Dict[str, Any]:
    """States as plain lists, numbers and bytes, by library."""
    states: Dict[str, Any] = {}
    version, words, gauss = random.getstate()
    states["random"] = [version, list(words), gauss]
    np = sys.modules.get("numpy")
    numpy_random = getattr(np, "random", None)
    if numpy_random is not None:
        try:
            name, keys, position, has_gauss, cached = numpy_random.get_state()
            states["numpy"] = [str(name), [int(key) for key in keys], int(position), int(has_gauss), float(cached)]
        except Exception:
            pass  # another bit generator was put in; it has no state of this form
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = bytes(torch.get_rng_state().numpy().tobytes())
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():  # asking for it before would take memory on every GPU
        states["torch.cuda"] = [bytes(state.numpy().tobytes()) for state in cuda.get_rng_state_all()]
    return states


def restore(states: Dict[str, Any]) -> List[Tuple[str, str]]:
    """Put them back; returns (library, reason) for those that could not be."""
    problems = []
    for name, state in states.items():
        try:
            _RESTORE[name](state)
        except Exception as error:
            problems.append((name, "the state of its random numbers could not be put back: %s" % error))
    return problems


def _restore_python(state: Any) -> None:
    random.setstate((state[0], tuple(state[1]), state[2]))


def _restore_numpy(state: Any) -> None:
    import numpy

    numpy.random.set_state((state[0], numpy.array(state[1], dtype="uint32"), *state[2:]))


def _restore_torch(state: bytes) -> None:
    import torch

    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _restore_cuda(states: List[bytes]) -> None:
    import torch

    here = torch.cuda.device_count()
    if here != len(states):
        raise RuntimeError("it was saved with %d GPUs, and PyTorch finds %d here" % (len(states), here))
    torch.cuda.set_rng_state_all([torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in states])


_RESTORE: Dict[str, Callable[[Any], None]] = {
    "random": _restore_python,
    "numpy": _restore_numpy,
    "torch": _restore_torch,
    "torch.cuda": _restore_cuda,
}
