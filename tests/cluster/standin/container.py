# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""One container: a real process tree in namespaces of its own, dumped and restored by CRIU."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

INIT = Path(__file__).with_name("container_init.py")
#: facts/process-snapshots.md section 2: what worked for a whole Jupyter server.
OPTIONS = ["--tcp-close", "--file-locks", "--link-remap", "--ghost-limit", "1G", "-v4"]
#: Seconds CRIU gets; a restore that hangs (the same facts, "as a plain user") must not hang a test.
CRIU_LIMIT = 120.0


class CriuError(Exception):
    """CRIU did not do it; the message is the end of its log."""


class OutsideConnection(Exception):
    """The tree has an established connection to a process outside of it."""


@dataclass
class Bind:
    """A folder or file of the machine inside the container. `key` stands for it in a snapshot."""

    key: str
    source: Path
    target: str


@dataclass
class ContainerSpec:
    """What is to run and what it sees."""

    folder: Path
    hostname: str
    argv: Sequence[str]
    env: Mapping[str, str]
    working_dir: str
    binds: list[Bind] = field(default_factory=list)
    #: Empty folders in memory.
    memory: Sequence[str] = ()
    #: Where on the machine the program and its libraries lie.
    image_paths: Sequence[Path] = ()


class Container:
    """A container that runs, or ran.

    Args:
        pid: its process 1, as this machine counts.
        waiting: ends with the exit status of process 1.
    """

    def __init__(self, spec: ContainerSpec, pid: int, waiting: asyncio.Task[int]) -> None:
        self.spec = spec
        self.pid = pid
        self.ended = waiting
        #: Frozen into a snapshot: that it ended is not its own doing.
        self.dumped = False

    @property
    def running(self) -> bool:
        """Whether process 1 is there."""
        return not self.ended.done()

    def tree(self) -> list[psutil.Process]:
        """Process 1 and all below it. In a pid namespace nothing can leave it."""
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(self.pid)
            return [top, *top.children(recursive=True)]
        return []

    async def stop(self, grace: float) -> int:
        """SIGTERM, then SIGKILL after `grace` seconds, as the kubelet does. Returns the exit status."""
        if self.running:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.ended), grace)
        return await self.kill()

    async def kill(self) -> int:
        """SIGKILL; ends every process of the tree. Returns the exit status."""
        if self.running:
            self._signal(signal.SIGKILL)
        return await self.ended

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def dump(self, criu: Path, images: Path, *, close_connections: bool = False) -> None:
        """Write the tree to `images`; afterwards no process of it is left.

        Args:
            close_connections: outside connections are closed in the tree that is restored, and no reason to fail.

        Raises:
            OutsideConnection: it has one (facts/process-snapshots.md section 3); it still runs.
            CriuError: the tree could not be dumped; it still runs.
        """
        outside = outside_connections(self.tree())
        if outside and not close_connections:
            raise OutsideConnection(", ".join(outside))
        await asyncio.to_thread(images.mkdir, parents=True)
        external = [f"--external=mnt[{bind.target}]:{bind.key}" for bind in self.spec.binds]
        command = [str(criu), "dump", "-t", str(self.pid), "-D", str(images), "-o", "dump.log", *OPTIONS, *external]
        self.dumped = True
        try:
            await _run_criu(command, images / "dump.log")
        except CriuError:
            self.dumped = False
            raise
        await self.ended


async def start(spec: ContainerSpec) -> Container:
    """Start the program.

    Raises:
        RuntimeError: it could not be started; the message is what was said.
    """
    pid_file = spec.folder / "pid"
    pid_file.unlink(missing_ok=True)
    document: dict[str, object] = {
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "hostname": spec.hostname,
        "working_dir": spec.working_dir,
        "pid_file": str(pid_file),
        "log": "/run/container/log",
        "binds": [(str(bind.source), bind.target) for bind in spec.binds],
        "memory": list(spec.memory),
        "image_paths": [str(path) for path in spec.image_paths],
    }
    process = await _init(spec, "start", document)
    waiting = asyncio.create_task(_exit_status(process))
    while not (pid_file.exists() and pid_file.read_text(encoding="utf-8")):
        if process.returncode is not None:
            raise RuntimeError((spec.folder / "init.log").read_text(encoding="utf-8"))
        await asyncio.sleep(0.01)
    return Container(spec, int(pid_file.read_text(encoding="utf-8")), waiting)


async def restore(spec: ContainerSpec, criu: Path, images: Path) -> Container:
    """Bring the tree back from `images`.

    Raises:
        CriuError: it does not fit; nothing of it runs.
    """
    pid_file = spec.folder / "pid"
    pid_file.unlink(missing_ok=True)
    root = spec.folder / "root"
    root.mkdir(exist_ok=True)
    external = [f"--external=mnt[{bind.key}]:{bind.source}" for bind in spec.binds]
    log = spec.folder / "restore.log"
    argv = [str(criu), "restore", "-D", str(images), "-o", str(log), *OPTIONS, "-d", "-S", "--root", str(root)]
    argv += ["--pidfile", str(pid_file), *external]
    process = await _init(spec, "restore", {"argv": argv, "root": str(root)})
    try:
        code = await asyncio.wait_for(process.wait(), CRIU_LIMIT)
    except TimeoutError:
        process.kill()
        code = await process.wait()
    if code != 0:
        raise CriuError(_tail(log))
    pid = int(pid_file.read_text(encoding="utf-8"))
    # `-S` makes the restored process 1 a child of ours, not of CRIU.
    return Container(spec, pid, asyncio.create_task(_reap(pid)))


def outside_connections(processes: Sequence[psutil.Process]) -> list[str]:
    """Established TCP connections of these processes whose other end is none of them."""
    established = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            established += [c for c in process.net_connections("tcp") if c.status == psutil.CONN_ESTABLISHED]
    ends = {c.laddr for c in established}
    return sorted(
        {f"{c.laddr.ip}:{c.laddr.port} - {c.raddr.ip}:{c.raddr.port}" for c in established if c.raddr not in ends}
    )


async def _init(spec: ContainerSpec, verb: str, document: dict[str, object]) -> asyncio.subprocess.Process:
    path = spec.folder / f"{verb}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with (spec.folder / "init.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(INIT),
            verb,
            str(path),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


async def _exit_status(process: asyncio.subprocess.Process) -> int:
    return await process.wait()


async def _reap(pid: int) -> int:
    """Wait for a child that no Popen of ours knows."""
    descriptor = os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return _status_of(pid)


def _status_of(ended: int) -> int:
    _, status = os.waitpid(ended, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


async def _run_criu(command: Sequence[str], log: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        code = await asyncio.wait_for(process.wait(), CRIU_LIMIT)
    except TimeoutError:
        process.kill()
        code = await process.wait()
    if code != 0:
        raise CriuError(_tail(log))


def _tail(log: Path) -> str:
    if not log.exists():
        return "CRIU wrote no log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if "Error" in line]
    return "\n".join(errors[-5:] or lines[-5:])
