# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The second fate of each thing in the inventory: what becomes of it where a snapshot brings back the whole process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_pause.states import Fate, Inventory, InventoryItem, SnapshotOutlook

#: Sections that lie in the process itself.
_IN_PROCESS = ("ram", "vram", "processes")


def with_snapshot(inventory: Inventory, outlook: SnapshotOutlook | None) -> Inventory:
    """The inventory with the outlook, and the second fates where a snapshot can be had."""
    inventory.snapshot = outlook
    if outlook is None or not outlook.usable:
        return inventory
    for section in _IN_PROCESS:
        for item in getattr(inventory, section):
            item.with_snapshot = "in snapshot"
    for item in inventory.connections:
        item.with_snapshot = _of_connection(item)
    for item in inventory.files:
        item.with_snapshot = "in snapshot" if item.fate in ("rebuilt", "lost") else item.fate
    for item in inventory.documents:
        item.with_snapshot = item.fate
    return inventory


def _of_connection(item: InventoryItem) -> Fate:
    """A listening socket listens again; a connection to another program comes back closed."""
    return "in snapshot" if "listening" in item.kind else "lost"
