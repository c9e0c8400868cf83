# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What this account may do, asked beforehand (SelfSubjectAccessReview: everybody may ask about themselves)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .resources import Resource


@dataclass(frozen=True)
class Right:
    """One verb on one kind. Without a name: on all of them, which a Role with `resourceNames` does not grant."""

    verb: str
    resource: Resource
    namespace: str | None = None
    name: str | None = None
    subresource: str = ""

    @property
    def params(self) -> dict[str, Any]:
        """As an error names it: verb, resource, namespace, name."""
        subresource = f"/{self.subresource}" if self.subresource else ""
        return {
            "verb": self.verb,
            "resource": self.resource.qualified + subresource,
            "namespace": self.namespace,
            "name": self.name,
        }


def review_of(right: Right, namespace: str | None) -> dict[str, Any]:
    """The review to create. `namespace`: where the right names none."""
    attributes = {
        "verb": right.verb,
        "group": right.resource.group,
        "version": right.resource.version,
        "resource": right.resource.plural,
        "subresource": right.subresource,
        "namespace": namespace if right.resource.namespaced else None,
        "name": right.name,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }


def is_allowed(review: Mapping[str, Any]) -> bool:
    """What the API server answered."""
    return bool((review.get("status") or {}).get("allowed"))
