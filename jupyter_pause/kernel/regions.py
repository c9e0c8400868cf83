# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Memory that leaves the pickle: each byte is stored once, however many arrays look at it.

Buffers are sorted by address; those that overlap become one region. A buffer is then a place in a region.
"""

from __future__ import annotations

import ctypes
from typing import Dict, List, Tuple


class _Buffer(ctypes.Structure):
    """Python's own ``Py_buffer``; only the first field is read."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
        ("reserve", ctypes.c_void_p * 8),
    ]


#: PyBUF_FULL_RO: views with gaps and of any item are allowed too.
_FULL_RO = 0x11C


def address_of(view: memoryview) -> int:
    """Where a view's first item lies."""
    buffer = _Buffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
    get(view, ctypes.byref(buffer), _FULL_RO)
    address = int(buffer.buf or 0)
    release = ctypes.pythonapi.PyBuffer_Release
    release.argtypes = [ctypes.POINTER(_Buffer)]
    release(ctypes.byref(buffer))
    return address


class Buffers:
    """Collects the buffers of one dump, in the order in which the pickler gave them."""

    def __init__(self) -> None:
        self._views: List[memoryview] = []

    def __len__(self) -> int:
        return len(self._views)

    def add(self, view: memoryview) -> None:
        """Keep a contiguous view of bytes; it also keeps its memory alive."""
        self._views.append(view)

    @property
    def bytes(self) -> int:
        """Sum of all sizes; memory that several look at counts more than once."""
        return sum(len(view) for view in self._views)

    def regions(self) -> Tuple[List[List[memoryview]], List[List[int]]]:
        """Pieces of each region, and for each buffer ``[region, offset, bytes]``."""
        placed = sorted(
            ((address_of(view), number, view) for number, view in enumerate(self._views)),
            key=lambda item: (item[0], -len(item[2])),
        )
        regions: List[List[memoryview]] = []
        places: Dict[int, List[int]] = {}
        begin = end = -1
        for address, number, view in placed:
            if address >= end:
                regions.append([])
                begin = end = address
            if address + len(view) > end:
                regions[-1].append(view[end - address :])
                end = address + len(view)
            places[number] = [len(regions) - 1, address - begin, len(view)]
        return regions, [places[number] for number in range(len(self._views))]


def used_by(places: List[List[int]], first: int, last: int) -> List[int]:
    """Numbers of the regions that buffers `first` to `last` (exclusive) lie in."""
    return sorted({places[number][0] for number in range(first, last)})
