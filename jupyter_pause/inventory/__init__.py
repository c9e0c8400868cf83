# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What will be restored: files, RAM, VRAM, processes and connections of one kernel, put together for the panel."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_pause.bounded import bounded
from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.states import Estimate, Inventory, InventoryItem

from . import connections, environments, files, gpu, memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_pause.clock import Clock
    from jupyter_pause.journal import Journal, Rate
    from jupyter_pause.states import CheckpointPlace

Answer = TypeVar("Answer")

#: Seconds that looking at files and processes may take; a dead network mount may block for ever.
LIMIT = 5.0

#: What is assumed before anything was measured here: seconds = overhead + bytes / speed (bytes per second).
#: A pause writes, syncs, reads back and hashes; a resume starts Python and maps the file, which costs little per byte.
ASSUMED_PAUSE = (1.0, 300e6)
ASSUMED_RESUME = (1.5, 1.5e9)


async def build_inventory(
    kernel_reply: dict[str, Any] | None,
    *,
    kernel_id: str,
    pid: int | None,
    root_dir: Path,
    notebook_path: str | None,
    checkpoint_dir: Path,
    journal: Journal | None = None,
    clock: Clock = SYSTEM_CLOCK,
    nvml: Any = None,
) -> Inventory:
    """Assemble the inventory. `kernel_reply` is the agent's answer (None: it did not answer, which is said).

    `pid` is the kernel's process (None: paused). Everything that may block runs in threads with a limit; what does not
    answer in time is left unknown. `nvml` replaces the NVML binding in tests.
    """
    reply = kernel_reply if kernel_reply is not None and kernel_reply.get("status", "ok") == "ok" else None
    facts = await _within(lambda: connections.read_process(pid), "processes", None) if pid is not None else None
    (file_items, documents, place), vram, estimate_rates = await asyncio.gather(
        _files(reply or {}, facts, root_dir, notebook_path, checkpoint_dir),
        gpu.gpu_items(facts.pids if facts is not None else [], nvml=nvml),
        _rates(journal),
    )
    ram = memory.variable_items((reply or {}).get("variables") or [])
    on_device = [item for item in ram if item.details.get("device")]
    ram = [item for item in ram if not item.details.get("device")]
    taken_at = _time((reply or {}).get("taken_at")) or clock.now()
    if pid is not None and (reply is None or reply.get("problem")):
        # A scan that failed says nothing about what is there: never an empty list.
        why = str(reply["problem"]) if reply is not None else "kernel_not_answering"
        ram = [*ram, InventoryItem(name="variables", kind="data", complete=False, fate="unknown", reason=why)]
    return Inventory(
        kernel=kernel_id,
        taken_at=taken_at,
        age=max(0.0, round((clock.now() - taken_at) / timedelta(seconds=1), 3)),
        complete=reply is not None and bool(reply.get("complete", True)),
        busy=bool((reply or {}).get("busy", False)),
        files=file_items,
        documents=documents,
        ram=ram,
        vram=[*vram, *on_device],
        processes=memory.process_items(facts, _running(reply or {})) if facts is not None else [],
        connections=connections.connection_items(facts, (reply or {}).get("connections")),
        losses=memory.losses((reply or {}).get("losses") or []),
        estimate=estimate(
            memory.bytes_to_write([*ram, *on_device], reply) if reply is not None else None, *estimate_rates
        ),
        checkpoint_place=place,
    )


def _running(reply: dict[str, Any]) -> list[Any]:
    """Children, threads and tasks, as the kernel lists them."""
    return [row for key in ("processes", "threads", "tasks") for row in reply.get(key) or []]


def _open_paths(reply: dict[str, Any], facts: memory.ProcessFacts | None) -> list[str]:
    """Files opened since the kernel started, as it says; else all that the system knows of."""
    rows = reply.get("files")
    if isinstance(rows, list):
        return [row["name"] for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)]
    return (facts.open_files if facts is not None else None) or []


def _holders(reply: dict[str, Any]) -> dict[str, str]:
    """Path -> variable that holds the file open, as the kernel says."""
    found = {}
    for row in reply.get("files") or []:
        details = row.get("details") if isinstance(row, dict) else None
        if isinstance(details, dict) and isinstance(details.get("variable"), str):
            found[str(row.get("name"))] = details["variable"]
    return found


async def _within(work: Callable[[], Answer], name: str, otherwise: Answer) -> Answer:
    try:
        return await bounded(work, LIMIT, name)
    except (TimeoutError, OSError):
        return otherwise


async def _files(
    reply: dict[str, Any],
    facts: memory.ProcessFacts | None,
    root_dir: Path,
    notebook_path: str | None,
    checkpoint_dir: Path,
) -> tuple[list[InventoryItem], list[InventoryItem], CheckpointPlace | None]:
    """Places, open files and the notebook; unknown items where the file system does not answer in time."""
    notebook_dir = (root_dir / notebook_path).parent if notebook_path else root_dir
    places = {"notebook folder": notebook_dir, "home": Path.home()}
    if isinstance(reply.get("cwd"), str) and reply["cwd"]:
        places["working directory"] = Path(reply["cwd"])
    places["checkpoint folder"] = checkpoint_dir

    def look() -> tuple[list[InventoryItem], list[InventoryItem], CheckpointPlace | None]:
        mounts = files.read_mounts()
        opened = files.open_file_items(_open_paths(reply, facts), _holders(reply), mounts)
        documents = [files.document_item(root_dir, notebook_path, mounts)] if notebook_path else []
        prefix = reply.get("prefix")
        own = [environments.environment_item(Path(prefix), mounts)] if isinstance(prefix, str) and prefix else []
        return [*files.place_items(places, mounts), *own, *opened], documents, files.checkpoint_place(checkpoint_dir)

    blocked = [
        InventoryItem(
            name=str(path), kind=kind, fate="unknown", reason="storage_unknown", details={"storage": "unknown"}
        )
        for kind, path in places.items()
    ]
    return await _within(look, "files", (blocked, [], None))


async def _rates(journal: Journal | None) -> tuple[Rate | None, Rate | None]:
    if journal is None:
        return None, None
    measured = await asyncio.to_thread(journal.throughput)
    return measured.pause, measured.resume


def estimate(size: int | None, pause: Rate | None, resume: Rate | None) -> Estimate:
    """What pausing and resuming `size` bytes will cost, in seconds.

    `basis` is "measured" when both figures come from earlier pauses and resumes here, else "assumed"
    (see ASSUMED_PAUSE); without a size there are no seconds.
    """
    if size is None:
        return Estimate(basis="assumed")
    pause_seconds = pause.seconds(size) if pause is not None else None
    resume_seconds = resume.seconds(size) if resume is not None else None
    measured = pause_seconds is not None and resume_seconds is not None
    return Estimate(
        bytes=size,
        pause_seconds=round(pause_seconds if pause_seconds is not None else _assumed(size, ASSUMED_PAUSE), 2),
        resume_seconds=round(resume_seconds if resume_seconds is not None else _assumed(size, ASSUMED_RESUME), 2),
        basis="measured" if measured else "assumed",
    )


def _assumed(size: int, formula: tuple[float, float]) -> float:
    overhead, speed = formula
    return overhead + size / speed


def _time(value: Any) -> datetime | None:
    """An aware time of an RFC 3339 text; None for anything else."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


__all__ = ["build_inventory", "estimate"]
