# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The files of a checkpoint under one name, for those who write, load, commit or list checkpoints.

Shared by the kernel and the server, so that both have one idea of what a complete checkpoint is. Nothing here ever
unpickles. The format is described in docs/developers/checkpoint-format.md.
"""

from __future__ import annotations

from .commit import commit, read_back, seal, verify
from .format import (
    CHUNK,
    DAMAGED_MARK,
    FORMAT,
    FRAMES,
    MANIFEST,
    PACK,
    PAGE,
    RESULT,
    SCRATCH,
    SIGNATURE,
    START,
    LayoutError,
    canonical_json,
    code_of_os_error,
    committed,
    is_id,
    parse_manifest,
)
from .frames import FrameReader, FrameWriter
from .ownerfiles import (
    fsync_folder,
    make_private_dir,
    open_private,
    read_file,
    remove_quietly,
    write_all,
    write_private,
)
from .packs import PackWriter
from .readback import check_sizes, hash_everything, variables_of
from .sharing import Shared, remember
from .signature import is_signed, read_manifest, read_secret, read_signed_manifest, sign

__all__ = [
    "CHUNK",
    "DAMAGED_MARK",
    "FORMAT",
    "FRAMES",
    "MANIFEST",
    "PACK",
    "PAGE",
    "RESULT",
    "SCRATCH",
    "SIGNATURE",
    "START",
    "FrameReader",
    "FrameWriter",
    "LayoutError",
    "PackWriter",
    "Shared",
    "canonical_json",
    "check_sizes",
    "code_of_os_error",
    "commit",
    "committed",
    "fsync_folder",
    "hash_everything",
    "is_id",
    "is_signed",
    "make_private_dir",
    "open_private",
    "parse_manifest",
    "read_back",
    "read_file",
    "read_manifest",
    "read_secret",
    "read_signed_manifest",
    "remember",
    "remove_quietly",
    "seal",
    "sign",
    "variables_of",
    "verify",
    "write_all",
    "write_private",
]
