# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Takes CRIU's own check of a file's size out of a dump, for files that may change without harm.

IPython keeps its history database open in every kernel, so its size changes whenever *another* kernel runs a cell;
SQLite looks for changes by itself before each use. CRIU would refuse to restore. Other files are compared by us, before
the restore, where they can be listed for the person.

Layout of `files.img`: two magic numbers (32 bits each), then messages, each behind its length (32 bits, little endian),
in protobuf's wire format (https://protobuf.dev/programming-guides/encoding/). Numbers of fields: images/fdinfo.proto
(`file_entry`: type 1, id 2, reg 3) and images/regfile.proto (`reg_file_entry`: name 6, size 8) of CRIU 4.2.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_HEADER = 8
_REG, _NAME, _SIZE = 3, 6, 8
_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5


class ImageError(Exception):
    """The file is not laid out as this version of CRIU writes it; it was left as it is."""


def forget_sizes(files_image: Path, may_change: Callable[[str], bool]) -> int:
    """Drop the recorded size of every open file whose path (text) `may_change`; returns how many there were.

    Blocks. Raises ImageError, OSError.
    """
    data = files_image.read_bytes()
    changed = 0
    parts = [data[:_HEADER]]
    for message in _messages(data):
        fields = []
        for number, raw, value in _fields(message):
            if number == _REG and value is not None:
                smaller = _without_size(value, may_change)
                if smaller is not None:
                    changed += 1
                    raw = _varint(_REG << 3 | _BYTES) + _varint(len(smaller)) + smaller
            fields.append(raw)
        body = b"".join(fields)
        parts += [struct.pack("<I", len(body)), body]
    if changed:
        files_image.write_bytes(b"".join(parts))
    return changed


def _without_size(entry: bytes, may_change: Callable[[str], bool]) -> bytes | None:
    fields = list(_fields(entry))
    name = next((value for number, _, value in fields if number == _NAME and value is not None), b"")
    if not any(number == _SIZE for number, _, _ in fields) or not may_change(name.decode(errors="surrogateescape")):
        return None
    return b"".join(raw for number, raw, _ in fields if number != _SIZE)


def _messages(data: bytes) -> Iterator[bytes]:
    position = _HEADER
    while position < len(data):
        if position + 4 > len(data):
            raise ImageError("cut short")
        (length,) = struct.unpack_from("<I", data, position)
        position += 4
        if position + length > len(data):
            raise ImageError("cut short")
        yield data[position : position + length]
        position += length


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Number, raw bytes and, for length-delimited fields, the content."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        value = None
        kind = tag & 7
        if kind == _VARINT:
            _, position = _read_varint(message, position)
        elif kind == _I64:
            position += 8
        elif kind == _I32:
            position += 4
        elif kind == _BYTES:
            length, position = _read_varint(message, position)
            value = message[position : position + length]
            position += length
        else:
            raise ImageError(f"wire type {kind}")
        if position > len(message):
            raise ImageError("cut short")
        yield tag >> 3, message[start:position], value


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ImageError("not a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
