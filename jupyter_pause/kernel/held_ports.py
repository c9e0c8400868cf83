# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Lets ipykernel serve on listening sockets that it inherits from the server instead of binding its ports itself.

The server listens on the ports before this process exists, and goes on holding them after its end. So there is no
moment at which another process could bind one of them and read the cells that wait for this kernel.
"""

import os
from typing import Any, Dict

#: Set by the server for this process alone: "port:fd,port:fd".
VARIABLE = "JUPYTER_PAUSE_LISTEN_FDS"


def inherited() -> Dict[int, int]:
    """The inherited sockets, {port: fd}; the variable is gone afterwards and children will not inherit them."""
    sockets = {}
    for pair in os.environ.pop(VARIABLE, "").split(","):
        port, _, descriptor = pair.partition(":")
        if port.isdigit() and descriptor.isdigit():
            try:
                os.set_inheritable(int(descriptor), False)
            except OSError:
                continue  # a wrapper closed it: that port is bound in the usual way
            sockets[int(port)] = int(descriptor)
    return sockets


def install() -> None:
    """Have ZeroMQ use the inherited sockets when their ports are bound; whatever fails, the port can be bound."""
    sockets = inherited()
    if not sockets:
        return
    try:
        import zmq

        original = zmq.Socket.bind
        option = zmq.USE_FD
    except Exception:
        for descriptor in sockets.values():
            os.close(descriptor)
        return

    def bind(self: Any, addr: Any) -> Any:
        """zmq's own bind, on an inherited socket where there is one for the port."""
        port = addr.rpartition(":")[2] if isinstance(addr, str) else ""
        descriptor = sockets.pop(int(port), None) if port.isdigit() else None
        if not sockets:
            setattr(zmq.Socket, "bind", original)  # noqa: B010
        if descriptor is None:
            return original(self, addr)
        try:
            self.setsockopt(option, descriptor)
        except Exception:
            os.close(descriptor)
            return original(self, addr)
        try:
            return original(self, addr)
        finally:
            self.setsockopt(option, -1)

    setattr(zmq.Socket, "bind", bind)  # noqa: B010
