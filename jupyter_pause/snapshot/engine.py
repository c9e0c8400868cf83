# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Takes process snapshots and restores them: the steps in their order, and what is put back when one fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from jupyter_pause.kernel.layout import make_private_dir
from jupyter_pause.states import ProcessSnapshots

from .belongings import Belongings, belongings, host_facts, in_the_way, tree
from .criu import CriuError
from .images import ImageError, forget_sizes
from .obstacles import bytes_in_memory, obstacles
from .sentences import SNAPSHOT_SENTENCES, reason
from .store import SnapshotError, SnapshotFolder, SnapshotManifest, SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from jupyter_pause.clock import Clock
    from jupyter_pause.states import Reason

    from .availability import Availability
    from .criu import Criu

#: Seconds that a dump or a restore may take: some, and more for what has to be written or read at a slow disk's pace.
_LEAST_SECONDS, _SLOW_DISK = 60.0, 20e6
#: Seconds that a person's click waits for the first self-test (a second, where CRIU works).
_PATIENCE = 10.0
#: Seconds in which init reaps what was ended, and seconds between two looks.
_REAPED, _LOOK = 5.0, 0.1
#: Seconds until processes that were killed must be gone.
_KILL = 10.0

#: What CRIU's log says -> the code of the reason (CRIU 4.2).
_DUMP_SAYS = {
    "half of stream unix": "unix_socket_outside",
    "dump ghost file": "deleted_file_too_large",
}
_RESTORE_SAYS = {
    "fork for": "pid_taken",
    "bind inet socket": "port_taken",
    "has bad build-ID": "libraries_changed",
    "has bad size": "files_changed",
}


class NotTaken(Exception):
    """No snapshot was taken; the processes run as before. `reasons`: why, at least one."""

    def __init__(self, reasons: list[Reason]) -> None:
        self.reasons = reasons
        super().__init__(reasons[0].code)


class NotRestored(Exception):
    """The snapshot was not restored; nothing of it runs. It is kept."""

    def __init__(self, why: Reason) -> None:
        self.reason = why
        super().__init__(why.code)


@dataclass(frozen=True)
class Subject:
    """What a snapshot is of. `output`: the file of the kernel's own output; `mark`: SHA-256 of the mark in memory."""

    pid: int
    kernel_id: str
    kernel_name: str
    path: str | None
    transport: str
    ports: list[int]
    checkpoint: str | None
    mark: str | None
    output: Path | None
    #: Called when the processes have been stopped, and when they go on because the pause is off.
    stopped: Callable[[], Awaitable[None]]
    going_on: Callable[[], None]


class Frozen:
    """A kernel whose snapshot is complete and which is stopped: either it is ended now, or it is let go."""

    def __init__(self, manifest: SnapshotManifest, subject: Subject, engine: SnapshotEngine) -> None:
        self.manifest = manifest
        self._subject = subject
        self._engine = engine

    async def let_go(self) -> None:
        """The pause is off: the processes go on, and a snapshot that they leave behind at once is deleted."""
        await asyncio.to_thread(wake, self.manifest.running)
        self._subject.going_on()
        await asyncio.to_thread(self._engine.store.delete, self.manifest.id)


class SnapshotEngine:
    """Snapshots of one server."""

    def __init__(self, root: Path, secret_file: Path, availability: Availability, clock: Clock, log: Any) -> None:
        self.availability = availability
        self.store = SnapshotStore(root, secret_file)
        #: The socket at which we listen to kernels: no obstacle.
        self.link: Path | None = None
        self._root = root
        self._clock = clock
        self._log = log

    def outlook(self) -> ProcessSnapshots:
        """What `GET state` says. Looks for nothing."""
        verdict = self.availability.known()
        if verdict is None:
            return ProcessSnapshots(mode=self.availability.mode)
        usable = verdict.criu is not None if verdict.known else None
        return ProcessSnapshots(mode=self.availability.mode, usable=usable, reason=verdict.reason)

    async def in_the_way_of(self, pid: int, transport: str) -> list[Reason]:
        """Why no snapshot of this kernel could be taken now, as far as is known. Waits a little for the self-test."""
        try:
            async with asyncio.timeout(_PATIENCE):
                verdict = await self.availability.wait()
        except TimeoutError:
            verdict = self.availability.verdict()
        if verdict.criu is None:
            assert verdict.reason is not None
            return [verdict.reason]
        return await asyncio.to_thread(
            obstacles, pid, transport=transport, criu=verdict.criu.program, folder=self._root, link=self.link
        )

    # --- taking -------------------------------------------------------------------------------------------------

    async def take(self, subject: Subject, progress: Callable[[int, int | None], None]) -> Frozen:
        """Dump the kernel, sync and sign: a complete snapshot, and the kernel stopped. Raises NotTaken.

        `progress` gets bytes done and in all (None: not known).
        """
        verdict = await self.availability.wait()
        if verdict.criu is None:
            assert verdict.reason is not None
            raise NotTaken([verdict.reason])
        reasons = await self.in_the_way_of(subject.pid, subject.transport)
        if reasons:
            raise NotTaken(reasons)
        try:
            folder = await asyncio.to_thread(self.store.new)
        except SnapshotError as error:
            raise NotTaken([reason(error.code, **error.params)]) from error
        running: list[int] = []
        try:
            await asyncio.to_thread(_stop, subject.pid, running)
            await subject.stopped()
            manifest = await self._dump(verdict.criu, subject, running, folder, progress)
            return Frozen(manifest, subject, self)
        except BaseException as error:
            await asyncio.to_thread(wake, running)
            subject.going_on()
            await asyncio.to_thread(self._discard, folder)
            why = _why_not_taken(error, subject)
            if why is None:
                raise
            self._log.warning("jupyter-pause: no process snapshot: %s", why.code)
            raise NotTaken([why]) from error

    async def _dump(
        self,
        criu: Criu,
        subject: Subject,
        running: list[int],
        folder: SnapshotFolder,
        progress: Callable[[int, int | None], None],
    ) -> SnapshotManifest:
        size = await asyncio.to_thread(bytes_in_memory, subject.pid)
        progress(0, size)
        limit = _limit(size)
        dump = asyncio.ensure_future(criu.dump(subject.pid, folder.images, limit=limit, log=folder.dump_log))
        try:
            await asyncio.shield(dump)
        except asyncio.CancelledError:
            await asyncio.wait({dump})  # killed in the middle of it, CRIU would leave its code in the process
            raise
        version = await criu.version()
        found = await asyncio.to_thread(belongings, subject.pid)
        await asyncio.to_thread(forget_sizes, folder.images / "files.img", found.changeable.__contains__)
        described = await asyncio.to_thread(self._manifest, subject, folder, found, version)
        manifest = described.model_copy(update={"running": running})
        loop = asyncio.get_running_loop()

        def report(done: int) -> None:
            loop.call_soon_threadsafe(progress, done, None)

        return await asyncio.to_thread(self.store.commit, folder, manifest, report)

    def _manifest(
        self, subject: Subject, folder: SnapshotFolder, found: Belongings, version: tuple[int, ...]
    ) -> SnapshotManifest:
        output = subject.output
        return SnapshotManifest(
            id=folder.id,
            created=self._clock.now(),
            kernel_id=subject.kernel_id,
            kernel_name=subject.kernel_name,
            path=subject.path,
            checkpoint=subject.checkpoint,
            criu=list(version),
            host=host_facts(),
            pid=subject.pid,
            ports=subject.ports,
            tasks=found.tasks,
            mark=subject.mark,
            files=[entry for entry in found.files if output is None or entry.path != str(output)],
            output=str(output) if output is not None else None,
            output_bytes=output.stat().st_size if output is not None and output.exists() else 0,
        )

    def _discard(self, folder: SnapshotFolder) -> None:
        """Delete what was written; CRIU's last word stays, for a support bundle."""
        self._keep_log(folder.dump_log)
        self.store.delete(folder.id)

    def _keep_log(self, log: Path) -> None:
        logs = self._root / "logs"
        with contextlib.suppress(OSError):
            make_private_dir(str(logs))
            shutil.copyfile(log, logs / log.name)
            os.chmod(logs / log.name, 0o600)

    # --- restoring ----------------------------------------------------------------------------------------------

    async def check(self, snapshot_id: str) -> tuple[SnapshotManifest, Criu]:
        """That a snapshot can be restored here and now, as far as is known without reading it. Raises NotRestored."""
        verdict = await self.availability.wait()
        if verdict.criu is None:
            assert verdict.reason is not None
            raise NotRestored(verdict.reason)
        try:
            manifest = await asyncio.to_thread(self.store.manifest, snapshot_id)
            why = await self._in_the_way(manifest, await verdict.criu.version())
        except SnapshotError as error:
            raise NotRestored(reason(error.code, **error.params)) from error
        if why is not None:
            raise NotRestored(why)
        return manifest, verdict.criu

    async def _in_the_way(self, manifest: SnapshotManifest, version: tuple[int, ...]) -> Reason | None:
        """A process number may be in use for a moment only: ended children wait for init to reap them."""
        end = self._clock.monotonic() + _REAPED
        while True:
            why = await asyncio.to_thread(in_the_way, manifest, version)
            if why is None or why.code != "pid_taken" or self._clock.monotonic() > end:
                return why
            await asyncio.sleep(_LOOK)

    async def verify(self, manifest: SnapshotManifest, progress: Callable[[int, int | None], None]) -> None:
        """Compare every byte with its digest. Raises NotRestored."""
        loop = asyncio.get_running_loop()

        def report(done: int) -> None:
            loop.call_soon_threadsafe(progress, done, manifest.bytes)

        try:
            await asyncio.to_thread(self.store.verify, manifest, report)
        except SnapshotError as error:
            raise NotRestored(reason(error.code, **error.params)) from error

    async def restore(self, manifest: SnapshotManifest, criu: Criu) -> None:
        """Bring the processes back under their old numbers, the first as our child. Raises NotRestored."""
        folder = self.store.folder(manifest.id)
        limit = _limit(manifest.bytes)
        try:
            await asyncio.to_thread(_prepare_output, manifest)
            await criu.restore(folder.images, limit=limit, log=folder.restore_log)
        except BaseException as error:
            await asyncio.to_thread(_end_half_made, manifest)
            await asyncio.to_thread(self._keep_log, folder.restore_log)
            if isinstance(error, CriuError):
                raise NotRestored(_why_not_restored(error, limit)) from error
            if isinstance(error, OSError):
                raise NotRestored(reason("snapshot_restore_failed", detail=error.strerror or "")) from error
            raise


def wake(pids: list[int]) -> None:
    """Let stopped processes go on, children first: a shell that wakes must not find its child stopped. Blocks."""
    for pid in reversed(pids):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)


def _stop(pid: int, stopped: list[int]) -> None:
    """Stop the whole tree, parents first, and note who was stopped; what a person stopped (Ctrl-Z) is not noted.

    Raises psutil.Error when it is gone. Blocks.
    """
    seen: set[int] = set()
    while True:
        new = [one for one in tree(pid) if one not in seen]
        if not new:
            return
        for one in new:
            seen.add(one)
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(one)
                if process.status() != psutil.STATUS_STOPPED:
                    process.suspend()
                    stopped.append(one)


def _limit(size: int) -> float:
    return _LEAST_SECONDS + size / _SLOW_DISK


def _why_not_taken(error: BaseException, subject: Subject) -> Reason | None:
    """The reason of an error that is about this snapshot; None for anything else."""
    if isinstance(error, CriuError):
        if error.hung:
            return reason("snapshot_dump_hung", seconds=round(_LEAST_SECONDS))
        return _said(error, _DUMP_SAYS) or reason("snapshot_dump_failed", detail="; ".join(error.lines[-2:]))
    if isinstance(error, SnapshotError):
        return reason(error.code, **error.params)
    if isinstance(error, ImageError):
        return reason("snapshot_dump_failed", detail=f"files.img: {error}")
    if isinstance(error, psutil.Error):
        return reason("process_gone", pid=subject.pid)
    if isinstance(error, (OSError, TimeoutError)):
        return reason("snapshot_not_written", detail=getattr(error, "strerror", None) or type(error).__name__)
    return None


def _why_not_restored(error: CriuError, limit: float) -> Reason:
    if error.hung:
        return reason("snapshot_restore_hung", seconds=round(limit))
    return _said(error, _RESTORE_SAYS) or reason("snapshot_restore_failed", detail="; ".join(error.lines[-2:]))


def _said(error: CriuError, words: dict[str, str]) -> Reason | None:
    """The code for a complaint of CRIU that is known; its own line then stands for the parameters we do not have."""
    for line in error.lines:
        for text, code in words.items():
            if text in line and code in SNAPSHOT_SENTENCES:
                return reason(code, names=[line], program="another program", pid="?", detail=line)
    return None


def _prepare_output(manifest: SnapshotManifest) -> None:
    """The kernel's own output file may be gone or shorter (a new server, a reboot): CRIU only has to find it."""
    if manifest.output is None:
        return
    os.makedirs(os.path.dirname(manifest.output), mode=0o700, exist_ok=True)
    descriptor = os.open(manifest.output, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _end_half_made(manifest: SnapshotManifest) -> None:
    """End what a failed restore left: children of ours that carry the numbers of the snapshot, and those below them."""
    me = os.getpid()
    left = []
    for child in psutil.Process(me).children():
        if child.pid in manifest.tasks:
            with contextlib.suppress(psutil.Error):
                left += [*child.children(recursive=True), child]
    for process in left:
        with contextlib.suppress(psutil.Error, OSError):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(left, _KILL)
    for process in left:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
