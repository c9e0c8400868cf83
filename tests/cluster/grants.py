# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""RBAC for tests, made of the same words that the code asks with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_pause.cluster.access import Right

    from .apiserver import ApiServer


def grant(server: ApiServer, namespace: str, account: str, rights: Iterable[Right]) -> None:
    """Give a service account exactly these rights in its namespace, instead of what `grant` gave it before."""
    rules = [
        {
            "apiGroups": [right.resource.group],
            "resources": [right.resource.plural + (f"/{right.subresource}" if right.subresource else "")],
            "verbs": [right.verb],
            **({"resourceNames": [right.name]} if right.name else {}),
        }
        for right in rights
    ]
    group = "rbac.authorization.k8s.io"
    metadata = {"name": f"of-{account}", "namespace": namespace}
    server.apply(
        [
            {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": "Role", "name": f"of-{account}"},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
            },
        ]
    )
