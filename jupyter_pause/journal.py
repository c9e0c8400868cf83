# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What happened when: an append-only history in one SQLite file.

It is history, not truth: pausing and resuming must work when the file is locked, missing, read-only or damaged. So
`record` only puts a row on a bounded queue, and a daemon thread writes. SQLite's write-ahead log is not used: it needs
shared memory, which network file systems do not have. Rows hold ids, codes and numbers; never paths, values or tokens.
"""

from __future__ import annotations

import json
import logging
import math
import os
import queue
import re
import sqlite3
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bounded import call_bounded
from .clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from .clock import Clock

SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    kernel_id TEXT,
    operation TEXT,
    phase TEXT,
    code TEXT,
    numbers TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS events_by_kind ON events (kind, id);
"""
INSERT = "INSERT INTO events (at, kind, kernel_id, operation, phase, code, numbers) VALUES (?, ?, ?, ?, ?, ?, ?)"
SELECT = "SELECT at, kind, kernel_id, operation, phase, code, numbers FROM events "

#: Rows that may wait for the writer; more are dropped (and counted), never waited for.
QUEUE_SIZE = 2000
#: Seconds that SQLite waits for another process's lock, per attempt.
BUSY_TIMEOUT = 0.5
#: Seconds during which a batch is tried again while the file is locked; then it is dropped.
LOCKED_FOR = 10.0
#: Seconds that a reader waits; a file lock of a network file system may block for ever.
READ_LIMIT = 3.0
#: Pauses and resumes of at least this many bytes say how fast the disk is, smaller ones what one costs at least.
LARGE = 16 * 1024 * 1024
#: How many of the newest pauses (and resumes) count.
SAMPLES = 20

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WORD = re.compile(r"[a-z0-9_ .-]{1,64}")


@dataclass(frozen=True)
class Event:
    """One row. `at` is aware and in UTC; `numbers` are bytes, seconds and counts by name."""

    at: datetime
    kind: str
    kernel_id: str | None = None
    operation: str | None = None
    phase: str | None = None
    code: str | None = None
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rate:
    """What was measured: `overhead` seconds for a small state, `speed` bytes/second for a large one; None: not seen."""

    overhead: float | None = None
    speed: float | None = None
    samples: int = 0

    def seconds(self, size: int) -> float | None:
        """How long `size` bytes take, from measurements only; None when nothing like it was measured."""
        if size < LARGE and self.overhead is None:
            return None  # what large ones took says nothing of a small one's fixed cost
        if self.speed is not None:
            return (self.overhead or 0.0) + size / self.speed
        return self.overhead if size < LARGE else None


@dataclass(frozen=True)
class Throughput:
    """Measured rates of earlier pauses and resumes with this checkpoint folder."""

    pause: Rate = field(default_factory=Rate)
    resume: Rate = field(default_factory=Rate)


class Journal:
    """The history in `path`. All methods may be called from any thread; none raises because of the file."""

    def __init__(self, path: Path, *, log: Any = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = Path(path)
        self._log = log if log is not None else logging.getLogger(__name__)
        self._clock = clock
        self._queue: queue.Queue[Event | None] = queue.Queue(QUEUE_SIZE)
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._closed = False
        self._pending = 0
        self._written = threading.Condition()
        self._complained: set[str] = set()
        self._file: _File | None = None
        self.dropped = 0

    # --- writing ------------------------------------------------------------------------------------------------

    def record(
        self,
        kind: str,
        *,
        kernel_id: str | None = None,
        operation: str | None = None,
        phase: str | None = None,
        code: str | None = None,
        **numbers: float | None,
    ) -> None:
        """Note an event. Never raises, never waits; what does not look like an id, a word or a number is left out."""
        if self._closed:
            return
        event = Event(
            at=self._clock.now().astimezone(UTC),
            kind=_word(kind) or "other",
            kernel_id=_id(kernel_id),
            operation=_id(operation),
            phase=_word(phase),
            code=_word(code),
            numbers=_numbers(numbers),
        )
        with self._written:
            self._pending += 1
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._drop(1, "the history is written too slowly; some rows are left out")
            return
        self._start()

    def flush(self, timeout: float = 2.0) -> bool:
        """Wait until everything noted so far is written or dropped; False when `timeout` seconds were not enough."""
        with self._written:
            return self._written.wait_for(lambda: self._pending == 0, timeout)

    def close(self, timeout: float = 2.0) -> None:
        """Write what is left, within `timeout` seconds, and stop. Later `record` calls do nothing."""
        self.flush(timeout)
        self._closed = True
        thread = self._thread
        if thread is None:
            return
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        thread.join(timeout)

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._write_for_ever, name="jupyter-pause-journal", daemon=True)
                self._thread.start()

    def _write_for_ever(self) -> None:
        self._file = _File(self.path)
        try:
            while True:
                batch, stop = self._next_batch()
                if batch:
                    self._write(batch)
                if stop:
                    return
        finally:
            self._file.close()

    def _next_batch(self) -> tuple[list[Event], bool]:
        batch: list[Event] = []
        item = self._queue.get()
        while True:
            if item is None:
                return batch, True
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False

    def _write(self, batch: list[Event]) -> None:
        assert self._file is not None
        end = time.monotonic() + LOCKED_FOR
        while True:
            try:
                self._file.append(batch)
            except _LockedError:
                if time.monotonic() < end and not self._closed:
                    time.sleep(0.05)
                    continue
                self._drop(len(batch), "the history file stays locked by another program; rows are left out")
                return
            except _DamagedError:
                if self._file.set_aside():
                    self._complain("the history file was damaged; it was set aside and a new one begun")
                    continue
                self._drop(len(batch), "the history file is damaged and cannot be set aside; rows are left out")
                return
            except (OSError, sqlite3.Error) as error:
                self._drop(
                    len(batch), f"the history file cannot be written ({type(error).__name__}); rows are left out"
                )
                return
            self._settle(len(batch))
            return

    def _drop(self, count: int, why: str) -> None:
        self.dropped += count
        self._settle(count)
        self._complain(why)

    def _settle(self, count: int) -> None:
        with self._written:
            self._pending -= count
            self._written.notify_all()

    def _complain(self, why: str) -> None:
        """One log line per reason: a broken history must not fill the log."""
        if why not in self._complained:
            self._complained.add(why)
            self._log.warning("jupyter-pause: %s. Pausing and resuming go on as before.", why)

    # --- reading (blocks: call through a thread) ------------------------------------------------------------------

    def recent(self, limit: int = 100, *, kind: str | None = None) -> list[Event]:
        """The newest events, newest first; empty when the file cannot be read."""
        where, values = ("WHERE kind = ? ", [kind]) if kind is not None else ("", [])
        return self._select(where + "ORDER BY id DESC LIMIT ?", [*values, limit])

    def throughput(self) -> Throughput:
        """How fast earlier pauses and resumes were; empty rates when nothing was measured yet."""
        return Throughput(
            pause=_rate(self.recent(SAMPLES, kind="paused")), resume=_rate(self.recent(SAMPLES, kind="resumed"))
        )

    def _select(self, clause: str, values: list[Any]) -> list[Event]:
        def read() -> list[Event]:
            if not self.path.is_file():
                return []
            connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT)
            try:
                return [event for row in connection.execute(SELECT + clause, values) if (event := _event(row))]
            finally:
                connection.close()

        try:
            return call_bounded(read, READ_LIMIT, "journal-read")
        except (OSError, sqlite3.Error):  # TimeoutError is an OSError
            return []


class _LockedError(Exception):
    """Another process holds the file; worth another try."""


class _DamagedError(Exception):
    """The file is not (or no longer) a database."""


class _File:
    """The SQLite file as the writer's thread sees it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def append(self, events: list[Event]) -> None:
        """Write all in one transaction. Raises _LockedError, _DamagedError, OSError or sqlite3.Error."""
        try:
            connection = self._open()
            with connection:
                connection.executemany(INSERT, [_row(event) for event in events])
        except sqlite3.OperationalError as error:
            self.close()
            if _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise _LockedError from error
            raise
        except sqlite3.DatabaseError as error:
            self.close()
            if _primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _DamagedError from error
            raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._identity == self._look():
            return self._connection
        self.close()  # somebody removed or replaced the file: a row written to the old one would be lost
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would create it with the umask's mode; its rollback journal takes over the mode of this file.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT)
        try:
            connection.executescript(SCHEMA)
        except BaseException:
            connection.close()
            raise
        self._connection, self._identity = connection, self._look()
        return connection

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def set_aside(self) -> bool:
        """Rename a damaged file; True when that worked. What it holds may still be worth a look, so it is kept."""
        self.close()
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        try:
            os.replace(self._path, self._path.with_name(f"{self._path.name}.damaged-{stamp}"))
            self._path.with_name(self._path.name + "-journal").unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the connection; the next append opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _id(value: str | None) -> str | None:
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def _word(value: str | None) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, (int, float)) and math.isfinite(value) and _WORD.fullmatch(name)
    }


def _row(event: Event) -> tuple[str | None, ...]:
    at = event.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    numbers = json.dumps(event.numbers)
    return (at, event.kind, event.kernel_id, event.operation, event.phase, event.code, numbers)


def _event(row: tuple[Any, ...]) -> Event | None:
    """An event of a row; None for a row that somebody else wrote and that makes no sense."""
    try:
        at, kind, kernel_id, operation, phase, code, numbers = row
        return Event(datetime.fromisoformat(at), kind, kernel_id, operation, phase, code, _numbers(json.loads(numbers)))
    except (TypeError, ValueError, AttributeError):
        return None


def _rate(events: list[Event]) -> Rate:
    """Small states give the fixed cost (median); large ones what is left per byte."""
    pairs = [(e.numbers["bytes"], e.numbers["seconds"]) for e in events if _measured(e)]
    small = sorted(seconds for size, seconds in pairs if size < LARGE)
    large = [(size, seconds) for size, seconds in pairs if size >= LARGE]
    overhead = small[len(small) // 2] if small else None
    if not large:
        return Rate(overhead, None, len(pairs))
    total = sum(size for size, _ in large)
    # Never less than half of what was seen: a large state that was as quick as a small one has no infinite speed.
    spent = sum(max(seconds - (overhead or 0.0), seconds / 2) for _, seconds in large)
    return Rate(overhead, total / spent, len(pairs))


def _measured(event: Event) -> bool:
    return event.numbers.get("seconds", 0) > 0 and event.numbers.get("bytes", -1) >= 0
