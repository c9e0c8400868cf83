# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A random mark that lives in this process's memory only: who still knows it is the same process, not a new one."""

from __future__ import annotations

import hashlib
import secrets
from typing import NoReturn


class Mark:
    """Only the mark's SHA-256 is noted outside; it cannot be pickled, so a checkpoint never carries it."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value = secrets.token_bytes(32)

    def renew(self) -> str:
        """Take a new mark (before a snapshot) and return its digest: hex SHA-256, what goes to disk."""
        self._value = secrets.token_bytes(32)
        return self.digest

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the mark."""
        return hashlib.sha256(self._value).hexdigest()

    def reveal(self) -> str:
        """The mark itself as hex: its SHA-256 must be the digest noted before, which only this process can do."""
        return self._value.hex()

    def __reduce__(self) -> NoReturn:
        raise TypeError("the mark of a process cannot be saved")

    def __repr__(self) -> str:
        return "<mark>"
