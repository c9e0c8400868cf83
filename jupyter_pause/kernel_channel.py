# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Messages from the server to our code in a kernel, over the kernel's own (signed) channels.

The manager's own streams are used, not a second client: a `zmq.asyncio` socket that is closed while others of the same
event loop are at work can take their file descriptor's reader with it (seen: replies to other clients never came).
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = "jupyter_pause_request"
CONTROL = "jupyter_pause_control"


@contextmanager
def shell_message(kernel_manager: Any, content: dict[str, Any]) -> Iterator[None]:
    """Send our request on the shell channel, where it queues behind cells; the channel stays open inside the `with`."""
    stream = kernel_manager.connect_shell()
    try:
        kernel_manager.session.send(stream, REQUEST, content)
        yield
    finally:
        stream.close()


async def control_request(kernel_manager: Any, content: dict[str, Any], timeout: float) -> dict[str, Any] | None:
    """Ask our code in the kernel over the control channel (answers while a cell runs).

    Returns the reply's content, or None when none came within `timeout` seconds: the kernel may be hung, or it runs
    without our bootstrap.
    """
    session = kernel_manager.session
    reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    message = session.msg(CONTROL, content)

    def on_message(parts: list[bytes]) -> None:
        try:
            _, frames = session.feed_identities(parts)
            answer = session.deserialize(frames)
        except ValueError:  # not signed with this kernel's key
            return
        if answer["parent_header"].get("msg_id") == message["header"]["msg_id"] and not reply.done():
            reply.set_result(answer["content"])

    stream = kernel_manager.connect_control()
    try:
        stream.on_recv(on_message)
        session.send(stream, message)
        async with asyncio.timeout(timeout):
            return await reply
    except TimeoutError:
        return None
    finally:
        stream.close()
