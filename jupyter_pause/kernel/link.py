# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kernel's way to the server: one JSON line over an owner-only Unix socket, one JSON line back."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from .files import KernelFiles

_LONGEST_REPLY = 16 * 1024 * 1024


class ServerUnreachableError(Exception):
    """No server answers; the text is one sentence for a person."""


def request(files: KernelFiles, content: dict[str, Any], timeout: float = 20.0) -> dict[str, Any]:
    """Send `content` to the server that looks after this kernel; returns its answer (a dict).

    The address is looked up now, because a restarted server has another one. Raises ServerUnreachableError.
    """
    address = address_of_server(files)
    try:
        line = _exchange(address, dict(content, kernel_id=files.kernel_id), timeout)
    except socket.timeout:
        raise ServerUnreachableError(
            "The Jupyter server did not answer within {:.0f} seconds. Nothing was changed; try again.".format(timeout)
        ) from None
    except OSError as error:
        raise ServerUnreachableError(
            "The Jupyter server cannot be reached ({}). Nothing was changed; is it still running?".format(
                error.strerror or type(error).__name__
            )
        ) from None
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ServerUnreachableError("The Jupyter server gave no usable answer. Nothing was changed; see its log.")
    return answer


def address_of_server(files: KernelFiles) -> str:
    """Path of the server's socket as of now. Raises ServerUnreachableError where there is none."""
    address = (files.server().get("server") or {}).get("socket")
    if not address:
        raise ServerUnreachableError(
            "This kernel was not started by a Jupyter server with jupyter-pause, so there is nothing to ask. "
            "Nothing was changed; start the notebook from JupyterLab with jupyter-pause installed."
        )
    if not hasattr(socket, "AF_UNIX"):
        raise ServerUnreachableError(
            "This system has no Unix sockets; use the Pause button instead. Nothing was changed."
        )
    return str(address)


def _exchange(address: str, content: dict[str, Any], timeout: float) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        os.set_inheritable(connection.fileno(), False)
        connection.connect(address)
        connection.sendall(json.dumps(content).encode() + b"\n")
        received = bytearray()
        while not received.endswith(b"\n") and len(received) < _LONGEST_REPLY:
            part = connection.recv(65536)
            if not part:
                break
            received += part
    return bytes(received)
