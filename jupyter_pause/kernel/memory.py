# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The raw buffers of a checkpoint as memory: mapped copy-on-write, or read where that is not wise."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from .packs import LARGE

#: File systems where a mapping is slow, or can fail under the reader's feet.
_NETWORK = frozenset(
    (
        "nfs nfs4 cifs smb3 smbfs 9p ceph fuse.ceph glusterfs fuse.glusterfs lustre afs gpfs beegfs fuse.sshfs "
        "fuse.gcsfuse fuse.s3fs fuse.rclone fuse.goofys fuse.juicefs fuse.blobfuse2 virtiofs ocfs2 pvfs2 orangefs"
    ).split()
)
#: Small regions that lie near each other in a file are mapped together, up to so many bytes.
GROUP = 8 << 20
#: At most so many separate parts of files are mapped; Linux allows 65530 for a process (vm.max_map_count).
MOST_PARTS = 20_000

#: A part of a pack: (pack number, offset in the pack, offset in the memory, bytes).
Part = Tuple[int, int, int, int]


def may_map(folder: str) -> bool:
    """Whether files in a folder should be mapped: not on Windows (they could not be deleted), not over a network."""
    if sys.platform == "win32" or _mmap is None:
        return False
    try:
        with open("/proc/self/mounts", "rb") as stream:
            mounts = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return True
    place = os.path.realpath(folder)
    best, kind = "", ""
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").replace("\\134", "\\")
        if (place + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind not in _NETWORK


class Memory:
    """Gives views of regions. Each view is writable and private: what is written stays in this process.

    A large region is a mapping of its own, so its memory is free again when the last array over it is. What is mapped
    needs its file no more by name: the checkpoint may be deleted, and the disk may be full.
    """

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        self._folder = folder
        self._regions: List[Dict[str, Any]] = manifest["regions"]
        self._packs = [str(pack["file"]) for pack in manifest["packs"]]
        self._views: Dict[int, memoryview] = {}
        self._parts = 0
        self._mappings: List[mmap.mmap] = []
        self._map = may_map(folder)
        #: Small regions: number -> numbers of all that are mapped with it.
        self._groups: Dict[int, List[int]] = self._group() if self._map else {}

    def view(self, region: int, offset: int, length: int) -> memoryview:
        """`length` bytes of a region. Views of one region share its memory. Raises OSError, EOFError."""
        if region not in self._views:
            self._provide(region)
        return self._views[region][offset : offset + length]

    def ready(self) -> None:
        """The load is over: from now on the system reads ahead where memory is used in order.

        While loading only samples are looked at, megabytes apart: to read ahead of each would take seconds.
        """
        mappings, self._mappings = self._mappings, []
        for mapping in mappings:
            _advise(mapping, "MADV_NORMAL")

    def _provide(self, number: int) -> None:
        if number in self._groups and self._map_group(self._groups[number]):
            return
        region = self._regions[number]
        mapped = self._mapped(_parts(region), region["bytes"]) if self._map and region["bytes"] >= LARGE else None
        self._views[number] = self._load(number) if mapped is None else mapped

    # --- mapping ---------------------------------------------------------------------------------------------------

    def _group(self) -> Dict[int, List[int]]:
        """Small regions by the pack they lie in, in groups of neighbours."""
        small = []
        for number, region in enumerate(self._regions):
            if 0 < region["bytes"] < LARGE and len(region["chunks"]) == 1:
                chunk = region["chunks"][0]
                small.append((chunk["pack"], chunk["offset"], chunk["bytes"], number))
        groups: Dict[int, List[int]] = {}
        current: List[int] = []
        pack = begin = end = -1
        for where, offset, length, number in sorted(small):
            if where == pack and offset < end:
                continue  # equal bytes are stored once, but two arrays stay two: this one gets memory of its own
            if where != pack or offset + length - begin > GROUP or offset - end > LARGE:
                current, pack, begin = [], where, offset
            end = max(end if current else 0, offset + length)
            current.append(number)
            groups[number] = current
        return groups

    def _map_group(self, numbers: List[int]) -> bool:
        chunks = [self._regions[number]["chunks"][0] for number in numbers]
        begin = min(chunk["offset"] for chunk in chunks) // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        length = max(chunk["offset"] + chunk["bytes"] for chunk in chunks) - begin
        mapped = self._mapped([(chunks[0]["pack"], begin, 0, length)], length)
        if mapped is None:
            return False
        for number, chunk in zip(numbers, chunks):
            start = chunk["offset"] - begin
            self._views[number] = mapped[start : start + chunk["bytes"]]
        return True

    def _mapped(self, parts: List[Part], length: int) -> Optional[memoryview]:
        """One range of memory with parts of files in it; None where that cannot be had."""
        step = mmap.ALLOCATIONGRANULARITY
        if self._parts + len(parts) > MOST_PARTS or any(part[1] % step or part[2] % step for part in parts):
            return None
        try:
            reserved = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
        except (OSError, ValueError):
            return None  # the system refuses so large a mapping: read instead
        view = memoryview(reserved)
        address = ctypes.addressof(ctypes.c_char.from_buffer(reserved))
        for pack, offset, start, size in parts:
            if not self._place(address + start, size, pack, offset):
                _kept.append(view)  # what is left of the range must never be given back: it may have a hole
                return None
        self._parts += len(parts)
        _advise(reserved, "MADV_RANDOM")
        self._mappings.append(reserved)
        return view

    def _place(self, address: int, length: int, pack: int, offset: int) -> bool:
        """Put a part of a pack at an address inside a range that is ours."""
        assert _mmap is not None
        try:
            descriptor = os.open(os.path.join(self._folder, self._packs[pack]), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if os.fstat(descriptor).st_size < offset + length:
                return False  # touching what lies behind a file's end kills the process
            flags = mmap.MAP_PRIVATE | _FIXED | _NORESERVE
            made = _mmap(address, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, offset)
            return bool(made == address)
        finally:
            os.close(descriptor)

    # --- reading ---------------------------------------------------------------------------------------------------

    def _load(self, number: int) -> memoryview:
        region = self._regions[number]
        memory = memoryview(bytearray(region["bytes"]))
        for pack, offset, start, length in _parts(region):
            with open(os.path.join(self._folder, self._packs[pack]), "rb", buffering=0) as stream:
                stream.seek(offset)
                end = start + length
                while start < end:
                    got = stream.readinto(memory[start:end])
                    if not got:
                        raise EOFError("a pack file is shorter than its manifest says")
                    start += got
        return memory


def _advise(mapping: mmap.mmap, advice: str) -> None:
    """Only a hint: systems that do not know it do without."""
    try:
        mapping.madvise(getattr(mmap, advice))
    except (AttributeError, OSError):
        return


def _parts(region: Dict[str, Any]) -> List[Part]:
    """Where a region lies; chunks that follow each other in one pack are one part."""
    parts: List[Part] = []
    start = 0
    for chunk in region["chunks"]:
        last = parts[-1] if parts else None
        if last is not None and last[0] == chunk["pack"] and last[1] + last[3] == chunk["offset"]:
            parts[-1] = (last[0], last[1], last[2], last[3] + chunk["bytes"])
        else:
            parts.append((chunk["pack"], chunk["offset"], start, chunk["bytes"]))
        start += chunk["bytes"]
    return parts


_kept: List[memoryview] = []
_NORESERVE = {"linux": 0x4000, "darwin": 0x40}.get(sys.platform, 0)
_FIXED = 0x10


def _system_mmap() -> Any:
    """The C library's mmap, with which a file can be put at a chosen address (Linux and macOS, 64 bits)."""
    if sys.platform not in ("linux", "darwin") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).mmap
    except (OSError, AttributeError):
        return None
    call.restype = ctypes.c_void_p
    kinds = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    call.argtypes = list(kinds)
    return call


_mmap = _system_mmap()
