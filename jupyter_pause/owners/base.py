# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What an owner is: whoever starts and stops the compute that kernels run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from jupyter_pause.states import SessionRecord


@dataclass(frozen=True)
class Adopted:
    """A session of an earlier server that this one holds now. `live`: with its process, else paused."""

    kernel_id: str
    live: bool
    checkpoint: str | None
    since: datetime


class Owner(Protocol):
    """The part of an owner that the state machine uses."""

    #: The server is stopping: what ends from now on was not ended by a person.
    stopping: bool

    async def adopt_all(self) -> Sequence[Adopted]:
        """Take over everything that earlier servers left and nobody else holds."""

    async def record(self, kernel_id: str, *, state: str | None = None, checkpoint: str | None = None) -> None:
        """Write down where a session stands, now."""

    async def forget(self, kernel_id: str) -> None:
        """The session is over; its checkpoints stay."""

    def sessions(self) -> list[SessionRecord]:
        """Paused sessions, also those that somebody else holds. Blocks: call through a thread."""

    def start(self) -> None:
        """Begin to watch."""

    async def stop(self) -> None:
        """Stop watching; nothing is ended by this."""
