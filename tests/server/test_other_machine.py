# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S18: the GPUs and the image that a checkpoint was made with are compared before it is loaded, over REST.

A stub plays the driver; server, kernel and checkpoint are real. What a real GPU does is not tested by this.
"""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_pause.cli.output import differences_table
from jupyter_pause.inventory import gpu
from jupyter_pause.machine import image_here, machine_differences
from tests.inventory.test_gpu import NVMLError, StubNvml, device

from .conftest import Driver

#: An array on a device, as CuPy, Numba and others show theirs.
DEVICE_ARRAY = """
class Array:
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (0, False), "version": 3}
    def __init__(self, values): self.values = values
x = Array([1, 2, 3])
"""
A100, L4 = "NVIDIA A100-SXM4-40GB", "NVIDIA L4"


def cards(*names: str) -> StubNvml:
    """A driver with these cards."""
    return StubNvml(*(device(name=name) for name in names))


@pytest.fixture
def driver_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what the driver says from now on."""
    monkeypatch.setattr(gpu, "_NVIDIA_TRACES", ())
    monkeypatch.setattr(gpu, "_OTHER_VENDORS", {})

    def plays(nvml: StubNvml) -> None:
        monkeypatch.setattr(gpu, "_import_nvml", lambda: nvml)

    return plays


def row_of(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [row for row in rows if row.get("kind") == kind]
    return found


@pytest.mark.parametrize(
    ("now", "said"),
    [((L4,), f"1 x {L4}"), ((A100, A100), f"2 x {A100}"), ((), "")],
    ids=["one L4", "two A100", "none"],
)
async def test_s18_with_arrays_on_a_device_it_asks_before_anything_is_loaded(
    driver: Driver, driver_of: Any, now: tuple[str, ...], said: str
) -> None:
    driver_of(cards(A100))
    kernel = await driver.notebook()
    await driver.run(kernel, DEVICE_ARRAY)
    assert (await driver.pause(kernel))["state"] == "done"
    driver_of(cards(*now))
    status, body = await driver.error(driver.post("resume", kernel=kernel))
    assert (status, body["code"]) == (422, "environment_differs")
    row = row_of(body["differences"], "gpu")
    assert (row["saved"], row["current"], row["devices"]) == (f"1 x {A100}", said, ["cuda"])
    table = differences_table(body["differences"])
    assert f"1 x {A100}" in table and (said or "none") in table and "arrays on a device (cuda)" in table
    assert (await driver.row(kernel))["state"] == "paused"

    driver_of(cards(A100))
    assert (await driver.resume(kernel=kernel))["state"] == "done"
    report = (await driver.row(kernel))["last_resume"]
    assert report["outcome"] == "restored" and report["differences"] == []


async def test_s18_accepted_it_is_loaded_and_the_report_says_what_differs(driver: Driver, driver_of: Any) -> None:
    driver_of(cards(A100))
    kernel = await driver.notebook()
    await driver.run(kernel, DEVICE_ARRAY)
    await driver.pause(kernel)
    driver_of(cards(L4))
    assert (await driver.resume(kernel=kernel, on_difference="accept"))["state"] == "done"
    report = (await driver.row(kernel))["last_resume"]
    assert row_of(report["differences"], "gpu")["current"] == f"1 x {L4}"
    assert await driver.run(kernel, "", "x.values") == "[1, 2, 3]"


@pytest.mark.parametrize("now", [(L4,), (A100, A100), ()], ids=["one L4", "two A100", "none"])
async def test_s18_without_arrays_on_a_device_it_goes_on_and_says_so(
    driver: Driver, driver_of: Any, now: tuple[str, ...]
) -> None:
    driver_of(cards(A100))
    kernel = await driver.notebook()
    await driver.run(kernel, "x = [1, 2, 3]")
    await driver.pause(kernel)
    driver_of(cards(*now))
    assert (await driver.resume(kernel=kernel))["state"] == "done"
    report = (await driver.row(kernel))["last_resume"]
    row = row_of(report["differences"], "gpu")
    assert row["saved"] == f"1 x {A100}" and row["asked"] is False
    assert report["outcome"] == "restored"


async def test_s18_the_same_card_at_another_index_is_said_and_makes_no_difference(
    driver: Driver, driver_of: Any
) -> None:
    driver_of(cards(A100, L4))
    kernel = await driver.notebook()
    await driver.run(kernel, DEVICE_ARRAY)
    await driver.pause(kernel)
    driver_of(cards(L4, A100))
    assert (await driver.resume(kernel=kernel))["state"] == "done"
    report = (await driver.row(kernel))["last_resume"]
    (row,) = report["differences"]
    assert row["kind"] == "gpu_place" and row["asked"] is False
    assert (row["saved"], row["current"]) == (f"{A100} at 0, {L4} at 1", f"{L4} at 0, {A100} at 1")


async def test_s18_what_cannot_be_read_is_unknown_and_never_the_same(driver: Driver, driver_of: Any) -> None:
    driver_of(cards(A100))
    kernel = await driver.notebook()
    await driver.run(kernel, DEVICE_ARRAY)
    await driver.pause(kernel)
    driver_of(StubNvml(init=NVMLError(4)))
    _, body = await driver.error(driver.post("resume", kernel=kernel))
    assert row_of(body["differences"], "gpu")["current"] is None
    assert "not known" in differences_table(body["differences"])


async def test_another_image_is_asked_about_with_both_names(driver: Driver, driver_of: Any) -> None:
    driver_of(cards())
    (app,) = driver.serverapp.extension_manager.extension_apps["jupyter_pause"]
    settings = app._pauser.settings
    settings.image = "team/notebook:1"
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    await driver.pause(kernel)
    settings.image = "team/notebook:2"
    _, body = await driver.error(driver.post("resume", kernel=kernel))
    (row,) = body["differences"]
    assert (row["kind"], row["saved"], row["current"]) == ("image", "team/notebook:1", "team/notebook:2")
    settings.image = None
    assert (await driver.resume(kernel=kernel))["state"] == "done"
    (row,) = (await driver.row(kernel))["last_resume"]["differences"]
    assert (row["current"], row["asked"]) == (None, False)


def test_where_the_name_of_the_image_is_looked_for() -> None:
    assert image_here({}) is None
    assert image_here({"JUPYTER_IMAGE_SPEC": "hub/image:3"}) == "hub/image:3"
    assert image_here({"JUPYTER_IMAGE_SPEC": "hub/image:3", "JUPYTER_PAUSE_IMAGE": "mine"}) == "mine"


@pytest.mark.parametrize("devices", [None, []])
def test_a_checkpoint_from_before_says_nothing_where_there_is_no_gpu(devices: list[str] | None) -> None:
    none: dict[str, Any] = {"gpus": [], "image": None}
    assert machine_differences({}, none, devices) == []
    one = {"gpus": [{"name": L4, "index": 0, "instance": None}], "image": "a"}
    (row,) = machine_differences({}, one, devices)
    assert (row["kind"], row["saved"], row["current"], row["asked"]) == ("gpu", None, f"1 x {L4}", False)
