# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Makes a written checkpoint a valid one, and checks a valid one again.

What this pause wrote is read back from the disk and hashed. A chunk that is shared with an earlier checkpoint was read
back when *that* was committed: it counts as checked only if that checkpoint's signed manifest has this very chunk and
its pack was not written since. The manifest says of each pack when it was read back.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Set, Tuple

from .format import (
    BASE_MANIFEST,
    BASE_SIGNATURE,
    DAMAGED_MARK,
    MANIFEST,
    PACK,
    SCRATCH,
    SIGNATURE,
    Cancelled,
    LayoutError,
    Progress,
    canonical_json,
    code_of_os_error,
    committed,
    is_id,
    parse_manifest,
)
from .ownerfiles import fsync_folder, open_private, read_file, remove_quietly, write_private
from .readback import Chunk, check_sizes, chunks_of, hash_everything, variables_of
from .sharing import inherited, unchanged
from .signature import is_signed, read_manifest, read_signed_manifest, sign


def commit(
    staging: str,
    final: str,
    secret: bytes,
    progress: Optional[Progress] = None,
    cancelled: Optional[Cancelled] = None,
) -> Dict[str, Any]:
    """Turn a written checkpoint into a valid one: read it back from the disk, hash it, sign, sync, rename.

    Until the rename there is no checkpoint; after it there is a complete one. Returns the manifest. Raises LayoutError:
    incomplete, damaged, unsupported_format, no_space, unwritable, cancelled; the staging folder is then left as it is.
    """
    return seal(staging, final, secret, read_back(staging, secret, progress, cancelled), cancelled)


def read_back(
    staging: str,
    secret: bytes,
    progress: Optional[Progress] = None,
    cancelled: Optional[Cancelled] = None,
    *,
    shared_too: bool = False,
) -> Dict[str, Any]:
    """The manifest of a written checkpoint, after what this pause wrote was read from the disk and found right.

    Chunks that an earlier commit read back are read again only with `shared_too`; `secret` proves that commit. Raises
    LayoutError: incomplete, damaged, unsupported_format, cancelled.
    """
    manifest = parse_manifest(read_manifest(staging))
    if manifest.get("id") != os.path.basename(staging) or not is_id(manifest.get("id")):
        raise LayoutError("damaged", file=MANIFEST)
    check_sizes(staging, manifest)
    trusted = set() if shared_too else _checked_before(staging, manifest, secret)
    damaged = hash_everything(
        staging, manifest, from_disk=True, trusted=trusted, progress=progress, cancelled=cancelled
    )
    if damaged:
        share_no_more(staging, os.path.dirname(committed(staging)), manifest, damaged)
        raise LayoutError("damaged", file=PACK)
    return manifest


def seal(
    staging: str, final: str, secret: bytes, manifest: Dict[str, Any], cancelled: Optional[Cancelled] = None
) -> Dict[str, Any]:
    """Write the manifest of a checkpoint that was read back, sign it, sync, rename; returns it.

    Raises LayoutError: damaged, no_space, unwritable, cancelled.
    """
    if manifest.get("id") != os.path.basename(final):
        raise LayoutError("damaged", file=MANIFEST)
    check_sizes(staging, manifest)
    if cancelled is not None and cancelled():
        raise LayoutError("cancelled")
    data = canonical_json(manifest)
    try:
        if os.path.lexists(final):
            raise LayoutError("unwritable", detail="exists")
        if data != read_manifest(staging):
            write_private(os.path.join(staging, MANIFEST), data)
        write_private(os.path.join(staging, SIGNATURE), sign(data, secret).encode("ascii"))
        remove_quietly(*[os.path.join(staging, name) for name in SCRATCH])
        fsync_folder(staging)
        os.rename(staging, final)
        fsync_folder(os.path.dirname(final))
        fsync_folder(os.path.dirname(staging))
    except OSError as error:
        raise LayoutError(code_of_os_error(error)) from error
    return manifest


def verify(folder: str, secret: bytes, *, buffers: bool) -> Tuple[Dict[str, Any], List[str]]:
    """Signature, sizes and frames, and all raw buffers where asked, shared ones too; nothing is unpickled.

    Returns the manifest and the names of variables with damaged buffers. Raises LayoutError for everything else.
    """
    manifest = read_signed_manifest(folder, secret)
    check_sizes(folder, manifest)
    damaged = hash_everything(folder, manifest, buffers=buffers)
    if damaged:
        share_no_more(folder, os.path.dirname(folder), manifest, damaged)
    return manifest, variables_of(manifest, damaged)


def _checked_before(staging: str, manifest: Dict[str, Any], secret: bytes) -> Set[Chunk]:
    """Shared chunks that were read back when the checkpoint that shares them was committed."""
    if len(manifest["packs"]) < 2:
        return set()
    try:
        data = read_file(os.path.join(staging, BASE_MANIFEST))
        signature = read_file(os.path.join(staging, BASE_SIGNATURE), 4096).decode("ascii", "replace")
        if not is_signed(data, signature, secret):
            return set()
        base = parse_manifest(data)
        inherits = [inherited(base, number) for number in range(len(base["packs"]))]
        numbers: Dict[int, int] = {}
        for number, pack in enumerate(manifest["packs"]):
            if number and pack in inherits and unchanged(os.path.join(staging, str(pack["file"])), pack):
                numbers[inherits.index(pack)] = number
        known = {(numbers[chunk[0]], *chunk[1:]) for _, chunk in chunks_of(base) if chunk[0] in numbers}
    except (OSError, LayoutError, KeyError, TypeError, ValueError, IndexError):
        return set()
    return known.intersection(chunk for _, chunk in chunks_of(manifest))


def share_no_more(folder: str, checkpoints: str, manifest: Dict[str, Any], damaged: List[int]) -> None:
    """Mark every checkpoint that uses a pack in which something is damaged: later ones write those bytes anew."""
    bad = {chunk[0] for number, chunk in chunks_of(manifest) if number in damaged}
    files = {os.path.join(folder, str(manifest["packs"][number]["file"])) for number in bad}
    try:
        packs = {(status.st_dev, status.st_ino) for status in map(os.stat, files)}
        others = [entry.path for entry in os.scandir(checkpoints) if is_id(entry.name)]
    except OSError:
        return
    for other in others:
        try:
            found = {(status.st_dev, status.st_ino) for status in (entry.stat() for entry in os.scandir(other))}
            if packs & found:
                os.close(open_private(os.path.join(other, DAMAGED_MARK)))
        except OSError:
            continue  # deleted meanwhile, marked before, or read-only
