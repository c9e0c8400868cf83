# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner on one machine: session records, leases, and adoption of what an earlier server left.

A record follows its session while it runs (a crash asks nobody first) and says `paused` before the process ends, so
that at any moment the disk names either a process or a checkpoint.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_core.utils import ensure_async
from jupyter_server.gateway.managers import GatewayMappingKernelManager

from jupyter_pause.errors import PauseError
from jupyter_pause.kernel_channel import CONTROL
from jupyter_pause.launch import Adoption, KernelEvent, LaunchSettings, launch_settings, set_launch_settings
from jupyter_pause.owners.base import Adopted
from jupyter_pause.owners.lease import HEARTBEAT, Leases
from jupyter_pause.owners.records import SessionFiles
from jupyter_pause.processes import KernelProcesses, is_same_process, kernels_alive, start_time
from jupyter_pause.provisioner import PauseProvisioner, uses_pause_provisioner
from jupyter_pause.states import SessionRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from jupyter_pause.clock import Clock

#: Seconds between two looks at Jupyter's table of sessions.
SYNC = 2.0
#: Seconds until a process that only half resumed must be gone.
_KILL = 30.0


@dataclass
class _Known:
    """What a record says beyond what Jupyter's managers know."""

    state: Literal["running", "paused"]
    since: datetime
    checkpoint: str | None = None
    cause: str | None = None
    resuming: bool = False
    snapshot: str | None = None


class LocalOwner:
    """Sessions of one server over one checkpoint directory.

    `stopping`: the server is being stopped; kernels that end from now on were not shut down by a person.
    """

    def __init__(
        self,
        *,
        root: Path,
        kernel_manager: Any,
        session_manager: Any,
        root_dir: str,
        clock: Clock,
        log: Any,
        find_checkpoint: Callable[[str, datetime], str | None] | None = None,
        describe: Callable[[str], dict[str, Any]] | None = None,
    ) -> None:
        """`find_checkpoint(kernel_id, since)` names the newest committed checkpoint made after `since` (blocks).

        `describe(kernel_id)` gives more fields of the session's record (cells that did not run, missed output).
        """
        self.root_dir = os.path.realpath(os.path.expanduser(root_dir))
        self.stopping = False
        #: Sessions on disk that could not be taken over because this kernel specification is not there (S37).
        self.without_specification: dict[str, str] = {}
        self._km = kernel_manager
        self._sm = session_manager
        self._clock = clock
        self._log = log
        self._find_checkpoint = find_checkpoint
        self._describe = describe
        self._files = SessionFiles(root)
        self._leases = Leases(self._files, clock)
        self._known: dict[str, _Known] = {}
        self._written: dict[str, SessionRecord] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._undecided: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._wake = asyncio.Event()
        self._pauser: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- wiring -------------------------------------------------------------------------------------------------

    def publish_launch_settings(
        self, *, socket: Path | None, secret_file: Path, orphan_timeout: float, skip_env: list[str]
    ) -> None:
        """Switch our provisioner on for this process and tell it what kernels need to know."""
        found = importlib.util.find_spec("cloudpickle")
        assert found is not None
        assert found.origin is not None
        set_launch_settings(
            LaunchSettings(
                server_pid=self._leases.me.pid,
                server_start_time=self._leases.me.start_time,
                socket=str(socket) if socket is not None else None,
                cloudpickle_dir=str(Path(found.origin).parent),
                checkpoint_dir=str(self._files.root),
                secret_file=str(secret_file),
                orphan_timeout=orphan_timeout,
                skip_env=list(skip_env),
                listeners=[self._on_event],
                saved_itself=self._saved_itself,
                may_resume=self._leases.holds,
            )
        )

        self._ask_without_a_trace()

    def _ask_without_a_trace(self) -> None:
        """Our questions to a kernel are no activity and say nothing of its being busy (Jupyter Server's own list)."""
        known = getattr(self._km, "untracked_message_types", None)
        if known is not None and CONTROL not in known:
            self._km.untracked_message_types = [*known, CONTROL, f"{CONTROL}_reply"]

    def listen(self, pauser: Any) -> None:
        """Tell the state machine what happens to kernels from outside."""
        self._pauser = pauser

    def start(self) -> None:
        """Begin to mirror Jupyter's table of sessions and to renew leases."""
        self._spawn(self._sync_for_ever())
        self._spawn(self._beat_for_ever())

    async def stop(self) -> None:
        """Stop watching. Kernels are ended by Jupyter afterwards: paused sessions stay paused on disk."""
        self.stopping = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("jupyter-pause: a session record was not written", exc_info=task.exception())

    # --- what happens to kernels --------------------------------------------------------------------------------

    def _on_event(self, event: KernelEvent) -> None:
        """From the provisioner, on the event loop."""
        kernel_id = event.kernel_id
        if event.kind == "ended":
            self._ended(event)
        elif event.kind in ("launched", "restarted", "resumed"):
            self._known[kernel_id] = _Known("running", self._clock.now())
            self._spawn(self._write(kernel_id))
            if event.kind == "restarted" and self._pauser is not None:
                self._pauser.kernel_restarted(kernel_id, while_paused=event.was_paused)
        elif event.kind == "resuming":
            known = self._known.setdefault(kernel_id, _Known("paused", self._clock.now()))
            known.resuming = True
            self._spawn(self._write(kernel_id))
        elif event.kind in ("paused", "resume_failed"):
            known = self._known.setdefault(kernel_id, _Known("paused", self._clock.now()))
            known.state, known.resuming = "paused", False
            self._spawn(self._write(kernel_id))
        self._wake.set()

    def _ended(self, event: KernelEvent) -> None:
        """At once and not in a task: nothing may come between the end of a session and the disk that says so."""
        kernel_id = event.kernel_id
        known = self._known.pop(kernel_id, None)
        self._written.pop(kernel_id, None)
        lock = self._locks.pop(kernel_id, None)
        if known is None:
            return
        self._write_end(kernel_id, known)
        if lock is not None and lock.locked() and not self.stopping:
            self._spawn(self._write_end_again(kernel_id, known, lock))
        if self._pauser is not None and not self.stopping:
            self._pauser.kernel_ended(kernel_id)

    def _write_end(self, kernel_id: str, known: _Known) -> None:
        """A stop of the server leaves paused sessions paused; a person's Shut Down ends them."""
        try:
            if known.state == "running":
                self._files.delete(kernel_id)
            elif not self.stopping:
                self._end_record(kernel_id)
            self._leases.release(kernel_id)
        except (OSError, ValueError):
            self._log.exception("jupyter-pause: the record of an ended session could not be changed")

    async def _write_end_again(self, kernel_id: str, known: _Known, lock: asyncio.Lock) -> None:
        """A thread was just writing the record of the session that ended."""
        async with lock:
            if kernel_id not in self._known:
                await asyncio.to_thread(self._write_end, kernel_id, known)

    def _end_record(self, kernel_id: str) -> None:
        """A person shut a paused kernel down: the session is over, its checkpoint stays listed."""
        record = self._files.read(kernel_id)
        if record is not None:
            update = {"state": "ended", "since": self._clock.now(), "cause": "shut_down"}
            self._files.write(record.model_copy(update=update))

    def _saved_itself(self, kernel_id: str, pid: int) -> bool:
        """In a thread: did the kernel's watchdog save it before the process ended?"""
        record = self._files.read(kernel_id)
        if record is None or record.state != "paused" or record.cause != "orphaned" or not record.checkpoint:
            return False
        self._known[kernel_id] = _Known("paused", record.since, record.checkpoint, record.cause)
        if self._loop is not None and self._pauser is not None:
            adopted = Adopted(kernel_id, False, record.checkpoint, record.since)
            self._loop.call_soon_threadsafe(lambda: self._spawn(self._pauser.take_over(adopted)))
        return True

    # --- records ------------------------------------------------------------------------------------------------

    async def record(
        self,
        kernel_id: str,
        *,
        state: Literal["running", "paused"] | None = None,
        checkpoint: str | None = None,
        snapshot: str | None = None,
    ) -> None:
        """Write the session's record now, durably; with `state`, that it is running or paused from `checkpoint`.

        `snapshot`: the exact snapshot that is preferred to it.

        Raises OSError when it cannot be written.
        """
        if state is not None:
            self._known[kernel_id] = _Known(state, self._clock.now(), checkpoint, snapshot=snapshot)
        await self._write(kernel_id)

    async def after_thaw(self) -> None:
        """This process and its kernels were restored from a snapshot, perhaps elsewhere.

        What others know them by (start times) may have changed, and the disk may be older or newer than memory: leases,
        records and kernel files are written anew, so that no watchdog takes its server for gone.
        """
        await asyncio.to_thread(self._leases.recognise_me)
        settings = launch_settings()
        if settings is not None:
            settings.server_pid, settings.server_start_time = self._leases.me.pid, self._leases.me.start_time
        self._written.clear()
        for kernel_id in list(self._known):
            provisioner = self._provisioner(kernel_id)
            if provisioner is not None:
                await asyncio.to_thread(provisioner.recognise_process)
            await self._write(kernel_id)

    async def forget(self, kernel_id: str) -> None:
        """The session is over; its checkpoints stay."""
        self._known.pop(kernel_id, None)
        self._written.pop(kernel_id, None)
        await asyncio.to_thread(self._files.delete, kernel_id)

    def sessions(self) -> list[SessionRecord]:
        """Paused sessions of this root directory, also those that another server holds. Blocks."""
        return [r for r in self._files.all() if r.state == "paused" and self._is_mine(r)]

    def snapshots(self) -> set[str]:
        """Process snapshots that a paused session will come back from, whoever holds it. Blocks."""
        return {r.snapshot for r in self._files.all() if r.state == "paused" and r.snapshot}

    def held_elsewhere(self) -> dict[str, bool]:
        """Checkpoints that paused sessions of other servers (and of other root folders) will come back from.

        The value says whether a resume from it is under way now. Blocks.
        """
        found: dict[str, bool] = {}
        for record in self._files.all():
            if record.state == "paused" and record.checkpoint and record.kernel_id not in self._km:
                found[record.checkpoint] = found.get(record.checkpoint, False) or record.resuming
        return found

    def _is_mine(self, record: SessionRecord) -> bool:
        return os.path.realpath(record.root_dir) == self.root_dir

    async def _write(self, kernel_id: str, session: dict[str, Any] | None = None) -> None:
        """Bring the record on disk up to date, if there is a lease to be had and anything to say."""
        async with self._locks.setdefault(kernel_id, asyncio.Lock()):
            if session is None:
                session = (await self._sessions()).get(kernel_id)
            record = self._build(kernel_id, session)
            if record is None or record == self._written.get(kernel_id):
                return
            if not await asyncio.to_thread(self._write_held, record):
                self._log.warning("jupyter-pause: another server holds this session; its record was not written")
                return
            await self._tell_kernel(record)
            self._written[kernel_id] = record

    def _write_held(self, record: SessionRecord) -> bool:
        if not self._leases.acquire(record.kernel_id):
            return False
        self._files.write(record)
        return True

    def _build(self, kernel_id: str, session: dict[str, Any] | None) -> SessionRecord | None:
        """The record of a pausable kernel of ours; None for others."""
        known = self._known.get(kernel_id)
        # A kernel that is still being started is not in the manager yet.
        provisioner = self._provisioner(kernel_id)
        if known is None or provisioner is None or provisioner.not_pausable is not None:
            return None
        km: Any = provisioner.parent
        before = self._written.get(kernel_id)
        session = session or {}
        path = session.get("path") or (before.path if before else None) or provisioner.session_path
        return SessionRecord(
            kernel_id=kernel_id,
            session_id=session.get("id") or (before.session_id if before else None),
            root_dir=self.root_dir,
            path=path,
            name=session.get("name") or (before.name if before else None),
            type=session.get("type") or (before.type if before else None),
            kernel_name=km.kernel_name,
            state=known.state,
            since=known.since,
            cwd=str(provisioner.cwd) if provisioner.cwd else None,
            connection_info=_plain(km.get_connection_info()),
            connection_file=km.connection_file,
            argv=provisioner.argv,
            checkpoint=known.checkpoint,
            snapshot=known.snapshot,
            pid=provisioner.kernel_pid,
            pid_start_time=provisioner.pid_start_time,
            cause=known.cause,
            resuming=known.resuming,
            **(self._describe(kernel_id) if self._describe is not None else {}),
        )

    def _provisioner(self, kernel_id: str) -> PauseProvisioner | None:
        if kernel_id not in self._km:
            return None
        provisioner = getattr(self._km.get_kernel(kernel_id), "provisioner", None)
        return provisioner if isinstance(provisioner, PauseProvisioner) else None

    async def _tell_kernel(self, record: SessionRecord) -> None:
        """The kernel's watchdog names the notebook in its checkpoint: keep the kernel file's path right."""
        provisioner = self._provisioner(record.kernel_id)
        if provisioner is None or provisioner.session_path == record.path:
            return
        provisioner.session_path = record.path
        if provisioner.process_alive:
            await asyncio.to_thread(provisioner.write_kernel_file)

    async def _sessions(self) -> dict[str, dict[str, Any]]:
        """Jupyter's session models by kernel id."""
        models = await ensure_async(self._sm.list_sessions())
        return {str((model.get("kernel") or {}).get("id")): model for model in models}

    # --- periodic -----------------------------------------------------------------------------------------------

    async def _sync_for_ever(self) -> None:
        self._loop = asyncio.get_running_loop()
        while True:
            try:
                await self._sync()
            except Exception:
                self._log.exception("jupyter-pause: session records could not be brought up to date")
            self._wake.clear()
            try:
                # Not `wait_for`: before Python 3.12 it can lose the cancellation by which `stop` ends this.
                async with asyncio.timeout(SYNC):
                    await self._wake.wait()
                await asyncio.sleep(SYNC / 10)  # the session row is written right after its kernel was started
            except TimeoutError:
                continue

    async def _sync(self) -> None:
        """Renames, new sessions, kernels that vanished without a word; sessions whose holder is gone by now."""
        sessions = await self._sessions()
        for kernel_id, known in list(self._known.items()):
            if kernel_id in self._km:
                await self._write(kernel_id, sessions.get(kernel_id, {}))
            elif known.state == "running" and kernel_id in self._written:
                self._log.info("jupyter-pause: a kernel is gone without having been shut down; its record is dropped")
                await self.forget(kernel_id)
                if self._pauser is not None:
                    self._pauser.kernel_ended(kernel_id)
        for kernel_id in list(self._undecided):
            adopted = await self.adopt(kernel_id)
            if adopted is not None and self._pauser is not None:
                await self._pauser.take_over(adopted)

    async def _beat_for_ever(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            for kernel_id in list(self._written):
                try:
                    if not await asyncio.to_thread(self._leases.beat, kernel_id):
                        self._log.warning("jupyter-pause: another server took over a session of this one")
                except OSError:
                    self._log.exception("jupyter-pause: a lease could not be renewed")

    # --- adoption -----------------------------------------------------------------------------------------------

    async def adopt_all(self) -> list[Adopted]:
        """Take over every session of this root directory that no live server holds.

        Sessions whose holder may still live (another machine) are tried again later. Never raises for one session.
        """
        self._loop = asyncio.get_running_loop()
        if isinstance(self._km, GatewayMappingKernelManager):
            return []
        adopted = []
        strays = await asyncio.to_thread(kernels_alive)
        for kernel_id in await asyncio.to_thread(self._files.kernel_ids):
            try:
                one = await self.adopt(kernel_id, strays)
            except PauseError as error:
                self._log.warning("jupyter-pause: a session could not be taken over: %s", error.sentence)
                continue
            except Exception:
                self._log.exception("jupyter-pause: a session could not be taken over; it stays on disk")
                continue
            if one is not None:
                adopted.append(one)
        return adopted

    async def adopt(self, kernel_id: str, strays: dict[str, int] | None = None) -> Adopted | None:
        """Take over one session; None when there is nothing to take over, or another server holds it.

        Raises PauseError `kernelspec_missing`; the session stays on disk, is listed, and can be tried again.
        `strays` are the kernels of this user that live now (kernel id to pid), where somebody looked already.
        """
        self._undecided.discard(kernel_id)
        record = await asyncio.to_thread(self._files.read, kernel_id)
        if record is None or record.state == "ended" or not self._is_mine(record) or kernel_id in self._km:
            return None
        server_seen = await asyncio.to_thread(self._leases.last_heartbeat, kernel_id)
        if not await asyncio.to_thread(self._leases.acquire, kernel_id):
            if not await asyncio.to_thread(self._leases.surely_held, kernel_id):
                self._undecided.add(kernel_id)
            return None
        try:
            decided = await asyncio.to_thread(self._decide, kernel_id, strays)
            if decided is None:
                await asyncio.to_thread(self._files.delete, kernel_id)
                self._log.warning("jupyter-pause: a kernel ended with its server and had no checkpoint")
                return None
            adopted = replace(await self._start_or_list(decided), server_seen=server_seen)
            self.without_specification.pop(kernel_id, None)
            return adopted
        except BaseException:
            await asyncio.to_thread(self._leases.release, kernel_id)
            raise

    def _decide(self, kernel_id: str, strays: dict[str, int] | None) -> SessionRecord | None:
        """What is true of a session whose server is gone: a live process, a checkpoint, or nothing. In a thread."""
        record = self._files.read(kernel_id)  # once more: until the lease was ours somebody else could change it
        if record is None:
            return None
        alive = is_same_process(record.pid, record.pid_start_time)
        if not alive:
            # A server may have died between launching a process and writing that down.
            stray = (kernels_alive() if strays is None else strays).get(kernel_id)
            if stray is not None:
                record.pid, record.pid_start_time = stray, start_time(stray)
                record.resuming = record.state == "paused"
                alive = record.pid_start_time is not None
        if alive and record.state == "paused" and record.resuming:
            self._end_half_resumed(record)
            alive = False
        if alive:
            # Also a pause that was cut short after its commit: the process is at least as new as the checkpoint.
            running: dict[str, Any] = {"state": "running", "checkpoint": None, "snapshot": None, "cause": None}
            return record.model_copy(update={**running, "resuming": False})
        gone: dict[str, Any] = {"pid": None, "pid_start_time": None, "resuming": False}
        if record.state == "paused":
            return record.model_copy(update=gone)
        checkpoint = self._find_checkpoint(kernel_id, record.since) if self._find_checkpoint else None
        if checkpoint is None:
            return None
        saved = {"state": "paused", "checkpoint": checkpoint, "snapshot": None, "cause": "orphaned"}
        return record.model_copy(update={**gone, **saved})

    def _end_half_resumed(self, record: SessionRecord) -> None:
        """End a process that was loading when its server died: the checkpoint holds everything it could have."""
        assert record.pid is not None
        processes = KernelProcesses.find(record.pid, record.pid, record.pid_start_time)
        processes.kill()
        psutil.wait_procs(processes.members, _KILL)

    async def _start_or_list(self, record: SessionRecord) -> Adopted:
        """What cannot be started for want of its environment stays listed as what it is: paused, with a checkpoint.

        After a snapshot that was not restored the record on disk still says that the kernel runs.
        """
        try:
            return await self._start(record)
        except PauseError:
            self.without_specification[record.kernel_id] = record.kernel_name
            if record.pid is None:
                await asyncio.to_thread(self._files.write, record)
            raise

    async def _start(self, record: SessionRecord) -> Adopted:
        """Give the session back its kernel id, session id and notebook, without launching anything."""
        kernel_id = record.kernel_id
        await self._start_kernel(
            record,
            Adoption(
                connection_info=record.connection_info,
                pid=record.pid,
                pid_start_time=record.pid_start_time,
                connection_file=record.connection_file,
                path=record.path,
            ),
        )
        state: Literal["running", "paused"] = "running" if record.pid is not None else "paused"
        self._known[kernel_id] = _Known(state, record.since, record.checkpoint, record.cause, snapshot=record.snapshot)
        await self._restore_session(record)
        await self._write(kernel_id)
        return Adopted(kernel_id, state == "running", record.checkpoint, record.since, record)

    async def _start_kernel(self, record: SessionRecord, adoption: Adoption) -> None:
        """Raises PauseError `kernelspec_missing`, and RuntimeError if another provisioner would start a process."""
        try:
            spec = await ensure_async(self._km.kernel_spec_manager.get_kernel_spec(record.kernel_name))
        except NoSuchKernel:
            raise PauseError("kernelspec_missing", name=record.kernel_name) from None
        settings = launch_settings()
        if settings is None or not uses_pause_provisioner(spec, self._km):
            raise RuntimeError("this kernel would be started by another provisioner")
        arguments: dict[str, Any] = {"kernel_id": record.kernel_id, "kernel_name": record.kernel_name}
        if record.cwd is not None and await asyncio.to_thread(os.path.isdir, record.cwd):
            arguments["cwd"] = record.cwd
        elif record.path is not None:
            arguments["path"] = await ensure_async(self._sm.contents_manager.get_kernel_path(path=record.path))
        if record.path is not None:
            arguments["env"] = self._sm.get_kernel_env(record.path, record.name)
        settings.adoptions[record.kernel_id] = adoption
        try:
            await ensure_async(self._km.start_kernel(**arguments))
        finally:
            settings.adoptions.pop(record.kernel_id, None)

    async def _restore_session(self, record: SessionRecord) -> None:
        """The session under its old id. A kernel that never had a notebook gets none."""
        if record.path is None or record.kernel_id in await self._sessions():
            return
        session_id = record.session_id or str(uuid.uuid4())
        await ensure_async(
            self._sm.save_session(
                session_id,
                path=record.path,
                name=record.name or Path(record.path).name,
                type=record.type or "notebook",
                kernel_id=record.kernel_id,
            )
        )

    async def open_paused_session(self, *, kernel_name: str, path: str | None, checkpoint: str) -> str:
        """A new session that begins paused, to be resumed from `checkpoint`; returns its kernel id."""
        kernel_id = str(uuid.uuid4())
        record = SessionRecord(
            kernel_id=kernel_id,
            root_dir=self.root_dir,
            path=path or None,
            kernel_name=kernel_name,
            state="paused",
            since=self._clock.now(),
            checkpoint=checkpoint,
        )
        await self._start(record)
        return kernel_id


def _plain(connection_info: Any) -> dict[str, Any]:
    """Connection info as in a connection file: the key as text."""
    return {name: v.decode() if isinstance(v, bytes) else v for name, v in dict(connection_info).items()}


__all__ = ["Adopted", "LocalOwner"]
