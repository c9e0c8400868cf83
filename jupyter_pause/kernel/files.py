# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The small files by which server and kernel know of each other; all of them owner-only."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from typing import Any

#: The most that one of these files may hold, in bytes.
LARGEST = 64 * 1024 * 1024


def read_private(path: str) -> dict[str, Any]:
    """The JSON object in `path`. Raises OSError, or ValueError when it is not ours alone or not an object.

    A file that another account could have written is never believed: it names code that will run here.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        state = os.fstat(stream.fileno())
        if os.name == "posix" and (state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o022):
            raise ValueError("{} may be written by others".format(os.path.basename(path)))
        if state.st_size > LARGEST:
            raise ValueError("{} is too large".format(os.path.basename(path)))
        value = json.loads(stream.read().decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("{} holds no object".format(os.path.basename(path)))
    return value


def write_private(path: str, value: dict[str, Any], sync: bool = True) -> None:
    """Write JSON that only its owner can read; readers see the old file or the whole new one. Raises OSError."""
    folder = os.path.dirname(path)
    descriptor, part = tempfile.mkstemp(prefix=".part-", dir=folder)  # 0600 from creation
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(value, stream)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise


class KernelFiles:
    """The kernel file and the load file that belong to one connection file."""

    def __init__(self, connection_file: str | None) -> None:
        """`connection_file` is absolute, or None when the kernel was started without one."""
        folder, name = os.path.split(connection_file or "")
        #: The kernel's id, or None where the file's name does not tell.
        self.kernel_id = None
        if name.startswith("kernel-") and name.endswith(".json"):
            self.kernel_id = name[len("kernel-") : -len(".json")]
        self._kernel_file = os.path.join(folder, "jupyter-pause-{}.json".format(self.kernel_id))
        self._load_file = os.path.join(folder, "jupyter-pause-load-{}.json".format(self.kernel_id))

    def server(self) -> dict[str, Any]:
        """The kernel file as it is now (a restarted server rewrites it); an empty dict when it cannot be used."""
        if self.kernel_id is None:
            return {}
        try:
            return read_private(self._kernel_file)
        except (OSError, ValueError):
            return {}

    def take_load_request(self) -> dict[str, Any] | None:
        """The load file, which is deleted: a later restart must not load again. None when there is none.

        Raises ValueError when there is one that cannot be trusted or read (it is deleted as well).
        """
        if self.kernel_id is None or not os.path.lexists(self._load_file):
            return None
        try:
            return read_private(self._load_file)
        except OSError as error:
            raise ValueError("the load file cannot be read: {}".format(error.strerror)) from None
        finally:
            try:
                os.unlink(self._load_file)
            except OSError:
                pass
