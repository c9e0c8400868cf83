# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The drill's GPU part. There is no GPU here: CuPy is played by NumPy, and the driver tells the kernels' own memory.

Server, kernels, checkpoints and the ends of processes are real; what a GPU does is untested.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from jupyter_pause.drill import gpu, gpu_cells
from jupyter_pause.drill.report import Report
from jupyter_pause.drill.run import MIB, Drill, DrillOptions, planned
from tests.inventory.test_gpu import GIB, StubNvml, device

from .conftest import CommandLine

SIZE = 192 * MIB
CUPY = """
from numpy import *
import numpy
asnumpy = numpy.asarray
random = numpy.random
class cuda:
    class runtime:
        @staticmethod
        def getDeviceCount():
            return 1
"""


class Driver(StubNvml):
    """A driver that tells as the device's memory what the processes below this one hold, and `stuck` bytes more."""

    def __init__(self, stuck: int = 0) -> None:
        super().__init__(device())
        self._stuck = stuck
        self._most = 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:
        used = GIB
        for process in psutil.Process().children(recursive=True):
            try:
                used += process.memory_info().rss
            except psutil.Error:
                continue
        self._most = max(self._most, used)
        return SimpleNamespace(used=self._most if self._stuck else used, total=140 * GIB)


@pytest.fixture
def cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels find a module `cupy`."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "cupy.py").write_text(CUPY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))


def run(nvml: Any) -> Report:
    options = DrillOptions(size=SIZE, gpu=True, nvml=nvml)
    return Drill(options, lambda check: print(check.line())).run()


def verdicts(report: Report) -> dict[str, str]:
    return {check.name: check.verdict for check in report.checks}


@pytest.mark.usefixtures("cupy")
def test_arrays_of_the_device_come_back_and_their_memory_was_free() -> None:
    report = run(Driver())
    found = verdicts(report)
    assert {name: found.get(name) for name in gpu.PROMISES} == dict.fromkeys(gpu.PROMISES, "kept")
    assert report.ok
    assert report.versions["on the GPU"] == "cupy"
    measured = report.to_json()["measured"]
    assert measured["gpu.build.device_bytes"] > 0.9 * SIZE
    assert measured["gpu.pause.bytes"] > SIZE


@pytest.mark.usefixtures("cupy")
def test_memory_that_stays_taken_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "FREED_LIMIT", 1.0)
    report = run(Driver(stuck=1))
    found = verdicts(report)
    assert (found["gpu.build"], found["gpu.freed"], found["gpu.arrays"]) == ("kept", "broken", "not reached")
    assert not report.ok


def test_without_a_gpu_it_fails_at_once_in_one_sentence(nobody: CommandLine) -> None:
    """This machine has none, and nothing may look like a success."""
    done = nobody("drill", "--gpu", "--json")
    first, *others = done.json["checks"]
    assert (done.code, first["name"], first["verdict"]) == (1, "gpu.found", "broken")
    assert "`nvidia-smi` must work here" in first["detail"]
    assert {check["verdict"] for check in others} == {"not reached", "kept"}
    assert [check["name"] for check in others if check["verdict"] == "kept"] == ["clean_up"]
    assert [check["name"] for check in done.json["checks"]] == [name for name, _ in planned(gpu=True)]


def test_without_a_library_it_says_what_to_install() -> None:
    report = run(Driver())
    (broken,) = [check for check in report.checks if check.verdict == "broken"]
    assert broken.name == "gpu.library"
    assert "neither PyTorch nor CuPy finds a GPU in the kernel `python3`" in broken.detail


def test_cells_of_both_libraries_are_python_3_9() -> None:
    import ast

    for code in (gpu_cells.LIBRARY, gpu_cells.PROBE, *(gpu_cells.build(name, 10) for name in ("torch", "cupy"))):
        ast.parse(code, feature_version=(3, 9))
