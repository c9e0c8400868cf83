# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Service-account tokens that end sooner than the API server would hand them out (it refuses less than ten minutes)."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

#: Bytes of each of the two numbers of an ES256 signature (RFC 7518, section 3.4).
NUMBER = 32


def claims(token: str) -> dict[str, Any]:
    """What a token says about itself; its signature is not looked at."""
    payload = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return decoded


def ending_in(token: str, seconds: int, key: Path) -> str:
    """The same token with another end, signed with the key that the API server signs with.

    Args:
        seconds: from now; negative for one that has ended already.
    """
    head = token.split(".")[0]
    now = int(time.time())
    changed = {**claims(token), "exp": now + seconds, "iat": now + seconds - 600, "nbf": now + seconds - 600}
    signed = f"{head}.{_encode(json.dumps(changed).encode())}"
    signer = serialization.load_pem_private_key(key.read_bytes(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    numbers = utils.decode_dss_signature(signer.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encode(b''.join(number.to_bytes(NUMBER, 'big') for number in numbers))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
