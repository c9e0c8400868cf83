# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which memory of this process is still an unwritten private mapping of a file: it then equals the file, byte for byte.

Linux tells in /proc/self/maps and /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst: bit 61 "page is
file-page or shared-anon", 62 "page swapped", 63 "page present"; no privilege is needed for these bits). A page of a
private file mapping becomes anonymous when it is first written. Elsewhere nothing is known, and everything is hashed.
"""

from __future__ import annotations

import bisect
import mmap
import os
import sys
from typing import Dict, List, Optional, Tuple

_ENTRY = 8
#: Values of a pagemap entry's highest byte that say: not written. Swapped pages were; absent ones are the file's.
_UNWRITTEN = bytes(top for top in range(256) if not top & 0x40 and (not top & 0x80 or top & 0x20))
#: Pages asked about at once.
_AT_ONCE = 1 << 16

#: (st_dev, st_ino) of a file -> what the caller calls it.
Files = Dict[Tuple[int, int], int]


class Mappings:
    """The private mappings of some files at one moment."""

    def __init__(self, files: Files) -> None:
        self._spans: List[Tuple[int, int, int, int]] = _private_spans(files) if files else []
        self._starts = [span[0] for span in self._spans]
        self._pagemap = _open_pagemap() if self._spans else -1

    def unwritten(self, address: int, length: int) -> Optional[Tuple[int, int]]:
        """(file, offset) where the bytes from `address` on are a mapped part of one file that nobody wrote to."""
        index = bisect.bisect_right(self._starts, address) - 1
        if self._pagemap < 0 or index < 0 or length <= 0:
            return None
        start, end, offset, name = self._spans[index]
        if address + length > end or not self._clean(address, length):
            return None
        return name, offset + address - start

    def _clean(self, address: int, length: int) -> bool:
        first = address // mmap.PAGESIZE
        last = (address + length - 1) // mmap.PAGESIZE + 1
        highest = _ENTRY - 1 if sys.byteorder == "little" else 0
        try:
            for page in range(first, last, _AT_ONCE):
                wanted = min(_AT_ONCE, last - page) * _ENTRY
                data = os.pread(self._pagemap, wanted, page * _ENTRY)
                if len(data) != wanted or data[highest::_ENTRY].translate(None, _UNWRITTEN):
                    return False
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Nothing is asked any more."""
        if self._pagemap >= 0:
            os.close(self._pagemap)
            self._pagemap = -1


def _open_pagemap() -> int:
    try:
        return os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return -1


def _private_spans(files: Files) -> List[Tuple[int, int, int, int]]:
    """(start, end, file offset, file), by address; neighbours that go on in the same file are one."""
    try:
        with open("/proc/self/maps", "rb") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    spans: List[Tuple[int, int, int, int]] = []
    for line in lines:
        fields = line.split(None, 5)
        if len(fields) < 5 or fields[1][3:4] != b"p" or fields[4] == b"0":
            continue
        major, _, minor = fields[3].partition(b":")
        name = files.get((os.makedev(int(major, 16), int(minor, 16)), int(fields[4])))
        if name is None:
            continue
        start, _, end = fields[0].partition(b"-")
        span = (int(start, 16), int(end, 16), int(fields[2], 16), name)
        last = spans[-1] if spans else None
        if last and last[1] == span[0] and last[3] == name and last[2] + last[1] - last[0] == span[2]:
            span = (last[0], span[1], last[2], name)
            spans.pop()
        spans.append(span)
    return spans
