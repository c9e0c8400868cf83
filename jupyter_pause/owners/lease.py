# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which server holds a session. Two servers over one data directory must never bring the same session back twice.

A lease is a file created with O_EXCL. It is taken from another server only if that one is provably gone: on the same
machine its process does not exist, elsewhere its heartbeat is older than a limit. Everything here blocks.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_pause.launch import read_private_json, remove_file, write_private_json
from jupyter_pause.owners.records import LEASE, SessionFiles
from jupyter_pause.processes import is_same_process, start_time
from jupyter_pause.workspace.thaw import PodIdentity

if TYPE_CHECKING:
    from jupyter_pause.clock import Clock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Seconds between two heartbeats, and the age at which a server on another machine, or in another container of this
#: pod, counts as gone.
HEARTBEAT = 10.0
GONE_AFTER = 60.0
GONE_AFTER_HERE = 25.0
#: Where Kubernetes mounts the token that names a process's pod.
TOKEN_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_ORDINAL = re.compile(r"-\d+$")
#: Seconds for which a lease that cannot be read yet is taken for one that is being written.
_BEING_WRITTEN = 10.0


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _process_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


@dataclass(frozen=True)
class Holder:
    """A server process, told apart across machines, containers and reboots. `heartbeat` is RFC 3339 UTC."""

    id: str
    host: str
    machine: str
    boot: str
    namespace: str
    pid: int
    start_time: float
    heartbeat: str
    #: The uid of the pod that this process runs in; "" where that is not known.
    pod: str = ""

    @classmethod
    def this_process(cls, now: datetime) -> Holder:
        """This process; every call is another holder."""
        return cls(
            id=uuid.uuid4().hex,
            host=socket.gethostname(),
            machine=_text("/etc/machine-id"),
            boot=_text("/proc/sys/kernel/random/boot_id"),
            namespace=_process_namespace(),
            pid=os.getpid(),
            start_time=start_time(os.getpid()) or 0.0,
            heartbeat=now.isoformat(),
            pod=PodIdentity(TOKEN_FILE).look().pod_uid or "",
        )

    @classmethod
    def parse(cls, content: dict[str, Any]) -> Holder | None:
        """From a lease file; None for one that we do not understand."""
        try:
            values = {name: content[name] for name in cls.__dataclass_fields__ if name != "pod"}
            values["pod"] = str(content.get("pod") or "")
            values.update(pid=int(values["pid"]), start_time=float(values["start_time"]))
            datetime.fromisoformat(values["heartbeat"])
        except (KeyError, TypeError, ValueError):
            return None
        return cls(**values)

    def is_near(self, me: Holder) -> bool:
        """Whether `me` can look at this holder's process."""
        return (self.host, self.boot, self.namespace) == (me.host, me.boot, me.namespace)

    def is_gone(self, me: Holder, now: datetime) -> bool:
        """Whether this holder provably does not live any more, seen from `me`."""
        if self.is_near(me):
            return not is_same_process(self.pid, self.start_time)
        if self.host == me.host and self.machine and self.machine == me.machine and self.boot != me.boot:
            return True  # this machine was booted again
        if self.host == me.host and self._was_an_earlier_pod_of(me):
            return True
        # In one pod both sides have one clock: a few missed heartbeats are enough (a container that started anew).
        limit = GONE_AFTER_HERE if self.pod and self.pod == me.pod else GONE_AFTER
        return now - datetime.fromisoformat(self.heartbeat).astimezone(UTC) > timedelta(seconds=limit)

    def _was_an_earlier_pod_of(self, me: Holder) -> bool:
        """Of a StatefulSet's pod with this name (its host name, ending in a number) there is one at a time.

        Without this a pod that comes back within a minute would have to wait for its own heartbeat to grow old.
        """
        return bool(self.pod and me.pod and self.pod != me.pod and _ORDINAL.search(self.host))


class Leases:
    """The leases that one server holds."""

    def __init__(self, files: SessionFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self.me = Holder.this_process(clock.now())

    def recognise_me(self) -> None:
        """This process woke up elsewhere: its leases stay its own, but host, boot and start time may be others now."""
        self.me = replace(Holder.this_process(self._clock.now()), id=self.me.id)

    def acquire(self, kernel_id: str) -> bool:
        """Take the lease, or keep it; False while another server holds it. Raises OSError."""
        self._files.prepare()
        path = self._files.path(kernel_id, LEASE)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with self._one_at_a_time():
            holder, readable_later = self._read(path)
            if holder is not None and holder.id == self.me.id:
                return True
            if readable_later or (holder is not None and not holder.is_gone(self.me, self._clock.now())):
                return False
            remove_file(path)
            return self._create(path)

    def _create(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        os.close(descriptor)
        self._write(path)
        return True

    def _write(self, path: Path) -> None:
        write_private_json(path, asdict(replace(self.me, heartbeat=self._clock.now().isoformat())))

    def _read(self, path: Path) -> tuple[Holder | None, bool]:
        """The holder; True beside None when the file is so young that it may still be being written."""
        content = read_private_json(path)
        holder = Holder.parse(content) if content is not None else None
        if holder is not None:
            return holder, False
        try:
            age = self._clock.now().timestamp() - path.stat().st_mtime
        except OSError:
            return None, False
        return None, age < _BEING_WRITTEN

    def holds(self, kernel_id: str) -> bool:
        """Whether the lease on disk is ours."""
        holder, _ = self._read(self._files.path(kernel_id, LEASE))
        return holder is not None and holder.id == self.me.id

    def last_heartbeat(self, kernel_id: str) -> datetime | None:
        """When the holder, whoever it is, last said that it lives (UTC)."""
        holder, _ = self._read(self._files.path(kernel_id, LEASE))
        return datetime.fromisoformat(holder.heartbeat).astimezone(UTC) if holder is not None else None

    def surely_held(self, kernel_id: str) -> bool:
        """Whether another server holds it that is seen to be alive: no time will change that."""
        holder, _ = self._read(self._files.path(kernel_id, LEASE))
        return holder is not None and holder.is_near(self.me) and not holder.is_gone(self.me, self._clock.now())

    def beat(self, kernel_id: str) -> bool:
        """Renew the heartbeat; False when the lease is not ours any more."""
        path = self._files.path(kernel_id, LEASE)
        with self._one_at_a_time():
            if not self.holds(kernel_id):
                return False
            self._write(path)
            return True

    def release(self, kernel_id: str) -> None:
        """Give the lease back if it is ours."""
        with self._one_at_a_time():
            if self.holds(kernel_id):
                remove_file(self._files.path(kernel_id, LEASE))

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Reading a stale lease and replacing it must be one step: two servers may look at the same moment."""
        self._files.prepare()
        descriptor = os.open(self._files.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks: O_EXCL alone decides
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
