# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Workspaces in words and as rows: states, why one waits, what a resume brought back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .follow import PHASES
from .output import duration

if TYPE_CHECKING:
    from jupyter_pause.owners.base import OwnerView
    from jupyter_pause.states import Reason

    from .workspaces_keep import Keeps
    from .workspaces_outcome import Outcome

#: Why there is no compute yet. `{detail}` is the cluster's own message.
WAITING = {
    "unschedulable": "no node has room for it",
    "node_coming": "a node is being added",
    "no_scale_up": "no node has room for it, and the cluster adds none",
    "volume_attached_elsewhere": "its volume is still attached to another node; that ends by itself within minutes, "
    "else the platform team can detach it",
    "pulling_image": "its image is being fetched",
}
ERRORS = {
    "workspace_missing": "it does not exist any more",
    "workspace_deleted": "it is being deleted",
    "workspace_error": "the controller reports an error",
    "pod_not_ready": "its pod runs but is not ready",
    "pod_broken": "its pod cannot run",
}
#: Why a snapshot is of no use.
SNAPSHOT_PROBLEMS = {
    "snapshot_gone": "does not exist any more",
    "snapshot_deleting": "is being deleted",
    "snapshot_not_ready": "is not ready",
}
#: Why what came back is not `restored`.
NOT_RESTORED = {
    "not_restored": "the pod does not say that it was restored",
    "no_snapshot": "there was no snapshot",
    "without_memory": "as asked: its snapshot was left out",
    "restore_refused": "the cluster reports that the restore did not work",
    "restore_not_known": "the cluster does not know yet whether the restore worked",
    "other_snapshot": "the pod was restored from another snapshot",
    "snapshot_not_known": "the pod was restored, but from which snapshot it should be is not known",
    "pod_not_readable": "the pod may not be read",
}
#: Why changes since the pause cannot be told.
UNKNOWN_DIFFERENCES = {
    "not_recorded": "nobody wrote down what the snapshot was made with",
    "changed_since": "the Workspace was changed since, or paused by someone who wrote nothing down",
    "template_not_readable": "its StatefulSet may not be read, or could not be when it was paused; only the "
    "Workspace's own choices were compared",
}


def row(namespace: str, name: str, kind: str | None, view: OwnerView) -> dict[str, Any]:
    """A workspace for `--json`."""
    return {
        "namespace": namespace,
        "name": name,
        "kind": kind,
        "state": view.state,
        "phase": view.phase,
        "since": _time(view.since),
        "stateful": view.stateful,
        "snapshot": view.snapshot,
        "pod": view.pod,
        "waiting": _reason_row(view.waiting),
        "reason": _reason_row(view.error),
        "timeline": {name: _time(at) for name, at in view.timeline.items()},
    }


def state_words(view: OwnerView) -> str:
    """ "pausing (taking the snapshot)"."""
    return f"{view.state} ({PHASES[view.phase]})" if view.phase else view.state


def reason_of(view: OwnerView) -> str:
    """Why it waits, failed or is unknown; empty when there is nothing to say."""
    return sentence(view.waiting or view.error)


def sentence(reason: Reason | None) -> str:
    """A reason as a clause."""
    if reason is None:
        return ""
    known = WAITING.get(reason.code) or ERRORS.get(reason.code) or reason.message or reason.code.replace("_", " ")
    details = [str(reason.params[key]) for key in ("why", "detail") if reason.params.get(key)]
    return f"{known} ({': '.join(details)})" if details else known


def progress(verb: str, view: OwnerView, seconds: float, silent: str | None) -> str:
    """ "Pausing: taking the snapshot, 12 s"."""
    if view.state == "waiting":
        step = f"waiting for capacity, {sentence(view.waiting)}"
    elif view.phase:
        step = PHASES[view.phase]
    else:
        step = view.state
    note = f" ({silence(silent)}, last known)" if silent else ""
    return f"{verb}: {step}{note}, {duration(seconds)}"


def silence(code: str) -> str:
    """Why what is shown may be old."""
    if code == "cluster_forbidden":
        return "it may not be watched"
    return "the API server does not answer"


def memory_words(view: OwnerView, keeps: Keeps) -> str:
    """The column MEMORY: what is kept of a paused workspace, or what a pause would keep of a running one."""
    if view.state in ("paused", "waiting", "resuming"):
        return f"snapshot {view.snapshot}" if view.snapshot else "files only"
    return keeps.memory


def promise(name: str, keeps: Keeps) -> str:
    """What is said before a pause is asked for."""
    if keeps.memory == "snapshot":
        return f"Pausing {name}: its memory goes into a pod snapshot, files on its volumes stay; connections close."
    if keeps.memory == "unknown":
        return f"Pausing {name}: files on its volumes stay; whether its memory is kept is unknown: {keeps.why}."
    return (
        f"Pausing {name}: files only. Files on its volumes stay, everything in memory and on the container's own disk "
        f"is gone, except what jupyter-pause in there saves by itself while it is stopped: {keeps.why}."
    )


def outcome_words(outcome: Outcome) -> str:
    """How a resume ended, in the words that are promised: restored, fresh, unknown."""
    if outcome.outcome == "restored":
        return f"restored from snapshot {outcome.snapshot}"
    why = NOT_RESTORED.get(outcome.code or "", "")
    if outcome.outcome == "fresh":
        return f"fresh: a new process, its memory is not back ({why})"
    return f"whether its memory is back is unknown ({why})"


def _reason_row(reason: Reason | None) -> dict[str, Any] | None:
    if reason is None:
        return None
    return {"code": reason.code, "message": sentence(reason), "params": dict(reason.params)}


def _time(at: datetime | None) -> str | None:
    """RFC 3339 in UTC, as everywhere else."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
