# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The raw buffers of a checkpoint as memory: mapped copy-on-write, or read where that is not wise."""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any, Dict, List, Optional

#: File systems where a mapping is slow, or can fail under the reader's feet.
_NETWORK = frozenset(
    (
        "nfs nfs4 cifs smb3 smbfs 9p ceph fuse.ceph glusterfs fuse.glusterfs lustre afs gpfs beegfs fuse.sshfs "
        "fuse.gcsfuse fuse.s3fs fuse.rclone fuse.goofys fuse.juicefs fuse.blobfuse2 virtiofs ocfs2 pvfs2 orangefs"
    ).split()
)


def may_map(folder: str) -> bool:
    """Whether files in a folder should be mapped: not on Windows (they could not be deleted), not over a network."""
    if sys.platform == "win32":
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
    """Gives views of regions. Each view is writable and private: what is written stays in this process."""

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        self._folder = folder
        self._regions: List[Dict[str, Any]] = manifest["regions"]
        self._packs = [str(pack["file"]) for pack in manifest["packs"]]
        self._maps: Dict[int, Optional[memoryview]] = {}
        self._read: Dict[int, memoryview] = {}
        self._map = may_map(folder)

    def view(self, region: int, offset: int, length: int) -> memoryview:
        """`length` bytes of a region. Views of one region share its memory."""
        return self._region(region)[offset : offset + length]

    def _region(self, number: int) -> memoryview:
        if number not in self._read:
            self._read[number] = self._mapped(number) or self._load(number)
        return self._read[number]

    def _mapped(self, number: int) -> Optional[memoryview]:
        """The region inside a mapping of its pack, where its chunks follow each other in one pack."""
        chunks = self._regions[number]["chunks"]
        first = chunks[0]
        expected = first["offset"]
        for chunk in chunks:
            if chunk["pack"] != first["pack"] or chunk["offset"] != expected:
                return None
            expected += chunk["bytes"]
        pack = self._pack(first["pack"])
        return None if pack is None else pack[first["offset"] : expected]

    def _pack(self, number: int) -> Optional[memoryview]:
        if number not in self._maps:
            self._maps[number] = None
            if self._map:
                try:
                    with open(os.path.join(self._folder, self._packs[number]), "rb") as stream:
                        self._maps[number] = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))
                except (OSError, ValueError):
                    pass  # the system refuses so large a mapping: read instead
        return self._maps[number]

    def _load(self, number: int) -> memoryview:
        region = self._regions[number]
        memory = memoryview(bytearray(region["bytes"]))
        start = 0
        for chunk in region["chunks"]:
            with open(os.path.join(self._folder, self._packs[chunk["pack"]]), "rb", buffering=0) as stream:
                stream.seek(chunk["offset"])
                end = start + chunk["bytes"]
                while start < end:
                    got = stream.readinto(memory[start:end])
                    if not got:
                        raise EOFError("a pack file is shorter than its manifest says")
                    start += got
        return memory
