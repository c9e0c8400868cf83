# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What goes wrong with the API server, as codes and parameters.

What was refused is told from what we asked, never read out of the API server's sentences: those change and are not for
machines. The status codes and the `Status` object are the API conventions of Kubernetes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jupyter_pause.errors import PauseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .access import Right

#: Characters of the API server's own message that are kept (it may quote a whole object).
_MESSAGE = 500


class ClusterError(Exception):
    """A request that failed. `code` is stable, `params` are plain values; both may be shown, neither holds a secret.

    Codes:
        cluster_forbidden, cluster_unauthorized.
        cluster_not_found: `missing` is "object", or "type" where the API server does not know the kind.
        cluster_conflict: `exists` is True when a name is taken.
        cluster_expired: the API server no longer has that resource version.
        cluster_invalid: `message` is the API server's own, `status` its HTTP status.
        cluster_unreachable: `why` is refused, closed, timeout, tls, name, status or garbled; `seconds`, `status`.
        cluster_disconnected: we closed every connection on purpose.
        cluster_not_here, cluster_config_invalid (`message`).
    """

    def __init__(self, code: str, **params: Any) -> None:
        self.code = code
        self.params = params
        super().__init__(PauseError(code, **params).sentence)


class TransportFault(Exception):
    """No usable answer came. `why`: refused, closed, timeout, tls, name."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


def error_of(status: int, body: bytes, asked: Right) -> ClusterError:
    """The error for an HTTP answer that is not a success."""
    return error_of_status(status, _parsed(body), asked)


def error_of_status(code: int, status: Mapping[str, Any], asked: Right) -> ClusterError:
    """The error for a `Status` object, which also comes inside a watch."""
    params = asked.params
    message = str(status.get("message") or "")[:_MESSAGE]
    if code == 401:
        return ClusterError("cluster_unauthorized", **params)
    if code == 403:
        return ClusterError("cluster_forbidden", **params)
    if code == 404:
        named = bool((status.get("details") or {}).get("name"))
        return ClusterError("cluster_not_found", missing="object" if named else "type", **params)
    if code == 409:
        return ClusterError("cluster_conflict", exists=status.get("reason") == "AlreadyExists", **params)
    if code == 410:
        return ClusterError("cluster_expired", **params)
    if code == 429 or code >= 500:
        return ClusterError("cluster_unreachable", why="status", status=code, **params)
    return ClusterError("cluster_invalid", status=code, message=message, **params)


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
