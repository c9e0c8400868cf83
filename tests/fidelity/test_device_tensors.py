# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Tensors on a GPU. There is none here: storages in main memory are treated as those of a device would be.

The copies, the sharing and the way back are the real code with real PyTorch; what CUDA itself does is untested.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.drill import gpu_cells
from tests.checkpoint.engine import Process

from .environment import TORCH, python

#: Every storage counts as one of a GPU; how often one was copied to main memory is counted.
ON_A_GPU = """
import sys, torch
tensors = sys.modules["jupyter_pause_kernel.revivers.tensors"]
copies = []
def on_a_gpu(storage):
    copies.append(storage.nbytes())
    return True
tensors._is_on_device = on_a_gpu
"""
MAKE = """
large = torch.arange(1_000_000)
view = large[10:20]
model = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 300))
model[1].weight = model[0].weight
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 300)).sum().backward()
optimizer.step()
empty = torch.empty(0)
"""
RIGHT = (
    "large.tolist() == list(range(1_000_000))",
    "large.add_(1)[10].item() == view[0].item() == 11",
    "model[1].weight is model[0].weight and len(list(model.parameters())) == 3",
    "optimizer.param_groups[0]['params'][0] is model[0].weight and len(optimizer.state) == 3",
    "empty.numel() == 0",
)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    """A process that saves and one that loads."""
    secret = secrets.token_hex(64)
    (tmp_path / "work").mkdir()
    made = [Process(str(python(TORCH)), tmp_path / "store", secret, tmp_path / "work") for _ in range(2)]
    for process in made:
        process.cells("import jupyter_pause_kernel.revivers.tensors")
    yield made[0], made[1]
    for process in made:
        process.end()


def test_one_storage_is_copied_once_and_comes_back_as_one(two: tuple[Process, Process]) -> None:
    saver, loader = two
    saver.cells(ON_A_GPU, "del sys, tensors", MAKE)
    checkpoint = saver.save()
    sizes = saver.value("sorted(copies)")
    assert sizes.count(8_000_000) == 1
    loader.cells("import sys\nsys.modules['jupyter_pause_kernel.revivers.tensors']._is_here = lambda device: True")
    result = loader.load(checkpoint)
    assert (result["status"], result["losses"]) == ("ok", []), result
    loader.true(*RIGHT)


def test_the_cells_of_the_drill_compare_what_they_say(two: tuple[Process, Process]) -> None:
    """`jupyter pause drill --gpu` has them run on a GPU; in main memory they hold what they would hold there."""
    saver, loader = two
    saver.cells(gpu_cells.build("torch", 1_000_000, "cpu"))
    before = probe(saver)
    assert before["ties"] == {"value": [True, True, True]}
    assert all("value" in answer for answer in before.values())
    assert loader.load(saver.save())["losses"] == []
    assert probe(loader) == before
    loader.cells("large[3] += 1; torch.rand(1)")
    after = probe(loader)
    assert after["arrays"] != before["arrays"]
    assert after["random"] != before["random"]


def probe(process: Process) -> dict[str, Any]:
    process.cells(gpu_cells.PROBE)
    found: dict[str, Any] = json.loads(process.value(gpu_cells.PROBE_EXPRESSION))
    del found["pid"]
    return found


def test_without_the_gpu_it_comes_back_in_main_memory_and_that_is_said(two: tuple[Process, Process]) -> None:
    saver, loader = two
    saver.cells(ON_A_GPU, "del sys, tensors", MAKE, "plain = [1, 2]")
    result = loader.load(saver.save())
    assert result["status"] == "ok"
    said = {loss["name"] for loss in result["losses"]}
    assert {"large", "model"} <= said | {"view", "optimizer"}
    assert "plain" not in said
    assert all("which is not here: it is in main memory now" in loss["reason"] for loss in result["losses"])
    loader.true(*RIGHT, "plain == [1, 2]", "large.device.type == 'cpu'")
