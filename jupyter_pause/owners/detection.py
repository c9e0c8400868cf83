# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which owner this server is under, as far as environment and service account tell. Imports nothing heavy.

Inside a pod Kubernetes sets `KUBERNETES_SERVICE_HOST`/`_PORT` and mounts a service account token; shells and `sudo`
often lose the variables (cases.md S45), so each half alone is a case of its own. Pausing a whole pod through its
cluster is not built yet: in a pod too, kernels are paused one by one to the disk, and `GET state` says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from jupyter_pause.states import Reason

#: Where Kubernetes mounts the token of a pod's service account.
TOKEN_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

SENTENCES = {
    "cluster_not_supported": (
        "This server runs in a cluster; pausing the whole pod is not built yet, kernels are paused one by one."
    ),
    "cluster_address_missing": (
        "A service account token is there but no API server address, so this counts as a single machine."
    ),
    "cluster_token_missing": (
        "An API server address is there but no service account token, so this counts as a single machine."
    ),
}


def detect(environ: Mapping[str, str] = os.environ, token_file: Path = TOKEN_FILE) -> Reason | None:
    """Why the mode is `local` although something of a cluster is here; None on a plain machine. Never raises."""
    address = bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))
    try:
        token = token_file.is_file() and token_file.stat().st_size > 0
    except OSError:
        token = False
    if address and token:
        code = "cluster_not_supported"
    elif token:
        code = "cluster_address_missing"
    elif address:
        code = "cluster_token_missing"
    else:
        return None
    return Reason(code=code, message=SENTENCES[code])
