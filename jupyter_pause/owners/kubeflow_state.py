# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a Kubeflow Workspace is doing, derived from the objects alone: no input, no output, no clock of its own.

The controller knows no "pausing" and no "resuming", and calls a pod that waits for a node an error (cases.md S14).
Fields and their meaning: kubeflow/notebooks (branch notebooks-v2), the snapshot add-on of gke-labs/workspaces, GKE's
documentation of Pod Snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from jupyter_pause.owners.base import OwnerView
from jupyter_pause.states import Phase, Reason, State

PREFIX = "podsnapshot.gke.kubeflow.org/"
ENABLED = PREFIX + "enabled"
STORAGE_CONFIG = PREFIX + "storage-config"
CHECKPOINT_STATE = PREFIX + "checkpoint-state"
CHECKPOINT_STARTED_AT = PREFIX + "checkpoint-started-at"
LAST_CHECKPOINT = PREFIX + "last-checkpoint-name"
#: The readiness gate that the add-on puts into the pods it will snapshot.
ACTIVE_GATE = PREFIX + "active"
#: Which snapshot GKE restores a pod from, and the condition that says that it did.
RESTORE_ANNOTATION = "podsnapshot.gke.io/ps-name"
POD_RESTORED = "PodRestored"

#: Without a scale-up event for so long no node is coming (facts of the autoscaler).
NO_SCALE_UP_AFTER = timedelta(minutes=10)

#: Reasons of waiting containers that waiting longer does not cure.
_BROKEN = frozenset(
    ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError")
)
_NO_SCALE_UP = frozenset(("FailedScaleUp", "NotTriggerScaleUp"))
#: A message of the cluster is shown to a person in part only.
_DETAIL = 240


@dataclass(frozen=True)
class _Now:
    """One answer of the rules below."""

    state: State
    phase: Phase | None = None
    since: datetime | None = None
    waiting: Reason | None = None
    error: Reason | None = None


@dataclass(frozen=True)
class PodFacts:
    """What the rules read of a pod."""

    pod: Mapping[str, Any]
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, pod: Mapping[str, Any] | None) -> PodFacts | None:
        """None for no pod."""
        if pod is None:
            return None
        listed = (pod.get("status") or {}).get("conditions") or []
        return cls(pod, {str(c.get("type")): c for c in listed})

    @property
    def phase(self) -> str:
        """Pending, Running, ..."""
        return str((self.pod.get("status") or {}).get("phase") or "")

    @property
    def going(self) -> bool:
        """Being deleted."""
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    @property
    def created(self) -> datetime | None:
        """When the pod was made."""
        return parse_time(self.pod["metadata"].get("creationTimestamp"))

    def is_true(self, condition: str) -> bool:
        """Whether a condition is True."""
        return str((self.conditions.get(condition) or {}).get("status")) == "True"

    def changed(self, condition: str) -> datetime | None:
        """When a condition last changed."""
        return parse_time((self.conditions.get(condition) or {}).get("lastTransitionTime"))

    def waiting_reasons(self) -> list[tuple[str, str]]:
        """(reason, message) of containers that have not started."""
        status = self.pod.get("status") or {}
        found = []
        for listed in (status.get("initContainerStatuses") or [], status.get("containerStatuses") or []):
            for container in listed:
                waiting = (container.get("state") or {}).get("waiting") or {}
                if waiting.get("reason"):
                    found.append((str(waiting["reason"]), str(waiting.get("message") or "")))
        return found

    @property
    def has_gate(self) -> bool:
        """Whether the snapshot add-on prepared this pod."""
        gates = (self.pod.get("spec") or {}).get("readinessGates") or []
        return any(gate.get("conditionType") == ACTIVE_GATE for gate in gates)

    @property
    def restore_from(self) -> str | None:
        """The snapshot that this pod was told to be restored from."""
        return (self.pod["metadata"].get("annotations") or {}).get(RESTORE_ANNOTATION)


def derive(
    workspace: Mapping[str, Any] | None,
    pod: Mapping[str, Any] | None,
    events: Iterable[Mapping[str, Any]],
    now: datetime,
) -> OwnerView:
    """The view of a Workspace. `pod` None: there is none, or it is not followed (then the Workspace's word counts).

    `events` are those of the pod; `now` (aware) is only compared with times of the cluster.
    """
    if workspace is None:
        return OwnerView("unknown", error=Reason(code="workspace_missing"))
    facts = PodFacts.of(pod)
    found = _state(workspace, facts, list(events), now)
    annotations = workspace["metadata"].get("annotations") or {}
    return OwnerView(
        state=found.state,
        phase=found.phase,
        since=found.since,
        stateful=_stateful(annotations, facts),
        waiting=found.waiting,
        error=found.error,
        pod=_pod_name(workspace, facts),
        pod_uid=str(facts.pod["metadata"]["uid"]) if facts and facts.pod["metadata"].get("uid") else None,
        snapshot=annotations.get(LAST_CHECKPOINT) or None,
        timeline=_timeline(workspace, annotations, facts),
    )


def derive_pod(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]], now: datetime) -> OwnerView:
    """The view of a pod that is wanted, whoever owns it: starting, waiting for what, failed or running."""
    facts = PodFacts.of(pod)
    assert facts is not None
    found = _of_pod(facts, False, None, list(events), now)
    return OwnerView(
        state=found.state,
        phase=found.phase,
        since=found.since,
        waiting=found.waiting,
        error=found.error,
        pod=str(pod["metadata"]["name"]),
        pod_uid=str(pod["metadata"].get("uid") or "") or None,
        timeline=_timeline({}, {}, facts),
    )


def is_behind(workspace: Mapping[str, Any]) -> bool:
    """Whether the status is older than the specification (cases.md S15): it must not flip the state back."""
    observed = (workspace.get("status") or {}).get("observedGeneration")
    generation = workspace["metadata"].get("generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def _state(workspace: Mapping[str, Any], pod: PodFacts | None, events: list[Any], now: datetime) -> _Now:
    annotations = workspace["metadata"].get("annotations") or {}
    paused = bool((workspace.get("spec") or {}).get("paused"))
    status = workspace.get("status") or {}
    word = None if is_behind(workspace) else status.get("state")
    if workspace["metadata"].get("deletionTimestamp"):
        return _Now("unknown", error=Reason(code="workspace_deleted"))
    if annotations.get(CHECKPOINT_STATE) == "Checkpointing":
        return _Now("pausing", "snapshotting", parse_time(annotations.get(CHECKPOINT_STARTED_AT)))
    if paused:
        if word == "Paused":
            return _Now("paused", since=parse_millis(status.get("pauseTime")))
        return _Now("pausing", "releasing")
    restoring = annotations.get(CHECKPOINT_STATE) == "Restoring"
    if pod is not None:
        return _of_pod(pod, restoring, word, events, now)
    return _without_pod(word, restoring, status)


def _without_pod(word: Any, restoring: bool, status: Mapping[str, Any]) -> _Now:
    """Not paused, and nothing is known of a pod."""
    if word == "Running" and not restoring:
        return _Now("running", since=parse_millis(status.get("lastRunningTime")))
    if word == "Error":  # may as well be a pod that waits for a node: without the pod nobody can tell
        return _Now("unknown", error=Reason(code="workspace_error", params=_detail(status.get("stateMessage"))))
    if word == "Unknown":
        return _Now("unknown", error=Reason(code="pod_not_ready"))
    if restoring:
        return _Now("resuming", "restoring")
    return _Now("resuming", "starting")


def _of_pod(pod: PodFacts, restoring: bool, word: Any, events: list[Any], now: datetime) -> _Now:
    if pod.going:  # the pod of before the pause is still on its way out
        return _Now("resuming", "starting")
    broken = next(((r, m) for r, m in pod.waiting_reasons() if r in _BROKEN), None)
    if broken is not None:
        params = {"why": broken[0], **_detail(broken[1])}
        return _Now("failed", since=pod.created, error=Reason(code="pod_broken", params=params))
    if pod.phase == "Failed":
        params = {"why": str((pod.pod.get("status") or {}).get("reason") or "Failed")}
        return _Now("failed", error=Reason(code="pod_broken", params=params))
    waiting = _waiting(pod, events, now)
    if waiting is not None:
        return _Now("waiting", since=pod.created, waiting=waiting)
    if pod.is_true("Ready"):
        return _Now("running", since=pod.changed("Ready"))
    if restoring:
        return _Now("resuming", "restoring", pod.changed("PodScheduled") or pod.created)
    if pod.phase == "Running" and word == "Unknown":
        return _Now("unknown", since=pod.changed("Ready"), error=Reason(code="pod_not_ready"))
    return _Now("resuming", "starting", pod.created)


def _waiting(pod: PodFacts, events: list[Any], now: datetime) -> Reason | None:
    """Why a pod that has not started has no compute or volume yet."""
    scheduled = pod.conditions.get("PodScheduled") or {}
    if str(scheduled.get("status")) == "False":
        return _no_node(pod, scheduled, events, now)
    if pod.phase != "Pending":
        return None
    mounted = _newest(events, ("SuccessfulAttachVolume",))
    stuck = _newest(events, ("FailedAttachVolume",))
    if stuck is not None and (mounted is None or _when(mounted) <= _when(stuck)):
        return Reason(code="volume_attached_elsewhere", params=_detail(stuck.get("message")))
    pulling = _newest(events, ("Pulling",))
    pulled = _newest(events, ("Pulled",))
    if pulling is not None and (pulled is None or _when(pulled) < _when(pulling)):
        return Reason(code="pulling_image")
    return None


def _no_node(pod: PodFacts, scheduled: Mapping[str, Any], events: list[Any], now: datetime) -> Reason:
    coming = _newest(events, ("TriggeredScaleUp",))
    refused = _newest(events, tuple(_NO_SCALE_UP))
    detail = _detail(scheduled.get("message"))
    if refused is not None and (coming is None or _when(coming) < _when(refused)):
        return Reason(code="no_scale_up", params=_detail(refused.get("message")) or detail)
    if coming is not None:
        return Reason(code="node_coming", params=detail)
    since = pod.changed("PodScheduled") or pod.created
    if since is not None and now - since >= NO_SCALE_UP_AFTER:
        return Reason(code="no_scale_up", params=detail)
    return Reason(code="unschedulable", params=detail)


# --- small readings -----------------------------------------------------------------------------------------------


def _stateful(annotations: Mapping[str, str], pod: PodFacts | None) -> bool | None:
    """Whether a pause will make a snapshot. Without the add-on's gate in the pod nothing holds the pause back."""
    enabled = annotations.get(ENABLED)
    if enabled == "false":
        return False
    if pod is not None:
        return pod.has_gate
    return None  # enabled or not: the kind may enable it, and the add-on may be absent


def _pod_name(workspace: Mapping[str, Any], pod: PodFacts | None) -> str | None:
    if pod is not None:
        return str(pod.pod["metadata"]["name"])
    name = ((workspace.get("status") or {}).get("podTemplatePod") or {}).get("name")
    return str(name) if name else None


def _timeline(
    workspace: Mapping[str, Any], annotations: Mapping[str, str], pod: PodFacts | None
) -> dict[str, datetime]:
    times = {
        "snapshot_started": parse_time(annotations.get(CHECKPOINT_STARTED_AT)),
        "paused": parse_millis((workspace.get("status") or {}).get("pauseTime")),
    }
    if pod is not None:
        times["pod_created"] = pod.created
        for name, condition in (("scheduled", "PodScheduled"), ("restored", POD_RESTORED), ("ready", "Ready")):
            times[name] = pod.changed(condition) if pod.is_true(condition) else None
    return {name: value for name, value in times.items() if value is not None}


def _newest(events: Iterable[Any], reasons: tuple[str, ...]) -> Mapping[str, Any] | None:
    fitting = [event for event in events if event.get("reason") in reasons]
    return max(fitting, key=_when, default=None)


def _when(event: Mapping[str, Any]) -> datetime:
    """When an event last happened; both generations of the API are read."""
    series = event.get("series") or {}
    for value in (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event.get("firstTimestamp"),
        (event.get("metadata") or {}).get("creationTimestamp"),
    ):
        found = parse_time(value)
        if found is not None:
            return found
    return datetime.min.replace(tzinfo=UTC)


def _detail(message: Any) -> dict[str, Any]:
    return {"detail": str(message)[:_DETAIL]} if message else {}


def parse_time(value: Any) -> datetime | None:
    """An RFC 3339 time of the API; None for anything else. One without a zone is UTC."""
    if isinstance(value, datetime):
        found = value
    else:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def parse_millis(value: Any) -> datetime | None:
    """Milliseconds since the epoch as Kubeflow writes them; 0 is "never"."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return None
    return datetime.fromtimestamp(value / 1000, UTC)


# --- where a pod came from ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """What the cluster says of a pod's start. `restored` None: it does not say (`code` why)."""

    restored: bool | None
    snapshot: str | None
    code: str | None = None
    why: str | None = None


def origin_of(workspace: Mapping[str, Any] | None, pod: Mapping[str, Any] | None) -> Origin:
    """Whether GKE restored this pod, and from which snapshot (cases.md S20).

    Only the condition with the id that the pod was told to use counts; a missing condition is no word at all, because
    a fresh pod has none either. The add-on removes its own note from the Workspace once the pod is Ready.
    """
    facts = PodFacts.of(pod)
    if facts is None:
        return Origin(None, None, "pod_not_readable")
    annotations = (workspace or {}).get("metadata", {}).get("annotations") or {}
    wanted = facts.restore_from or annotations.get(LAST_CHECKPOINT) or None
    condition = facts.conditions.get(POD_RESTORED)
    if condition is None:
        return Origin(None, wanted, "not_restored" if wanted else "no_snapshot")
    if str(condition.get("status")) != "True":
        return Origin(False, wanted, "restore_refused", str(condition.get("reason") or "")[:_DETAIL] or None)
    if wanted is None:
        return Origin(None, None, "snapshot_not_known")
    named = names_snapshot(str(condition.get("message") or ""), wanted)
    return Origin(True, wanted) if named else Origin(False, wanted, "other_snapshot")


def names_snapshot(message: str, snapshot: str) -> bool:
    """Does the message name this snapshot, not just one whose name begins or ends like it?

    A full stop after the name ends a sentence; a name never ends in one.
    """
    return re.search(rf"(?<![\w.-]){re.escape(snapshot)}(?![\w-]|\.\w)", message) is not None


def newest_time(*objects: Mapping[str, Any] | None) -> datetime | None:
    """The latest time of the cluster's clock that these objects hold: the cluster's own now is not earlier."""
    found = []
    for thing in objects:
        for condition in ((thing or {}).get("status") or {}).get("conditions") or []:
            found += [parse_time(condition.get("lastTransitionTime")), parse_time(condition.get("lastProbeTime"))]
        for entry in ((thing or {}).get("metadata") or {}).get("managedFields") or []:
            found.append(parse_time(entry.get("time")))
    return max((value for value in found if value is not None), default=None)
