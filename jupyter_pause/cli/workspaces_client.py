# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The API server that is meant on the command line, and its errors as sentences."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_pause.clock import SYSTEM_CLOCK

from .server import CliError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence

    from jupyter_pause.cluster.access import Right
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.cluster.config import ClusterConfig
    from jupyter_pause.cluster.errors import ClusterError

#: The namespace when neither the command line nor the kubeconfig names one, as in kubectl.
DEFAULT_NAMESPACE = "default"
GUIDE = "docs/operators/cluster.md says what each right is for"


@dataclass(frozen=True)
class Cluster:
    """A client and the namespace that is meant."""

    client: ClusterClient
    host: str
    namespace: str

    async def require(self, rights: Sequence[Right], purpose: str) -> None:
        """Raises CliError `cluster_forbidden` that names each missing verb and resource (cases.md S47)."""
        missing = await self.client.may(rights)
        if missing:
            raise CliError(
                "cluster_forbidden",
                f"You may not {purpose}: {'; '.join(_wish(right) for right in missing)}. Nothing was changed. "
                f"Ask for that right ({GUIDE}), or use another --context.",
                body={"params": {"missing": [right.params for right in missing]}},
            )


@contextlib.asynccontextmanager
async def open_cluster(options: argparse.Namespace) -> AsyncIterator[Cluster]:
    """The cluster of --kubeconfig and --context; every ClusterError inside leaves as a CliError."""
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.cluster.errors import ClusterError

    host = ""
    logging.getLogger("jupyter_pause").addHandler(logging.NullHandler())  # the commands say themselves what is wrong
    try:
        config = _config(options)
        host = config.host
        client = ClusterClient(config, clock=SYSTEM_CLOCK)
        try:
            namespace = options.namespace or config.namespace or DEFAULT_NAMESPACE
            yield Cluster(client, host, namespace)
        finally:
            await client.close()
    except ClusterError as error:
        raise explain(error, host) from error


def _config(options: argparse.Namespace) -> ClusterConfig:
    """The kubeconfig; inside a pod without one, the pod's own service account."""
    from pathlib import Path

    from jupyter_pause.cluster.config import ClusterConfig
    from jupyter_pause.cluster.errors import ClusterError

    path = Path(options.kubeconfig).expanduser() if options.kubeconfig else None
    try:
        return ClusterConfig.from_kubeconfig(path, options.context)
    except ClusterError:
        if path is not None or options.context is not None:
            raise
        with contextlib.suppress(ClusterError):
            return ClusterConfig.in_cluster()
        raise


def explain(error: ClusterError, host: str) -> CliError:
    """One sentence, and what to do next. Exit code 4 when nobody answers, else 1."""
    params = {name: value for name, value in error.params.items() if value is not None}
    body = {"params": params}
    sentence, code = _sentence(error, host), error.code
    return CliError(
        code, sentence, exit_code=4 if code in ("cluster_unreachable", "cluster_not_here") else 1, body=body
    )


def _sentence(error: ClusterError, host: str) -> str:
    params = error.params
    where = f" in namespace {params['namespace']}" if params.get("namespace") else ""
    what = f"{params.get('verb', 'do this on')} {params.get('resource', 'this')}"
    sentences = {
        "cluster_forbidden": f"You may not {what}{where}. Ask for that right ({GUIDE}), or use another --context.",
        "cluster_unauthorized": (
            f"The API server at {host} does not accept these credentials. Sign in to the cluster again, "
            "or choose another --context."
        ),
        "cluster_unreachable": (
            f"The API server at {host} does not answer ({_why(params)}). "
            "Check the network or the VPN, or choose another --context."
        ),
        "cluster_not_here": "There is no kubeconfig here. Name one with --kubeconfig, or sign in to the cluster first.",
        "cluster_config_invalid": f"The kubeconfig cannot be used: {params.get('message') or 'it is not valid'}.",
        "cluster_conflict": f"Somebody else keeps changing {params.get('resource', 'this')}{where}. Try again.",
        "cluster_invalid": f"The API server refuses the change: {params.get('message') or 'it is not valid'}.",
        "cluster_not_found": _not_found(params, where),
    }
    return sentences.get(error.code) or f"{error}"


def _not_found(params: dict[str, Any], where: str) -> str:
    if params.get("missing") == "type":
        return (
            f"This cluster has no {params.get('resource')}: is the right --context chosen, and is Kubeflow installed?"
        )
    name = f" {params['name']}" if params.get("name") else ""
    return f"There is no {params.get('resource', 'object')}{name}{where}."


def _why(params: dict[str, Any]) -> str:
    if params.get("status"):
        return f"HTTP status {params['status']}"
    if params.get("why") == "timeout" and params.get("seconds") is not None:
        return f"nothing within {params['seconds']:.0f} s"
    return str(params.get("why") or "no connection")


def _wish(right: Right) -> str:
    where = f" in namespace {right.namespace}" if right.namespace else ""
    return f"the verb {right.verb} on {right.params['resource']}{where} is missing"
