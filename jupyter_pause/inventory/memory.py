# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Memory: the kernel agent's scan as items of the panel, and what the system says the kernel's processes hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import psutil

from jupyter_pause.states import Fate, InventoryItem, Loss

if TYPE_CHECKING:
    from collections.abc import Iterable

_FATES = frozenset(get_args(Fate))
#: Order in the panel: what is lost first, then what is not known, then the largest.
_ORDER = {"lost": 0, "unknown": 1}


def variable_items(rows: Iterable[Any], *, kind: str | None = None) -> list[InventoryItem]:
    """Rows of the kernel's scan (shaped like items, see kernel/inventory.py) as items, losses first.

    A row without a usable name is left out; a fate that is not one of ours is called unknown, never assumed.
    """
    items = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not row["name"]:
            continue
        items.append(_variable(row, kind))
    return sorted(items, key=lambda item: (_ORDER.get(item.fate, 2), -(item.bytes or 0), item.name))


def _variable(row: dict[str, Any], kind: str | None) -> InventoryItem:
    fate = row.get("fate")
    size = row.get("bytes")
    known = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    details = dict(row["details"]) if isinstance(row.get("details"), dict) else {}
    if row.get("cell") is not None:
        details["cell"] = row["cell"]
    return InventoryItem(
        name=row["name"],
        kind=kind or str(row.get("kind") or "data"),
        bytes=size if known else None,
        complete=known and bool(row.get("complete", True)),
        fate=fate if fate in _FATES else "unknown",
        reason=str(row["reason"]) if row.get("reason") else None,
        type=str(row["type"]) if row.get("type") else None,
        details=details,
    )


def losses(rows: Iterable[Any]) -> list[Loss]:
    """The losses of the scan; a malformed one is still a loss and is named as far as it can be."""
    found = []
    for row in rows:
        if not isinstance(row, dict):
            continue
        name = str(row.get("name") or row.get("path") or "?")
        cell = row.get("cell")
        found.append(
            Loss(
                name=name,
                path=str(row.get("path") or name),
                type=str(row.get("type") or ""),
                reason=str(row.get("reason") or ""),
                cell=cell if isinstance(cell, int) and not isinstance(cell, bool) else None,
            )
        )
    return found


def bytes_to_write(items: Iterable[InventoryItem], reply: dict[str, Any]) -> int | None:
    """How large the checkpoint will be: the kernel's own figure, else the sum over the variables; None: not known."""
    total = reply.get("bytes")
    if isinstance(total, int) and not isinstance(total, bool):
        return total
    sizes = [item.bytes for item in items if item.fate == "in checkpoint"]
    return sum(size for size in sizes if size is not None) if any(size is not None for size in sizes) else None


@dataclass
class ProcessFacts:
    """What the system says about the kernel's processes. `rss` in bytes; None: could not be read."""

    pid: int
    rss: int | None = None
    name: str | None = None
    children: list[dict[str, Any]] = field(default_factory=list)
    open_files: list[str] | None = None
    sockets: list[dict[str, Any]] | None = None
    own_ports: frozenset[int] = frozenset()

    @property
    def pids(self) -> list[int]:
        """The kernel and its children."""
        return [self.pid, *(child["pid"] for child in self.children)]


def rss_of(process: psutil.Process) -> int | None:
    """Resident memory in bytes, or None when it cannot be read."""
    try:
        size: int = process.memory_info().rss
    except (psutil.Error, OSError):
        return None
    return size


def process_items(facts: ProcessFacts, from_kernel: Iterable[Any] = ()) -> list[InventoryItem]:
    """The kernel's own process (its memory is what a pause frees), what it started, its threads and tasks.

    `from_kernel`: rows of the kernel's own list; a child that both name is one item.
    """
    kernel = InventoryItem(
        name=facts.name or "kernel",
        kind="kernel",
        bytes=facts.rss,
        complete=facts.rss is not None,
        fate="rebuilt",
        reason="kernel_process",
        details={"pid": facts.pid},
    )
    told = variable_items(from_kernel)
    pids = {item.details.get("pid") for item in told}
    children = [_child_item(child) for child in facts.children if child["pid"] not in pids]
    return [kernel, *told, *children]


def _child_item(child: dict[str, Any]) -> InventoryItem:
    helper = bool(child.get("helper"))
    return InventoryItem(
        name=str(child.get("name") or "process"),
        kind="child process",
        bytes=child.get("rss"),
        complete=child.get("rss") is not None,
        fate="rebuilt" if helper else "lost",
        reason="helper_process" if helper else "child_process",
        details={"pid": child["pid"]},
    )
