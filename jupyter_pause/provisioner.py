# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kernel provisioner: lets a kernel's process end and come back while the kernel stays.

Kernel managers, session managers and WebSockets are left alone: to them a paused kernel is one that lives and is busy.
Where our server extension is not loaded this is `LocalProvisioner`, unchanged.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_client.connect import LocalPortCache
from jupyter_client.ioloop.manager import AsyncIOLoopKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from . import launch
from .clock import SYSTEM_CLOCK
from .foreign_sockets import clients, listening_sockets, shut_connections
from .kernel_manager_marks import ManagerMarks
from .kernel_output import KernelOutput
from .launch import Adoption, EventKind, KernelEvent, LaunchSettings
from .parent_death import end_with_parent
from .ports import PortHold
from .processes import AttachedProcess, KernelProcesses, RestoredProcess, processes_of, start_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .states import Reason

PROVISIONER_NAME = "jupyter-pause-provisioner"
PORT_NAMES = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")

#: Why a kernel has no code of ours: an exact snapshot can keep it all the same.
_BY_SNAPSHOT = frozenset({"not_python", "wrapped_command", "not_ipykernel"})
#: Seconds until processes that were sent SIGKILL are reported as stuck (an uninterruptible wait in a driver).
KILL_TIMEOUT = 30.0
#: Seconds between two looks at a process that is being ended, and at a new one that does not answer yet.
_LOOK = 0.002
_PROCESS_LOOK = 0.1
#: Seconds in which two ends of a local connection have greeted each other (ZMTP, a subscription).
_GREETING = 0.05


class ProvisionerError(Exception):
    """Pausing or resuming is not possible now; `code` is stable: `not_pausable`, `not_paused`, `session_held`,
    `kernel_dead`."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.params: dict[str, object] = {}
        super().__init__(code)


@dataclass(frozen=True)
class Released:
    """What a release ended: the pid (None: there was no process), memory held before (bytes, with children), seconds.

    `gone` False: the system has not let the process go yet; its memory is not free.
    """

    pid: int | None
    rss_before: int
    seconds: float
    gone: bool


class PauseProvisioner(LocalProvisioner):
    """`LocalProvisioner` whose process may be absent.

    `paused`: there is no process and our sockets hold its ports. `resuming`: the new process loads; should it die it
    is never replaced by an empty one, the kernel is paused again. `ports_changed`: the last release or reclaim had to
    take other ports. `restarted_while_paused`: the process is new and empty because somebody restarted it.
    """

    paused = False
    resuming = False
    ports_changed = False
    restarted_while_paused = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pid_start_time: float | None = None
        self.argv: list[str] = []
        self.interpreter_argv: list[str] = []
        self.session_path: str | None = None
        self._reason_code: str | None = "starting"
        self._reason_params: Mapping[str, Any] = {}
        self._exact_only = False
        self._hold: PortHold | None = None
        self._output: KernelOutput | None = None
        self._marks = ManagerMarks(self.parent)
        self._adoption: Adoption | None = None
        self._environ: dict[str, str] = {}
        self._launches = 0
        self._was_paused = False
        self._watch: asyncio.Task[None] | None = None
        self._asked_about: int | None = None
        self._expected: Counter[int] = Counter()

    @property
    def _km(self) -> Any:
        """The kernel's manager."""
        return self.parent

    # --- what others read ---------------------------------------------------------------------------------------

    @property
    def not_pausable(self) -> Reason | None:
        """Why this kernel cannot be paused; None when it can."""
        if self._reason_code is None or self.by_snapshot_only:
            return None
        from .states import Reason  # pydantic: not for programs that only launch a kernel

        return Reason(code=self._reason_code, params=dict(self._reason_params))

    @property
    def by_snapshot_only(self) -> bool:
        """A kernel without code of ours, launched so that an exact snapshot can keep it, where there are any."""
        settings = launch.launch_settings()
        return self._exact_only and settings is not None and settings.exact is not None and settings.exact()

    @property
    def kernel_pid(self) -> int | None:
        """The kernel's process; None while there is none."""
        return self.process.pid if self.process is not None else None

    @property
    def process_alive(self) -> bool:
        """Whether the process itself lives (`poll()` also says so for a paused kernel)."""
        return self.process is not None and self.process.poll() is None

    @property
    def has_process(self) -> bool:
        """True for a paused kernel too: managers ask this before they treat a kernel as existing."""
        return self.paused or super().has_process

    # --- launching ----------------------------------------------------------------------------------------------

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Every start, restart, autorestart and resume comes through here: put our bootstrap in."""
        settings = launch.launch_settings()
        if settings is None:
            self._reason_code = "extension_off"
            return await super().pre_launch(**kwargs)
        self._adoption = settings.adoptions.pop(self.kernel_id, None)
        if self._adoption is not None and self._adoption.connection_info:
            self._take_connection(self._adoption)
        self._environ = dict(os.environ)
        kwargs = await super().pre_launch(**kwargs)
        planned = self._plan(kwargs)
        if self._adoption is not None:
            return kwargs
        if planned:
            self._hold_for_launch(kwargs["env"], kwargs)
            self._prepare_command(kwargs)
            await asyncio.to_thread(self.write_kernel_file)
            launch.remove_file(launch.load_file(self._km.connection_file, self.kernel_id))
        elif self._exact_only:
            self._prepare_for_snapshots(kwargs)
        elif not self.paused:
            self._free_ports()  # the kernel specification was changed: that process binds its ports itself
        return kwargs

    def _plan(self, kwargs: dict[str, Any]) -> bool:
        """Rewrite the command line; False (and the reason is kept) when the kernel is not ours to pause."""
        language = getattr(self.kernel_spec, "language", "") or ""
        plan = launch.plan_launch(kwargs["cmd"], language)
        code, params = plan.code, plan.params
        if sys.platform == "win32":
            code, params = "windows", {}
        elif not launch.valid_kernel_id(self.kernel_id):
            code, params = "bad_kernel_id", {}
        elif not isinstance(self._km, AsyncIOLoopKernelManager):
            code, params = "foreign_kernel_manager", {}
        self._reason_code, self._reason_params = code, params
        settings = launch.launch_settings()
        exact = settings.exact if settings is not None else None
        self._exact_only = code in _BY_SNAPSHOT and exact is not None and exact()
        if code is not None:
            return False
        kwargs["cmd"] = self.argv = plan.command
        self.interpreter_argv = plan.command[: plan.command.index(str(launch.BOOTSTRAP))]
        return True

    def _prepare_command(self, kwargs: dict[str, Any]) -> None:
        """Launch so that the kernel outlives this server: our watchdog, not ipykernel's, decides what then."""
        kwargs["independent"] = True
        kwargs["env"].pop("JPY_PARENT_PID", None)  # there when this server itself was started by a kernel
        if "stdout" not in kwargs and "stderr" not in kwargs:
            self._output = KernelOutput(launch.output_file(self._km.connection_file, self.kernel_id))

    def _prepare_for_snapshots(self, kwargs: dict[str, Any]) -> None:
        """Another language: no code of ours, but an output of its own, and no parent that a restored one would miss."""
        self._free_ports()
        kwargs["independent"] = True
        kwargs["env"].pop("JPY_PARENT_PID", None)
        kwargs.setdefault("preexec_fn", end_with_parent())
        if "stdout" not in kwargs and "stderr" not in kwargs:
            self._output = KernelOutput(launch.output_file(self._km.connection_file, self.kernel_id))

    def _hold_for_launch(self, env: dict[str, str], kwargs: dict[str, Any]) -> None:
        """Listen on the kernel's ports before it exists and let it inherit the sockets.

        We keep ours: when the process dies, by pause or crash, there is no moment in which another process could
        bind a port and read what was meant for the kernel.
        """
        env.pop(launch.LISTEN_FDS_ENV, None)
        if self._km.transport != "tcp":
            return
        ports = [int(getattr(self.parent, name)) for name in PORT_NAMES]
        if self._hold is None or self._hold.ip != self._km.ip:
            self._free_ports()
            self._hold = PortHold(self._km.ip)
        self._hold.free(self._hold.ports - set(ports))
        taken = self._hold.bind(ports)
        if taken:
            self._replace_ports(taken)
        numbers = self._hold.filenos()
        env[launch.LISTEN_FDS_ENV] = ",".join(f"{port}:{number}" for port, number in numbers.items())
        kwargs["pass_fds"] = (*kwargs.get("pass_fds", ()), *numbers.values())

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the process, or take over what an earlier server left (see `Adoption`)."""
        adoption, self._adoption = self._adoption, None
        if adoption is not None:
            return await self._take_over(adoption, kwargs)
        ours = self._reason_code is None or self._exact_only
        output = self._open_output() if ours else None
        if output is not None:
            kwargs["stdout"] = kwargs["stderr"] = output
        try:
            info = await super().launch_kernel(cmd, **kwargs)
        finally:
            if output is not None:
                os.close(output)
        assert self.process is not None
        self.pid_start_time = await asyncio.to_thread(start_time, self.process.pid)
        if ours:
            self._launched()
        return info

    def _open_output(self) -> int | None:
        if self._output is None:
            return None
        try:
            return self._output.open()
        except OSError as error:
            self.log.warning("jupyter-pause: a kernel's output goes nowhere: %s", error.strerror)
            return os.open(os.devnull, os.O_WRONLY)

    def _launched(self) -> None:
        self._launches += 1
        if self._output is not None:
            self._output.start()
        if self.paused:
            return  # a resume: see reclaim()
        self.ports_changed = False
        self.restarted_while_paused = self._was_paused
        was_paused, self._was_paused = self._was_paused, False
        self._notify("launched" if self._launches == 1 else "restarted", was_paused=was_paused)

    def write_kernel_file(self) -> None:
        """(Re)write what the kernel is told about its server. Blocks; raises OSError."""
        settings = launch.launch_settings()
        if settings is not None and self._reason_code is None:
            session = {"kernel_name": self._km.kernel_name, "path": self.session_path}
            content = launch.kernel_file_content(settings, self.kernel_id, session)
            launch.write_private_json(launch.kernel_file(self._km.connection_file, self.kernel_id), content)

    def recognise_process(self) -> None:
        """Server and kernel were restored from a snapshot: note when the process started by the clocks of this machine.

        Blocks; raises OSError.
        """
        process: Any = self.process
        if process is None:
            return
        self.pid_start_time = start_time(process.pid)
        if isinstance(process, AttachedProcess):
            process.recognise()
        self.write_kernel_file()

    # --- taking over from an earlier server ---------------------------------------------------------------------

    def _take_connection(self, adoption: Adoption) -> None:
        """Give the fresh manager the old connection, before ports are chosen for it."""
        km = self._km
        if adoption.pid is not None and adoption.connection_file is not None:
            km.connection_file = adoption.connection_file  # a live kernel's files lie beside it
        km.load_connection_info(dict(adoption.connection_info))
        if km.transport == "tcp" and km.cache_ports:
            LocalPortCache.instance().currently_used_ports.update(km.ports)
            self.ports_cached = True

    async def _take_over(self, adoption: Adoption, kwargs: dict[str, Any]) -> Any:
        self.cwd = kwargs.get("cwd", Path.cwd())
        self.session_path = adoption.path
        if adoption.pid is not None and adoption.pid_start_time is not None:
            await self._attach(adoption.pid, adoption.pid_start_time)
        else:
            await self._begin_paused()
        self._launches += 1
        self._notify("adopted", was_paused=self.paused)
        return self.connection_info

    async def _attach(self, pid: int, started: float) -> None:
        """Own a process that another server started. Raises ProcessLookupError if it is gone."""
        self._own(AttachedProcess(pid, started), started)
        await asyncio.to_thread(self.write_kernel_file)
        processes, _ = await processes_of(pid, self.pgid, started)
        processes.wake()

    def _own(self, process: AttachedProcess, started: float) -> None:
        """Treat a process that this object did not launch as if it had."""
        self.process = process  # type: ignore[assignment]
        self.pid, self.pid_start_time = process.pid, started
        self.pgid = os.getpgid(process.pid)
        self._output = KernelOutput(launch.output_file(self._km.connection_file, self.kernel_id))
        self._output.attach()
        self._output.start()

    async def _begin_paused(self) -> None:
        self.paused = True
        if self._km.transport == "tcp":
            self._hold = PortHold(self._km.ip)
            taken = self._hold.bind(self._km.ports)
            if taken:
                self._replace_ports(taken)
                self.ports_changed = False  # nobody is connected yet
            await self._hold.accept()
        self._marks.apply()

    # --- release ------------------------------------------------------------------------------------------------

    async def release(self) -> Released:
        """End the process, its group and its descendants, and hold the ports. Call it after the commit only.

        Also the way back from a resume that failed. On a kernel that is paused already it does nothing. Raises
        ProvisionerError (`not_pausable`, `kernel_dead`) with nothing touched.
        """
        if self.paused:
            return Released(None, 0, 0.0, True)
        if self.not_pausable is not None:
            raise ProvisionerError("not_pausable")
        if self.process is None or (self.process.poll() is not None and not self.resuming):
            raise ProvisionerError("kernel_dead")
        began = SYSTEM_CLOCK.monotonic()
        pid = self.process.pid
        processes, rss = await processes_of(pid, self.pgid, self.pid_start_time)
        self._stop_watching()
        # From here on the restarter, the culler and new WebSockets see a kernel that lives and is busy.
        self.paused, self.resuming, self.ports_changed = True, False, False
        self._marks.apply()
        processes.kill()
        await self._hold_ports(processes)
        gone = await processes.wait_gone(KILL_TIMEOUT)
        if not gone:
            self.log.error("jupyter-pause: the system does not let process %d go; its memory is not free yet", pid)
        self._forget_process()
        self._notify("paused")
        return Released(pid, rss, round(SYSTEM_CLOCK.monotonic() - began, 3), gone)

    async def _hold_ports(self, processes: KernelProcesses) -> None:
        """Bind each port as soon as the dying process lets go of it."""
        if self._km.transport != "tcp":
            return  # a Unix socket in an owner-only folder needs no holding
        if self._hold is None:
            self._hold = PortHold(self._km.ip)
        limit = SYSTEM_CLOCK.monotonic() + KILL_TIMEOUT
        taken = self._hold.bind(self._km.ports)
        while taken and processes.alive() and SYSTEM_CLOCK.monotonic() < limit:
            await SYSTEM_CLOCK.sleep(_LOOK)
            taken = self._hold.bind(taken)
        taken = self._hold.bind(taken)
        if taken:
            self.log.warning("jupyter-pause: %d port(s) of a paused kernel were taken; it gets others", len(taken))
            self._replace_ports(taken)
            self._marks.reconnect_clients()
        await self._hold.accept()

    def _replace_ports(self, taken: set[int]) -> None:
        """Other ports in the place of those that somebody else has; the connection file follows."""
        assert self._hold is not None
        km = self._km
        for name in PORT_NAMES:
            if getattr(km, name) in taken:
                port = self._hold.bind_any()
                LocalPortCache.instance().return_port(getattr(km, name))
                LocalPortCache.instance().currently_used_ports.add(port)
                setattr(km, name, port)
        km.cleanup_connection_file()
        km.write_connection_file()
        self.connection_info = km.get_connection_info()
        self.ports_changed = True

    def _forget_process(self) -> None:
        """The process is over: reap it, so that no zombie stays."""
        if self.process is not None:
            self.process.poll()
        self.process, self.pid, self.pgid, self.pid_start_time = None, None, None, None
        if self._output is not None:
            self._output.stop()

    # --- reclaim ------------------------------------------------------------------------------------------------

    async def reclaim(self, load_file: dict[str, Any] | None) -> None:
        """Launch a process on the same connection file, ports and key; it loads what `load_file` says, then serves.

        Until `settle()` the kernel counts as resuming. Raises ProvisionerError `not_paused`, `session_held` (by
        another server), `not_pausable` (the kernel specification was changed meanwhile) or what launching raises; the
        kernel is then still paused.
        """
        await self._require_mine()
        km = self._km
        path = launch.load_file(km.connection_file, self.kernel_id)
        try:
            kwargs = await self.pre_launch(**self._fresh_launch_arguments())
            if self._reason_code is not None:
                raise ProvisionerError("not_pausable")
            if load_file is not None:
                await asyncio.to_thread(launch.write_private_json, path, load_file)
            if self._hold is not None:
                self._hold.quiet()
            info = await self.launch_kernel(kwargs.pop("cmd"), **kwargs)
            km._reconcile_connection_info(info)
        except BaseException:
            launch.remove_file(path)
            await self._still_paused()
            raise
        self._begin_resuming()

    async def cut_off(self) -> None:
        """The process was stopped, to be snapshotted and ended: clients connect to us, and keep what they send.

        Left alone they would write into sockets that nobody reads any more. `reconnect()` takes it back.
        """
        if self._km.transport != "tcp" or self.process is None:
            return
        pid, ports = self.process.pid, set(self._km.ports)
        if self._hold is None or not self._hold.ports:  # adopted live: it bound its ports itself
            self._hold = PortHold(self._km.ip)
            self._hold.replace(await asyncio.to_thread(listening_sockets, pid, ports))
        if self._hold.ports:
            await self._hold.accept()
            await asyncio.to_thread(shut_connections, pid, ports)

    def reconnect(self) -> None:
        """The process goes on after all: clients that we hold connect to it."""
        if self._hold is not None:
            self._hold.quiet()

    async def clients_are_back(self, limit: float) -> None:
        """Wait until those who were connected while the kernel was paused have reached the process.

        What it prints before they have is lost to them. At most `limit` seconds: some may have gone for good.
        """
        end = SYSTEM_CLOCK.monotonic() + limit
        while self.process is not None and SYSTEM_CLOCK.monotonic() < end:
            if not self._expected - await asyncio.to_thread(clients, self.process.pid, set(self._expected)):
                await SYSTEM_CLOCK.sleep(_GREETING)
                return
            await SYSTEM_CLOCK.sleep(_GREETING)

    async def reclaim_from(self, restore: Callable[[], Awaitable[int]], wake: Callable[[], None]) -> None:
        """Take back the process that `restore` makes from a snapshot, stopped; it returns its pid. `wake` lets it run.

        It must listen on the ports of this kernel. Until `settle()` the kernel counts as resuming. Raises
        ProvisionerError `not_paused`, `session_held`, or what `restore` raises; the kernel is then still paused.
        """
        await self._require_mine()
        launch.remove_file(launch.load_file(self._km.connection_file, self.kernel_id))
        try:
            await asyncio.to_thread(self.write_kernel_file)
            self._expected = self._hold.connections_by_port() if self._hold is not None else Counter()
            if self._hold is not None:
                self._hold.quiet()
                self._hold.share(True)
            pid = await restore()
            started = await asyncio.to_thread(start_time, pid)
            if started is None:
                raise ProcessLookupError(f"process {pid} is gone")
            self._own(RestoredProcess(pid, started), started)
        except BaseException:
            if self._hold is not None:
                self._hold.share(False)
            await self._still_paused()
            raise
        if self._hold is not None:
            self._hold.replace(await asyncio.to_thread(listening_sockets, pid, set(self._km.ports)))
        await asyncio.to_thread(wake)
        self._begin_resuming()

    async def _require_mine(self) -> None:
        if not self.paused:
            raise ProvisionerError("not_paused")
        settings = launch.launch_settings()
        may_resume = settings.may_resume if settings is not None else None
        if may_resume is not None and not await asyncio.to_thread(may_resume, self.kernel_id):
            raise ProvisionerError("session_held")

    def _begin_resuming(self) -> None:
        self.paused, self.resuming = False, True
        self._notify("resuming")
        self._marks.expect_answer()
        self._watch = asyncio.get_running_loop().create_task(self._watch_start())

    def _fresh_launch_arguments(self) -> dict[str, Any]:
        """What the kernel was launched with, in today's environment: tokens come from the live server."""
        arguments = dict(self._km._launch_args or {})
        saved = dict(arguments.get("env") or {})
        own = {name: value for name, value in saved.items() if self._environ.get(name) != value}
        arguments["env"] = {**os.environ, **own}
        return arguments

    async def _still_paused(self) -> None:
        if self._hold is not None:
            self._hold.bind(self._km.ports)
            await self._hold.accept()

    async def _watch_start(self) -> None:
        """Until the new process has answered: should it die, the kernel is paused again, not restarted empty."""
        answer = asyncio.ensure_future(self._marks.answered())
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=_PROCESS_LOOK)
                if not self.process_alive:
                    await self._fall_back()
                    return
            self.settle()
        finally:
            answer.cancel()

    async def _fall_back(self) -> None:
        self._watch = None
        self.log.warning("jupyter-pause: the process that was to resume a kernel ended; the kernel is still paused")
        await self.release()
        self._notify("resume_failed")

    def settle(self) -> None:
        """The resume is proven: from here on the process is treated like any other. Calling it again does nothing."""
        if not self.resuming:
            return
        self._stop_watching()
        self.resuming = False
        self._marks.remove()
        self._notify("resumed")

    def _stop_watching(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None and watch is not asyncio.current_task():
            watch.cancel()

    # --- what kernel managers ask ---------------------------------------------------------------------------------

    async def poll(self) -> int | None:
        """None while the kernel is alive: with a process, paused, or resuming."""
        if self.paused or self.resuming:
            return None
        code = await super().poll()
        if code is not None and self._reason_code is None and await self._saved_itself():
            return None
        return code

    async def _saved_itself(self) -> bool:
        """A process that ended because its watchdog had saved it: the kernel is paused, not dead."""
        settings = launch.launch_settings()
        pid = self.kernel_pid
        if settings is None or settings.saved_itself is None or pid is None or pid == self._asked_about:
            return self.paused
        self._asked_about = pid
        if not await asyncio.to_thread(settings.saved_itself, self.kernel_id, pid) or self.process is None:
            return self.paused
        self.paused = True
        self._marks.apply()
        await self._hold_ports(KernelProcesses())
        self._forget_process()
        self._notify("paused")
        return True

    async def wait(self) -> int | None:
        """Wait for the end of the process; a paused kernel has none, so this ends the session at once."""
        if self.paused:
            self._leave_pause()
            return 0
        return await super().wait()

    async def send_signal(self, signum: int) -> None:
        """Signal the process group. On a paused kernel nothing happens: an interrupt means no harm."""
        if not self.paused:
            await super().send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Kill the process; ends a pause at once."""
        self._expect_end()
        await super().kill(restart=restart)

    async def terminate(self, restart: bool = False) -> None:
        """Terminate the process; ends a pause at once."""
        self._expect_end()
        await super().terminate(restart=restart)

    async def shutdown_requested(self, restart: bool = False) -> None:
        """Somebody shuts the kernel down or restarts it. A paused kernel has nobody to wait five seconds for."""
        self._expect_end()
        await super().shutdown_requested(restart=restart)

    def _expect_end(self) -> None:
        self._stop_watching()
        if self.resuming:
            self.resuming = False
            self._marks.remove()
        if self.paused:
            self._leave_pause()

    def _leave_pause(self) -> None:
        """No longer paused and still without a process. The ports stay ours until cleanup() says what comes next."""
        self.paused = False
        self._was_paused = True
        self._marks.remove(state="starting")

    async def cleanup(self, restart: bool = False) -> None:
        """The process has ended for good, or a new and empty one follows. Checkpoints are never touched here."""
        await super().cleanup(restart=restart)
        if launch.launch_settings() is None:
            return
        if self._hold is not None:
            self._hold.quiet()
        if launch.valid_kernel_id(self.kernel_id):
            launch.remove_file(launch.load_file(self._km.connection_file, self.kernel_id))
        if restart:
            return
        self._free_ports()
        if launch.valid_kernel_id(self.kernel_id):
            launch.remove_file(launch.kernel_file(self._km.connection_file, self.kernel_id))
        if self._output is not None:
            self._output.remove()
        was_paused, self._was_paused = self._was_paused, False
        self._notify("ended", was_paused=was_paused)

    def _free_ports(self) -> None:
        if self._hold is not None:
            self._hold.free()
            self._hold = None

    def _notify(self, kind: EventKind, *, was_paused: bool = False) -> None:
        settings = launch.launch_settings()
        event = KernelEvent(kind, self.kernel_id, self, was_paused)
        for listener in list(settings.listeners) if settings is not None else []:
            try:
                listener(event)
            except Exception:
                self.log.exception("jupyter-pause: a listener failed on %s", kind)


def configure_default_provisioner(server_app: Any) -> str | None:
    """Make ours the default provisioner (link hook), unless the configuration, command line or environment name one.

    Returns None, or why kernels here will not be pausable: `gateway`, `foreign_provisioner`.
    """
    config = server_app.config
    if os.environ.get("JUPYTER_GATEWAY_URL") or config.get("GatewayClient", {}).get("url"):
        return "gateway"
    chosen = config.get("KernelProvisionerFactory", {}).get("default_provisioner_name")
    chosen = chosen or os.environ.get(KernelProvisionerFactory.default_provisioner_name_env)
    if chosen:
        return None if chosen == PROVISIONER_NAME else "foreign_provisioner"
    from traitlets.config import Config

    server_app.update_config(Config({"KernelProvisionerFactory": {"default_provisioner_name": PROVISIONER_NAME}}))
    if KernelProvisionerFactory.initialized():  # made by an earlier server in this process
        KernelProvisionerFactory.instance().default_provisioner_name = PROVISIONER_NAME
    return None


def uses_pause_provisioner(kernel_spec: Any, kernel_manager: Any) -> bool:
    """Whether a kernel of this specification would get our provisioner from this (multi) kernel manager."""
    factory = KernelProvisionerFactory.instance(parent=kernel_manager)
    stanza = (kernel_spec.metadata or {}).get("kernel_provisioner") or {}
    name = stanza.get("provisioner_name") or factory.default_provisioner_name
    return bool(name == PROVISIONER_NAME)


__all__ = [
    "PROVISIONER_NAME",
    "LaunchSettings",
    "PauseProvisioner",
    "ProvisionerError",
    "Released",
    "configure_default_provisioner",
    "uses_pause_provisioner",
]
