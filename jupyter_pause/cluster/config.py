# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Where the API server is and how we prove who we are. Imports nothing heavy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError

#: Where Kubernetes mounts token, CA certificate and namespace of a pod's service account.
SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"


@dataclass(frozen=True)
class ClusterConfig:
    """One cluster as one user.

    Either `token_file` (read again whenever it changed, and on a 401: cases.md S44), or `kubeconfig` and `context`,
    read by the official loader: tokens, client certificates, exec plugins, proxies.
    """

    host: str
    ca_file: Path | None = None
    namespace: str | None = None
    token_file: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None

    @classmethod
    def in_cluster(
        cls, environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT_FOLDER
    ) -> ClusterConfig:
        """As the service account of the pod that this process runs in. Reads small files.

        Raises:
            ClusterError: cluster_not_here.
        """
        host, port = environ.get(HOST_VARIABLE, ""), environ.get(PORT_VARIABLE, "")
        token, authority = folder / "token", folder / "ca.crt"
        if not host or not port or not token.is_file():
            raise ClusterError("cluster_not_here")
        address = f"[{host}]" if ":" in host else host
        return cls(
            host=f"https://{address}:{port}",
            ca_file=authority if authority.is_file() else None,
            namespace=own_namespace(folder),
            token_file=token,
        )

    @classmethod
    def from_kubeconfig(cls, path: Path | None = None, context: str | None = None) -> ClusterConfig:
        """As a kubeconfig says; without a path `$KUBECONFIG` (several files are merged), else `~/.kube/config`.

        Blocks for about a second: it imports the official loader. For the command line, not for a server.

        Raises:
            ClusterError: cluster_not_here (no file), cluster_config_invalid.
        """
        from .kubeconfig import look_up

        files = str(path) if path is not None else os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        if not any(Path(part).expanduser().is_file() for part in files.split(os.pathsep) if part):
            raise ClusterError("cluster_not_here")
        found = look_up(files, context)
        return cls(host=found.host, namespace=found.namespace, kubeconfig=files, context=found.context)


def own_namespace(folder: Path = SERVICE_ACCOUNT_FOLDER) -> str | None:
    """The namespace of the pod that this process runs in; None outside of one."""
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
