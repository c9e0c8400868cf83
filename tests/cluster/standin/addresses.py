# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Loopback addresses for pods: each stand-in on this machine has 250 of its own."""

from __future__ import annotations

import contextlib
import random
import socket

from .api import Key

#: Of the last byte: what the stand-in itself holds to say that the others are taken.
HELD = 254
PORT = 8888


class Addresses:
    """A range 127.X.Y.1 to 127.X.Y.250, held until `close`."""

    def __init__(self) -> None:
        self._lock, self._prefix = _hold()
        self._given: dict[Key, str] = {}

    def of(self, pod: Key) -> str:
        """The address of the pod of that name. A pod that is made again gets the same one, so that a restored server
        still listens on its own.

        Raises:
            RuntimeError: there are none left.
        """
        if pod not in self._given:
            number = len(self._given) + 1
            if number > 250:
                raise RuntimeError("no addresses left")
            self._given[pod] = f"{self._prefix}.{number}"
        return self._given[pod]

    def close(self) -> None:
        """Let others have the range."""
        self._lock.close()


def _hold() -> tuple[socket.socket, str]:
    while True:
        prefix = f"127.{random.randint(64, 254)}.{random.randint(0, 254)}"
        held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError):
            held.bind((f"{prefix}.{HELD}", PORT))
            return held, prefix
        held.close()
