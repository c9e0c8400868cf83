# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Before a pause every open frontend saves the documents that use the kernel and says so."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import PauseError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class SaveAnswers:
    """What the frontends answered. `unsaved`: documents that could not be saved; `silent`: how many did not answer."""

    answered: int = 0
    silent: int = 0
    unsaved: list[str] = field(default_factory=list)


@dataclass
class _Pending:
    expected: int
    answers: dict[str, dict[str, bool]] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


class DocumentSaver:
    """Asks all frontends at once through the event bus and collects their answers."""

    def __init__(self, emit: Callable[[dict[str, Any]], None], count_frontends: Callable[[], int]) -> None:
        self._emit = emit
        self._count_frontends = count_frontends
        self._pending: dict[str, _Pending] = {}

    async def ask(self, kernels: list[str], timeout: float) -> SaveAnswers:
        """Ask and wait at most `timeout` seconds; returns at once when no frontend listens."""
        expected = self._count_frontends()
        if expected == 0:
            return SaveAnswers()
        request = uuid.uuid4().hex
        pending = self._pending[request] = _Pending(expected)
        try:
            self._emit({"request": request, "kernels": kernels, "timeout": timeout})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await pending.complete.wait()
        finally:
            del self._pending[request]
        unsaved = sorted({path for docs in pending.answers.values() for path, saved in docs.items() if not saved})
        return SaveAnswers(len(pending.answers), max(0, expected - len(pending.answers)), unsaved)

    def answer(self, request: str, client: str, documents: dict[str, bool]) -> None:
        """A frontend's answer; raises PauseError `request_not_found` when nobody waits for it."""
        pending = self._pending.get(request)
        if pending is None:
            raise PauseError("request_not_found")
        pending.answers[client] = documents
        if len(pending.answers) >= pending.expected:
            pending.complete.set()
