# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The signature of a checkpoint: HMAC-SHA256 over the manifest, which holds the hash of everything else."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any, Dict

from .format import MANIFEST, SIGNATURE, LayoutError, parse_manifest
from .ownerfiles import read_file


def read_secret(path: str) -> bytes:
    """The key of a checkpoint folder, from its ``secret`` file (hex). Raises OSError or ValueError."""
    secret = bytes.fromhex(read_file(path, 4096).decode("ascii").strip())
    if len(secret) < 32:
        raise ValueError("the secret file is too short")
    return secret


def sign(data: bytes, secret: bytes) -> str:
    """Hex HMAC-SHA256."""
    return hmac.new(secret, data, hashlib.sha256).hexdigest()


def is_signed(data: bytes, signature: str, secret: bytes) -> bool:
    """Whether `signature` belongs to `data`, compared in constant time."""
    return hmac.compare_digest(sign(data, secret).encode(), signature.strip().encode("ascii", "replace"))


def read_manifest(folder: str) -> bytes:
    """The bytes of the manifest. Raises LayoutError incomplete where there is none."""
    try:
        return read_file(os.path.join(folder, MANIFEST))
    except OSError:
        raise LayoutError("incomplete", file=MANIFEST) from None


def read_signed_manifest(folder: str, secret: bytes) -> Dict[str, Any]:
    """The manifest, after its signature was found right.

    Raises LayoutError: incomplete (no manifest or no signature), signature_mismatch, damaged, unsupported_format.
    """
    data = read_manifest(folder)
    try:
        signature = read_file(os.path.join(folder, SIGNATURE), 4096).decode("ascii", "replace")
    except OSError:
        raise LayoutError("incomplete", file=SIGNATURE) from None
    if not is_signed(data, signature, secret):
        raise LayoutError("signature_mismatch")
    manifest = parse_manifest(data)
    if manifest.get("id") != os.path.basename(os.path.realpath(folder)):
        raise LayoutError("damaged", file=MANIFEST)
    return manifest
