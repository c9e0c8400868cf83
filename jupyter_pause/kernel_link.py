# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The small door through which a kernel reaches this server: one JSON line each way over an owner-only Unix socket.

Its address stands in the kernel's own 0600 file, so no secret lies in an environment that others could read; the
peer's user id is checked as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import PauseError
from .states import Loss

if TYPE_CHECKING:
    from .pauser import Pauser

#: A Unix socket's path may be about 100 bytes long (`sun_path` in unix(7) is 108 with its end).
LONGEST_SOCKET_PATH = 100
#: Bytes of a request: `%pause` tells everything that a checkpoint would lose.
LONGEST_LINE = 16 << 20
FOLDER_PREFIX = "jpause-"
#: How many cells that did not run are remembered.
MOST_CELLS = 10_000


class KernelLink:
    """Listens for `%pause` and its relatives."""

    def __init__(self, pauser: Pauser, log: Any) -> None:
        self._pauser = pauser
        self._log = log
        self._server: asyncio.Server | None = None
        #: Where kernels find us; None where Unix sockets do not exist.
        self.path = self._make_path()

    @staticmethod
    def _make_path() -> Path | None:
        """A short path in a new owner-only folder; None where Unix sockets do not exist."""
        if not hasattr(socket, "AF_UNIX"):
            return None
        for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
            if not base or not os.access(base, os.W_OK):
                continue
            folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=base))
            if len(os.fsencode(folder / "s")) < LONGEST_SOCKET_PATH:
                return folder / "s"
            folder.rmdir()
        return None

    async def start(self) -> None:
        """Begin to listen."""
        if self.path is None:
            return
        await asyncio.to_thread(remove_stale_folders, self.path.parent.parent)
        before = os.umask(0o177)  # before bind: the socket is never open to others, not even for a moment
        try:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(self.path))
        finally:
            os.umask(before)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=LONGEST_LINE)

    async def stop(self) -> None:
        """Stop listening and remove the folder."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self.path is not None:
            await asyncio.to_thread(shutil.rmtree, self.path.parent, ignore_errors=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not _same_user(writer):
                return
            async with asyncio.timeout(10):
                line = await reader.readline()
            reply = await self._answer(line)
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        except (TimeoutError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            operation = getattr(self, "_op_" + str(request.get("op")), None)
            if operation is None:
                raise PauseError("bad_request", detail="unknown op")
            result: dict[str, Any] = await operation(request)
            return {"ok": True, **result}
        except PauseError as error:
            losses = [loss.model_dump() for loss in error.losses or []]
            return {"ok": False, "code": error.code, "message": error.sentence, "losses": losses}
        except (ValueError, AttributeError):
            return {
                "ok": False,
                "code": "bad_request",
                "message": PauseError("bad_request", detail="not JSON").sentence,
            }
        except Exception as error:
            self._log.exception("jupyter-pause: a kernel's request failed")
            return {
                "ok": False,
                "code": "internal",
                "message": PauseError("internal", detail=type(error).__name__).sentence,
            }

    async def _op_pause(self, request: dict[str, Any]) -> dict[str, Any]:
        on_loss = "accept" if request.get("on_loss") == "accept" else "refuse"
        kernel_id = str(request.get("kernel_id"))
        losses = _losses(request)
        operation, staging = await self._pauser.pause_from_kernel(kernel_id, on_loss, losses)  # type: ignore[arg-type]
        return {"operation": operation.id, "staging": str(staging)}

    async def _op_preview(self, request: dict[str, Any]) -> dict[str, Any]:
        lost = await self._pauser.lost_for_good(str(request.get("kernel_id")), _losses(request))
        return {"losses": [loss.model_dump() for loss in lost]}

    async def _op_status(self, request: dict[str, Any]) -> dict[str, Any]:
        state = await self._pauser.state()
        mine = [row.model_dump(mode="json") for row in state.kernels if row.id == request.get("kernel_id")]
        return {"state": mine[0] if mine else None, "counts": state.counts}

    async def _op_list(self, request: dict[str, Any]) -> dict[str, Any]:
        manifests = await asyncio.to_thread(self._pauser.store.list)
        rows = [{"id": m.id, "created": m.created.isoformat(), "path": m.path, "bytes": m.bytes} for m in manifests]
        return {"checkpoints": rows}

    async def _op_cancel(self, request: dict[str, Any]) -> dict[str, Any]:
        kernel_id = str(request.get("kernel_id"))
        for row in (await self._pauser.state()).kernels:
            if row.id == kernel_id and row.operation:
                return {"operation": (await self._pauser.cancel(row.operation)).id}
        raise PauseError("operation_not_found")

    async def _op_aborted(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = [str(i) for i in request.get("messages") or []][:MOST_CELLS]
        cells = [str(i) for i in request.get("cells") or []][:MOST_CELLS]
        self._pauser.remember_aborted(str(request.get("kernel_id")), messages, cells)
        return {}


def remove_stale_folders(base: Path) -> None:
    """Remove what servers left that were killed: folders of ours whose socket nobody listens on any more. Blocks."""
    for folder in base.glob(FOLDER_PREFIX + "*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid() or not (folder / "s").is_socket():
                continue  # also a server that has made its folder and is about to listen
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.connect(str(folder / "s"))
        except ConnectionRefusedError:
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


def _losses(request: dict[str, Any]) -> list[Loss]:
    """What the kernel found that a checkpoint would lose. Raises ValueError."""
    return [Loss.model_validate(loss) for loss in request.get("losses") or []]


def _same_user(writer: asyncio.StreamWriter) -> bool:
    """True when the peer runs as this user (or root); where the system cannot tell, the folder's mode must do."""
    sock = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (os.geteuid(), 0)
