# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which checkpoints have done their duty, and their deletion.

Nothing is deleted that a paused session, or the resume of a running one, stands on; and what cannot be read is left for
a person to decide about, since nobody knows what it was.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .checkpoint.store import CheckpointError
from .errors import PauseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from .checkpoint.store import CheckpointStore, StoredCheckpoint
    from .clock import Clock
    from .journal import Journal

#: Why a checkpoint goes: newer ones of the same kernel are there, its age, or the room that all may take together.
Why = Literal["replaced", "too_old", "over_budget"]


@dataclass(frozen=True)
class RetentionPolicy:
    """What is kept. Zero means: no such limit."""

    #: Newest complete checkpoints of one kernel.
    per_kernel: int = 0
    #: Seconds.
    age: float = 0.0
    #: Bytes of all checkpoints together.
    room: int = 0


@dataclass(frozen=True)
class Expired:
    """One checkpoint that is to go."""

    id: str
    why: Why
    bytes: int


def expired(
    entries: Iterable[StoredCheckpoint], policy: RetentionPolicy, used: set[str], now: datetime
) -> list[Expired]:
    """What the policy says goes. `used` never goes; the newest of a kernel only by age."""
    known = list(entries)
    found: dict[str, Expired] = {}
    newest: set[str] = set()
    for group in _by_kernel(known):
        newest.add(group[0].id)
        for position, entry in enumerate(group):
            if policy.per_kernel and position >= policy.per_kernel:
                found[entry.id] = Expired(entry.id, "replaced", entry.bytes_on_disk)
            elif policy.age and _age(entry, now) > policy.age:
                found[entry.id] = Expired(entry.id, "too_old", entry.bytes_on_disk)
    for name in used:
        found.pop(name, None)
    if policy.room:
        _make_room(known, policy.room, used | newest, found)
    return list(found.values())


def _by_kernel(entries: Iterable[StoredCheckpoint]) -> list[list[StoredCheckpoint]]:
    """Complete checkpoints whose signature holds, newest first, by the kernel that they are of."""
    groups: dict[str, list[StoredCheckpoint]] = defaultdict(list)
    for entry in sorted(entries, key=_created, reverse=True):
        if entry.manifest is not None and entry.signature_ok and entry.damaged is None:
            groups[entry.manifest.kernel_id].append(entry)
    return list(groups.values())


def _created(entry: StoredCheckpoint) -> float:
    return entry.manifest.created.timestamp() if entry.manifest is not None else 0.0


def _age(entry: StoredCheckpoint, now: datetime) -> float:
    return now.timestamp() - _created(entry)


def _make_room(known: list[StoredCheckpoint], room: int, kept: set[str], found: dict[str, Expired]) -> None:
    """Add the oldest of what may go until the rest fits."""
    taken = sum(entry.bytes_on_disk for entry in known if entry.id not in found)
    for group_entry in sorted((e for group in _by_kernel(known) for e in group), key=_created):
        if taken <= room:
            return
        if group_entry.id not in kept and group_entry.id not in found:
            found[group_entry.id] = Expired(group_entry.id, "over_budget", group_entry.bytes_on_disk)
            taken -= group_entry.bytes_on_disk


class Retention:
    """Deletes what the policy lets go, one run at a time."""

    def __init__(
        self,
        store: CheckpointStore,
        policy: RetentionPolicy,
        *,
        used: Callable[[], Awaitable[set[str]]],
        delete: Callable[[str], Awaitable[None]],
        clock: Clock,
        journal: Journal,
        log: Any,
    ) -> None:
        """`delete` refuses what is in use after all (PauseError `checkpoint_in_use`): a second look, just before."""
        self._store = store
        self._policy = policy
        self._used = used
        self._delete = delete
        self._clock = clock
        self._journal = journal
        self._log = log
        self._one_at_a_time = asyncio.Lock()

    async def clean(self) -> list[Expired]:
        """Delete what has expired and say so in the journal and the log; what was deleted is really gone then."""
        if self._policy == RetentionPolicy():
            return []
        async with self._one_at_a_time:
            used = await self._used()
            entries = await asyncio.to_thread(self._store.entries)
            gone = [one for one in expired(entries, self._policy, used, self._clock.now()) if await self._remove(one)]
        if gone:
            size = sum(one.bytes for one in gone)
            self._log.info(
                "jupyter-pause: deleted %d checkpoint(s), %d bytes, that newer ones replaced or that the limits of "
                "PauseApp.keep_checkpoints, keep_days and max_bytes do not allow.",
                len(gone),
                size,
            )
        return gone

    async def _remove(self, one: Expired) -> bool:
        try:
            await self._delete(one.id)
        except PauseError:
            return False  # came into use meanwhile
        except CheckpointError as error:
            if error.code != "not_found":  # another server over the same folder was quicker
                self._log.warning("jupyter-pause: an expired checkpoint could not be deleted (%s).", error.code)
            return False
        self._journal.record("checkpoint_deleted", code=one.why, bytes=one.bytes)
        return True
