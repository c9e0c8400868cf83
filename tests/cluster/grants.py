# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""RBAC for tests, made of the same words that the code asks with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.waiting import until

if TYPE_CHECKING:
    from jupyter_pause.cluster.access import Right

    from .apiserver import ApiServer


def grant(server: ApiServer, namespace: str, account: str, rights: Iterable[Right]) -> None:
    """Give a service account exactly these rights in its namespace, instead of what `grant` gave it before.

    Returns when they hold: the API server's authorizer learns of a Role a moment after it was written.
    """
    rights = list(rights)
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
    for right in rights:
        until(lambda right=right: _may(server, namespace, account, right), f"{account} may {right.verb}")


def _may(server: ApiServer, namespace: str, account: str, right: Right) -> bool:
    resource = right.resource
    attributes = {
        "verb": right.verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": right.subresource,
        "namespace": namespace,
        **({"name": right.name} if right.name else {}),
    }
    user = f"system:serviceaccount:{namespace}:{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
    return bool(server.as_admin.create(review)["status"]["allowed"])
