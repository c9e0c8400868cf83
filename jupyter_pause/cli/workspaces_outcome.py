# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""How a resume ended, as the cluster tells it (cases.md S20): `restored`, `fresh` or unknown.

The pod condition `PodRestored` is the cluster's word, and without a matching snapshot id in its message it is nobody's
(`facts/cluster.md` section 4). Whether the notebook's memory is really back is proven inside, by the server's marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jupyter_pause.owners.kubeflow_state import POD_RESTORED, RESTORE_ANNOTATION, names_snapshot


@dataclass(frozen=True)
class Outcome:
    """`code` says why it is not `restored`; `snapshot` is the one that was expected or confirmed."""

    outcome: Literal["restored", "fresh", "unknown"]
    snapshot: str | None = None
    code: str | None = None

    def row(self) -> dict[str, Any]:
        """For `--json`."""
        return {"outcome": self.outcome, "snapshot": self.snapshot, "code": self.code}


def outcome_of(pod: Mapping[str, Any] | None, expected: str | None) -> Outcome:
    """What the running pod's conditions say.

    Args:
        pod: None when it could not be read.
        expected: the snapshot that this resume was to use; None: the one that the pod's own annotation asks for.
    """
    if pod is None:
        return Outcome("unknown", expected, "pod_not_readable")
    wanted = expected or (pod.get("metadata", {}).get("annotations") or {}).get(RESTORE_ANNOTATION)
    conditions = pod.get("status", {}).get("conditions") or []
    condition = next((item for item in conditions if item.get("type") == POD_RESTORED), None)
    if condition is None:
        return Outcome("fresh", wanted, "not_restored" if wanted else "no_snapshot")
    if condition.get("status") == "False":
        return Outcome("fresh", wanted, "restore_refused")
    if condition.get("status") != "True":
        return Outcome("unknown", wanted, "restore_not_known")
    if wanted is None:
        return Outcome("unknown", None, "snapshot_not_known")
    if names_snapshot(str(condition.get("message", "")), wanted):
        return Outcome("restored", wanted)
    return Outcome("fresh", wanted, "other_snapshot")
