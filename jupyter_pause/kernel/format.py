# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What every part of a checkpoint agrees on: names, sizes, ids, canonical JSON, and the one kind of error.

Sizes are bytes. The format is described in docs/developers/checkpoint-format.md.
"""

from __future__ import annotations

import errno
import json
import os
import re
from typing import Any, Callable, Dict

FORMAT = 1
#: Large buffers begin at multiples of this: the largest page (Apple's) of the usual systems, so that any can map.
PAGE = 16 * 1024
CHUNK = 4 * 1024 * 1024
FRAMES = "frames.bin"
PACK = "pack.bin"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
RESULT = "result.json"
#: Manifest and signature of the checkpoint that shares chunks with the one being written: hard links, until the commit.
BASE_MANIFEST = "base-manifest.json"
BASE_SIGNATURE = "base-manifest.sig"
#: What the kernel imported, and its search path: for the process that tries the checkpoint out.
START = "start.json"
#: Files of the conversation between server and kernel: they never become part of a checkpoint.
SCRATCH = ("request.json", "progress.json", RESULT, "cancel", START, BASE_MANIFEST, BASE_SIGNATURE)
#: An empty file in a checkpoint's folder: something in it was found damaged, so nothing is shared with it any more.
DAMAGED_MARK = "damaged"

ID = re.compile(r"[0-9a-f]{32}\Z")
PACK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")

Progress = Callable[[int, int], None]
Cancelled = Callable[[], bool]


class LayoutError(Exception):
    """A checkpoint cannot be written or is not what it should be. `code` is stable, `params` say more.

    Codes: incomplete, damaged, signature_mismatch, unsupported_format, no_space, unwritable, cancelled.
    """

    def __init__(self, code: str, **params: Any) -> None:
        self.code = code
        self.params = params
        super().__init__(code)


def is_id(value: object) -> bool:
    """Whether `value` is a checkpoint id: 32 lower-case hex digits, and so never a path."""
    return isinstance(value, str) and ID.match(value) is not None


def committed(staging: str) -> str:
    """Where the checkpoint written in ``staging/<id>`` will be: ``checkpoints/<id>``."""
    root, name = os.path.dirname(os.path.dirname(staging)), os.path.basename(staging)
    return os.path.join(root, "checkpoints", name)


def code_of_os_error(error: OSError) -> str:
    """The stable code for a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "no_space"
    return "unwritable"


def canonical_json(value: Any) -> bytes:
    """Sorted keys, UTF-8, no spaces: the same value always gives the same bytes, which are what is signed."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def parse_manifest(data: bytes) -> Dict[str, Any]:
    """The manifest's content. Raises LayoutError damaged or unsupported_format."""
    try:
        manifest = json.loads(data)
    except ValueError:
        raise LayoutError("damaged", file=MANIFEST) from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise LayoutError("damaged", file=MANIFEST)
    if manifest["format"] != FORMAT:
        raise LayoutError("unsupported_format", format=manifest["format"])
    return manifest
