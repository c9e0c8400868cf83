# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The key that signs checkpoints: one file, made once, for the owner only.

Signing and checking themselves are in `jupyter_pause.kernel.layout`, which the kernel's own loader uses too.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from jupyter_pause.kernel import layout

#: Bytes of a new key.
KEY_BYTES = 64


def key(path: Path) -> bytes:
    """The key in `path`; made now where there is none. Raises OSError, or ValueError for a file that is no key.

    Two processes that make it at once agree: the file gets its name only when it is complete, and only once.
    """
    try:
        return layout.read_secret(str(path))
    except FileNotFoundError:
        pass
    layout.make_private_dir(str(path.parent))
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    layout.write_private(str(temporary), secrets.token_hex(KEY_BYTES).encode("ascii"))
    try:
        _name_once(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    layout.fsync_folder(str(path.parent))
    return layout.read_secret(str(path))


def _name_once(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        descriptor = layout.open_private(str(path))
        try:
            layout.write_all(descriptor, temporary.read_bytes())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
