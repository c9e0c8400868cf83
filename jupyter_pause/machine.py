# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The machine that a checkpoint was made on, and how this one differs: GPUs by model and number, the container's image.

A checkpoint holds values, so another GPU never keeps it from being loaded: it is asked about only where arrays lie on a
device. What nobody could read is unknown, and unknown is never called the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .inventory.gpu import gpu_items

if TYPE_CHECKING:
    from .checkpoint.store import CheckpointManifest

#: Where the name of the image is looked for. The last two are what KubeSpawner sets in every pod.
IMAGE_VARIABLES = ("JUPYTER_PAUSE_IMAGE", "JUPYTER_IMAGE_SPEC", "JUPYTER_IMAGE")
NONE = ""


def image_here(environ: Mapping[str, str] = os.environ) -> str | None:
    """The container's image, as far as the environment says; None: not known, or no container."""
    return next((environ[name] for name in IMAGE_VARIABLES if environ.get(name)), None)


async def here(image: str | None) -> dict[str, Any]:
    """``{"gpus": [{"name", "index", "instance"}] or None, "image"}``; None: not known."""
    return {"gpus": await _gpus(), "image": image}


async def _gpus() -> list[dict[str, Any]] | None:
    found = []
    for item in await gpu_items(()):
        if item.kind != "device":
            continue
        index = item.details.get("index")
        if index is None or item.name.startswith("GPU "):  # the driver does not answer, or does not say the model
            return None
        found.append({"name": item.name, "index": index, "instance": item.details.get("instance")})
    return found


async def differences_with_machine(manifest: CheckpointManifest, image: str | None) -> list[dict[str, Any]]:
    """What differs on this machine, as ``{"name", "saved", "current", "kind", "asked"}``.

    `kind` is ``gpu``, ``gpu_place`` (the same models at other indexes) or ``image``. `saved` and `current` are text:
    empty for no GPU, None for not known. `asked`: whether a person is asked before the resume, or only told. A row of
    GPUs has `devices` too: the kinds of devices that hold arrays of it.
    """
    return machine_differences(manifest.machine, await here(image), manifest.devices)


def machine_differences(
    saved: Mapping[str, Any], current: Mapping[str, Any], devices: Sequence[str] | None
) -> list[dict[str, Any]]:
    """The same of two descriptions by `here`; `devices` None: whether there are arrays on devices was not noted."""
    rows = []
    before, now = _models(saved.get("gpus")), _models(current.get("gpus"))
    places = _places(saved.get("gpus")), _places(current.get("gpus"))
    if before != now and not _of_no_interest(before, now, devices):
        rows.append(_row("gpu", before, now, asked=bool(devices), devices=list(devices or ())))
    elif before and places[0] != places[1]:
        rows.append(_row("gpu_place", *places, asked=False))
    images = saved.get("image"), current.get("image")
    if images[0] is not None and images[0] != images[1]:
        rows.append(_row("image", *images, asked=images[1] is not None))
    return rows


def is_asked_about(differences: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of them is a question; those of the interpreter always are."""
    return any(row.get("asked", True) for row in differences)


def _of_no_interest(before: str | None, now: str | None, devices: Sequence[str] | None) -> bool:
    """A checkpoint that says nothing about GPUs, where none is and none is wanted."""
    return before is None and (now in (None, NONE)) and not devices


def _row(kind: str, saved: str | None, current: str | None, *, asked: bool, **more: Any) -> dict[str, Any]:
    return {"name": kind, "kind": kind, "saved": saved, "current": current, "asked": asked, **more}


def _models(gpus: Sequence[Mapping[str, Any]] | None) -> str | None:
    """ "2 x NVIDIA A100, 1 x NVIDIA L4"; a slice of a card (MIG) is another model, by its name."""
    if gpus is None:
        return None
    counted = Counter(f"{gpu['name']}{'' if gpu.get('instance') is None else ' (MIG)'}" for gpu in gpus)
    return ", ".join(f"{count} x {name}" for name, count in sorted(counted.items()))


def _places(gpus: Sequence[Mapping[str, Any]] | None) -> str | None:
    """ "NVIDIA A100 at 1"."""
    if gpus is None:
        return None
    return ", ".join(f"{gpu['name']} at {_place(gpu)}" for gpu in gpus)


def _place(gpu: Mapping[str, Any]) -> str:
    instance = gpu.get("instance")
    return f"{gpu['index']}" if instance is None else f"{gpu['index']}.{instance}"
