# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""VRAM with a stub library that plays drivers: whatever it answers, nothing crashes and nothing is made up.

The stub stands in for the driver only; what a real one does is not proven by it.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_pause.inventory import gpu
from jupyter_pause.inventory.reasons import REASONS

GIB = 1 << 30


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__(value)


class Device(SimpleNamespace):
    """What the stub driver knows of one device; a value that is an exception is raised."""


def device(**known: Any) -> Device:
    base = {
        "name": "NVIDIA H200",
        "uuid": "GPU-1",
        "memory": SimpleNamespace(used=3 * GIB, total=140 * GIB),
        "mig_mode": NVMLError(3),
        "instances": [],
        "compute": [],
        "graphics": [],
    }
    return Device(**(base | known))


class StubNvml:
    """The functions of pynvml that we call."""

    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_ERROR_LIBRARY_NOT_FOUND = 12

    def __init__(self, *devices: Any, init: Exception | None = None, count: Any = None) -> None:
        self.devices, self.init, self.count = devices, init, count
        self.open = 0

    @staticmethod
    def _give(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    def nvmlInit(self) -> None:
        self._give(self.init)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> Any:
        return self._give(self.count if self.count is not None else len(self.devices))

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return self._give(self.devices[index])

    def nvmlDeviceGetName(self, handle: Any) -> Any:
        return self._give(handle.name)

    def nvmlDeviceGetUUID(self, handle: Any) -> Any:
        return self._give(handle.uuid)

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:
        return self._give(handle.memory)

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:
        return self._give(handle.mig_mode)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:
        return len(handle.instances)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, number: int) -> Any:
        return self._give(handle.instances[number])

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> Any:
        return self._give(handle.compute)

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: Any) -> Any:
        return self._give(handle.graphics)


@pytest.fixture(autouse=True)
def _no_devices_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_NVIDIA_TRACES", ())
    monkeypatch.setattr(gpu, "_OTHER_VENDORS", {})


def test_device_totals_are_called_totals() -> None:
    nvml = StubNvml(device(), device(name=b"NVIDIA L4", uuid=b"GPU-2"))
    first, second = gpu.read_nvml(nvml)
    assert (first.name, first.bytes, first.fate, first.reason) == ("NVIDIA H200", 3 * GIB, "unknown", "device_total")
    assert first.details["total"] == 140 * GIB
    assert second.name == "NVIDIA L4"
    assert second.details["uuid"] == "GPU-2"
    assert nvml.open == 0


@pytest.mark.parametrize("code", [9, 12])
def test_without_a_driver_there_is_no_gpu(code: int) -> None:
    assert gpu.read_nvml(StubNvml(init=NVMLError(code))) == []


def test_no_device_is_no_gpu() -> None:
    assert gpu.read_nvml(StubNvml()) == []


def test_a_missing_driver_library_beside_a_device_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_NVIDIA_TRACES", ("/proc/self",))
    (item,) = gpu.read_nvml(StubNvml(init=NVMLError(12)))
    assert (item.fate, item.bytes, item.complete) == ("unknown", None, False)
    (item,) = gpu.read_nvml(None)
    assert item.fate == "unknown"


@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        (StubNvml(init=NVMLError(4)), "gpu_no_permission"),
        (StubNvml(count=NVMLError(999)), "gpu_unreadable"),
        (StubNvml(NVMLError(4)), "gpu_no_permission"),
        (StubNvml(device(memory=NVMLError(4))), "gpu_no_permission"),
        (StubNvml(device(memory=NVMLError(3))), "gpu_not_supported"),
        (StubNvml(device(memory=SimpleNamespace(used="N/A", total="N/A"))), "gpu_not_supported"),
        (StubNvml(device(memory=SimpleNamespace(used=(1 << 64) - 1, total=GIB))), "gpu_not_supported"),
        (StubNvml(device(memory=RuntimeError("odd"))), "gpu_unreadable"),
    ],
)
async def test_S42_errors_and_words_are_unknown_never_nothing(stub: StubNvml, reason: str) -> None:
    (item,) = await gpu.gpu_items([1], nvml=stub)
    assert (item.fate, item.bytes, item.complete, item.reason) == ("unknown", None, False, reason)
    assert "may be something" in REASONS[reason]
    assert stub.open == 0


async def test_S42_one_bad_device_does_not_hide_the_others() -> None:
    items = await gpu.gpu_items([], nvml=StubNvml(NVMLError(15), device()))
    assert [item.bytes for item in items] == [None, 3 * GIB]


def test_S42_mig_instances_are_shown_one_by_one() -> None:
    instance = device(name="NVIDIA H200 MIG 1g.18gb", uuid="MIG-1", memory=SimpleNamespace(used=GIB, total=18 * GIB))
    refused = device(name=NVMLError(4), uuid=NVMLError(4), memory=NVMLError(4))
    items = gpu.read_nvml(StubNvml(device(mig_mode=(1, 1), instances=[instance, NVMLError(6), refused])))
    assert [(item.name, item.bytes, item.details["mig"]) for item in items] == [
        ("NVIDIA H200 MIG 1g.18gb", GIB, True),
        ("GPU 0 MIG 2", None, True),
    ]


def test_S42_a_mig_card_without_visible_instances_is_unknown() -> None:
    (item,) = gpu.read_nvml(StubNvml(device(mig_mode=(1, 1))))
    assert (item.fate, item.bytes) == ("unknown", None)


@pytest.mark.parametrize("ours", [True, False])
def test_S41_processes_are_matched_only_where_the_numbers_are_ours(ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "driver_pids_are_ours", lambda: ours)
    processes = [SimpleNamespace(pid=28290, usedGpuMemory=GIB), SimpleNamespace(pid=57, usedGpuMemory=2 * GIB)]
    items = gpu.read_nvml(StubNvml(device(compute=processes)), frozenset([57]))
    assert [item.kind for item in items] == (["device", "device process"] if ours else ["device"])
    if ours:
        assert (items[1].bytes, items[1].details["pid"]) == (2 * GIB, 57)


def test_S41_a_process_without_a_figure_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "driver_pids_are_ours", lambda: True)
    items = gpu.read_nvml(
        StubNvml(device(compute=[SimpleNamespace(pid=57, usedGpuMemory=None)], graphics=NVMLError(3))), frozenset([57])
    )
    assert (items[1].bytes, items[1].complete, items[1].reason) == (None, False, "gpu_not_supported")


def test_S41_namespace_proof(tmp_path: Any) -> None:
    assert not gpu.driver_pids_are_ours(tmp_path / "missing")
    assert not gpu.driver_pids_are_ours(tmp_path)


async def test_a_driver_that_hangs_is_given_up_on() -> None:
    stop = threading.Event()
    nvml = StubNvml(device())
    nvml.nvmlInit = lambda: stop.wait(60)  # type: ignore[method-assign,assignment]
    (item,) = await gpu.gpu_items([], nvml=nvml, limit=0.1)
    stop.set()
    assert (item.fate, item.reason) == ("unknown", "gpu_timeout")


async def test_the_real_binding_on_this_machine_answers_without_an_exception() -> None:
    for item in await gpu.gpu_items([1]):
        assert item.fate == "unknown"
