# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Chunks that an earlier checkpoint has on disk already: the next one refers to the same pack file by a hard link.

A pack is never changed. Each checkpoint that uses one has a name of its own for it, so the file system itself counts
who needs the bytes: whatever is deleted or killed when, a checkpoint that exists has all of its packs. Where hard
links cannot be made, everything is written anew.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, List, Optional, Tuple

from . import mappings
from .format import (
    BASE_MANIFEST,
    BASE_SIGNATURE,
    DAMAGED_MARK,
    FORMAT,
    MANIFEST,
    PACK,
    PACK_NAME,
    SIGNATURE,
    LayoutError,
    committed,
    is_id,
    parse_manifest,
)
from .ownerfiles import read_file, remove_quietly

#: A pack of which less than this part is still used is not shared any more: what is used of it is written anew.
LEAST_USED = 0.5
#: At most so many packs are shared, the most used ones: a mapping may not fall into too many parts.
MOST_PACKS = 15

#: Checkpoints that this process came from or wrote, newest last: folders.
_known: List[str] = []


def remember(folder: str) -> None:
    """This process was loaded from, or saved as, the checkpoint in `folder` (which need not exist yet)."""
    folder = os.path.realpath(folder)
    if folder in _known:
        _known.remove(folder)
    _known.append(folder)
    del _known[:-4]


class Shared:
    """What can be shared with one earlier checkpoint. Packs are numbered from 1: 0 is the new checkpoint's own."""

    def __init__(self, staging: str) -> None:
        self._staging = staging
        #: Manifest entries of the linked packs.
        self.packs: List[Dict[str, Any]] = []
        self._by_hash: Dict[Tuple[str, int], Dict[str, Any]] = {}
        self._by_place: Dict[Tuple[int, int], Dict[str, Any]] = {}
        self._mappings = mappings.Mappings({})

    @classmethod
    def of(cls, staging: str) -> "Shared":
        """With the newest known checkpoint that lies beside `staging` (``staging/<id>``, ``checkpoints/<id>``)."""
        shared = cls(staging)
        checkpoints = os.path.realpath(os.path.dirname(committed(staging)))
        for folder in reversed(_known):
            if os.path.dirname(folder) == checkpoints and shared._take(folder):
                break
        return shared

    @property
    def bytes(self) -> int:
        """Bytes of all chunks that can be shared."""
        return sum(chunk["bytes"] for chunk in self._by_place.values())

    def unwritten(self, address: int, length: int) -> Optional[Dict[str, Any]]:
        """The chunk that this memory was mapped from, if it was not written since. Nothing is read to know it."""
        found = self._mappings.unwritten(address, length)
        chunk = self._by_place.get(found) if found is not None else None
        return chunk if chunk is not None and chunk["bytes"] == length else None

    def same(self, sha256: str, length: int, align: int) -> Optional[Dict[str, Any]]:
        """A chunk with this content that begins at a multiple of `align`."""
        chunk = self._by_hash.get((sha256, length))
        return chunk if chunk is not None and chunk["offset"] % align == 0 else None

    def add(self, chunk: Dict[str, Any]) -> None:
        """A chunk of the new pack: the next with the same content need not be written."""
        self._by_hash.setdefault((chunk["sha256"], chunk["bytes"]), chunk)

    def finish(self, regions: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Drop the packs that no chunk of `regions` lies in and number the others; returns their manifest entries."""
        self._mappings.close()
        used = sorted({chunk["pack"] for region in regions for chunk in region["chunks"]} - {0})
        numbers = {0: 0, **{old: new for new, old in enumerate(used, 1)}}
        for region in regions:
            for chunk in region["chunks"]:
                chunk["pack"] = numbers[chunk["pack"]]
        kept = [self.packs[number - 1] for number in used]
        dropped = [pack["file"] for pack in self.packs if pack not in kept]
        if not kept:
            dropped += [BASE_MANIFEST, BASE_SIGNATURE]
        remove_quietly(*[os.path.join(self._staging, name) for name in dropped])
        return kept

    def drop(self) -> None:
        """The new checkpoint is given up: no link of ours stays."""
        self._mappings.close()
        names = [BASE_MANIFEST, BASE_SIGNATURE, *[str(pack["file"]) for pack in self.packs]]
        remove_quietly(*[os.path.join(self._staging, name) for name in names])

    # --- taking ----------------------------------------------------------------------------------------------------

    def _take(self, folder: str) -> bool:
        """Link what `folder` has that is worth it; False where nothing of it can be used, and an older one may do.

        The links come first: from then on nobody can take the bytes away.
        """
        if os.path.lexists(os.path.join(folder, DAMAGED_MARK)):
            return False
        usable = True
        try:
            for name, link in ((MANIFEST, BASE_MANIFEST), (SIGNATURE, BASE_SIGNATURE)):
                os.link(os.path.join(folder, name), os.path.join(self._staging, link), follow_symlinks=False)
            manifest = parse_manifest(read_file(os.path.join(self._staging, BASE_MANIFEST)))
            if manifest["format"] == FORMAT and is_id(manifest["id"]):
                self._take_packs(folder, manifest)
        except (OSError, NotImplementedError, LayoutError, KeyError, TypeError, ValueError, IndexError):
            self.drop()
            self.packs, self._by_hash, self._by_place = [], {}, {}
            usable = False
        if not self.packs:
            remove_quietly(*[os.path.join(self._staging, name) for name in (BASE_MANIFEST, BASE_SIGNATURE)])
        return usable

    def _take_packs(self, folder: str, manifest: Dict[str, Any]) -> None:
        numbers: Dict[int, int] = {}
        files: mappings.Files = {}
        for old in _worth_sharing(manifest):
            entry = inherited(manifest, old)
            if entry is None:
                continue
            link = os.path.join(self._staging, entry["file"])
            try:
                os.link(os.path.join(folder, manifest["packs"][old]["file"]), link, follow_symlinks=False)
            except OSError:
                continue  # too many links, or no links here
            self.packs.append(entry)
            if not unchanged(link, entry):
                self.packs.pop()
                remove_quietly(link)
                continue
            numbers[old] = len(self.packs)
            status = os.lstat(link)
            files[(status.st_dev, status.st_ino)] = len(self.packs)
        for region in manifest["regions"]:
            for chunk in region["chunks"]:
                number = numbers.get(chunk["pack"])
                if number is not None:
                    mine = dict(chunk, pack=number)
                    self._by_hash[(mine["sha256"], mine["bytes"])] = mine
                    self._by_place[(number, mine["offset"])] = mine
        self._mappings = mappings.Mappings(files)


def inherited(manifest: Dict[str, Any], number: int) -> Optional[Dict[str, Any]]:
    """The entry in the next manifest of a pack of this one; None where the pack does not say when it was written."""
    pack = manifest["packs"][number]
    writer = pack.get("from", manifest["id"])
    if not is_id(writer) or not PACK_NAME.match(str(pack["file"])) or not isinstance(pack.get("modified"), int):
        return None
    return {
        "file": "pack-%s.bin" % writer if pack["file"] == PACK else str(pack["file"]),
        "bytes": int(pack["bytes"]),
        "modified": pack["modified"],
        "from": writer,
        "read_back": pack.get("read_back", manifest["created"]),
    }


def unchanged(path: str, pack: Dict[str, Any]) -> bool:
    """Whether the file at `path` is a plain file that was not written since its manifest entry was made."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_size == pack["bytes"]
        and status.st_mtime_ns == pack.get("modified")
        and (not hasattr(os, "getuid") or status.st_uid == os.getuid())
    )


def _worth_sharing(manifest: Dict[str, Any]) -> List[int]:
    """Numbers of packs of which enough is used, the most used first."""
    used: Dict[int, int] = {}
    seen = set()
    for region in manifest["regions"]:
        for chunk in region["chunks"]:
            place = (chunk["pack"], chunk["offset"])
            if place not in seen:
                seen.add(place)
                used[chunk["pack"]] = used.get(chunk["pack"], 0) + chunk["bytes"]
    enough = [number for number, count in used.items() if count >= LEAST_USED * manifest["packs"][number]["bytes"]]
    return sorted(enough, key=lambda number: -used[number])[:MOST_PACKS]
