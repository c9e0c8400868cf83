# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Messages from the server to our code in a kernel, over the kernel's own (signed) channels."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = "jupyter_pause_request"
CONTROL = "jupyter_pause_control"


@contextmanager
def kernel_client(kernel_manager: Any, *, shell: bool = False, control: bool = False) -> Iterator[Any]:
    """A short-lived client of the kernel; its sockets are closed on the way out."""
    client = kernel_manager.client()
    client.start_channels(shell=shell, iopub=False, stdin=False, hb=False, control=control)
    try:
        yield client
    finally:
        client.stop_channels()


async def control_request(kernel_manager: Any, content: dict[str, Any], timeout: float) -> dict[str, Any] | None:
    """Ask our code in the kernel over the control channel (answers while a cell runs).

    Returns the reply's content, or None when none came within `timeout` seconds: the kernel may be hung, or it runs
    without our bootstrap.
    """
    with kernel_client(kernel_manager, control=True) as client:
        message = client.session.msg(CONTROL, content)
        client.control_channel.send(message)
        deadline = asyncio.get_running_loop().time() + timeout
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                reply = await client.control_channel.get_msg(timeout=left)
            except Exception:  # queue.Empty, and zmq errors while a kernel goes away
                return None
            if reply.get("parent_header", {}).get("msg_id") == message["header"]["msg_id"]:
                body: dict[str, Any] = reply["content"]
                return body
    return None
