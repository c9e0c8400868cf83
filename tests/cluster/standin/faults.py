# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What can go wrong, as switches that a test turns on and off while everything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass
class Faults:
    """All faults of the stand-in. Ids of cases.md in brackets. Set from any thread; the parts look again at once."""

    #: The trigger is accepted, a PodSnapshot appears and never turns Ready; the process goes on (weak spot 1).
    snapshot_never_ready: bool = False
    #: The trigger ends as Failed with this message; the process goes on.
    snapshot_fails: str = ""
    #: The process is frozen, and the PodSnapshot turns Ready only when this is off again [S27].
    snapshot_slow: bool = False
    #: Outside connections do not lose the process: they are closed in it, which is GKE's documented word [S23].
    outside_connections_closed: bool = False
    #: The container is killed by the kernel's out-of-memory killer while the snapshot is taken (weak spot 6).
    snapshot_out_of_memory: bool = False
    #: Restores do not happen: a new process, the same pod name (weak spot 2) [S20].
    restore_cold: bool = False
    #: A new process, and `PodRestored` names this snapshot [S20].
    restore_wrong_snapshot: str = ""
    #: A new process, and `PodRestored` is False with this reason [S20].
    restore_failed: str = ""
    #: The pod stays Running, not Ready, without any event [S21].
    restore_hangs: bool = False
    #: The pod is unschedulable; a node is on its way (TriggeredScaleUp) unless one of the next two is on [S14].
    no_capacity: bool = False
    #: Only pods that select no machine family are unschedulable: the size that a workspace begins with is taken [S14].
    first_size_taken: bool = False
    #: ... and the autoscaler says FailedScaleUp.
    no_scale_up: bool = False
    #: ... and the autoscaler says nothing.
    silent_scale_up: bool = False
    #: The pod is scheduled, and its volume hangs on another node: FailedAttachVolume [S16].
    volume_attached_elsewhere: bool = False
    #: ErrImagePull, then ImagePullBackOff.
    image_pull_fails: bool = False
    #: The container ends as soon as it starts: CrashLoopBackOff.
    crash_loop: bool = False
    #: The add-on is down: its webhooks do not answer (failurePolicy Ignore), its controller does nothing (weak spot 7).
    addon_down: bool = False
    #: The Workspace's status stays what it is, though the pod has changed [S15].
    status_lag: bool = False
    #: The readiness gate stays True while checkpointing.
    gate_never_false: bool = False
    #: Deleted PodSnapshots keep GKE's finalizer [S28].
    snapshot_deletion_stuck: bool = False
    #: Pods cannot reach the API server: their connections are cut and refused [S48].
    api_unreachable: bool = False
    #: The backend answers 401 to everybody, as after a login has ended.
    login_ended: bool = False
    #: The backend refuses updates: the home volume is not labelled as one that may be mounted.
    volume_not_mountable: bool = False
    #: The backend answers 403 to whoever would update a Workspace.
    updates_forbidden: bool = False
    #: The backend answers 403 to whoever would see a kind and its choices.
    kinds_forbidden: bool = False
    #: The backend answers 403 to everybody.
    not_authorized: bool = False

    def __post_init__(self) -> None:
        self.__dict__["_listeners"] = []

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a switch.

        Raises:
            AttributeError: there is none of this name.
            TypeError: its values are of another type.
        """
        kinds = {field.name: type(field.default) for field in dataclasses.fields(self)}
        if name not in kinds:
            raise AttributeError(f"no fault {name!r}")
        if type(value) is not kinds[name]:
            raise TypeError(f"{name} is a {kinds[name].__name__}")
        object.__setattr__(self, name, value)
        for callback in self.__dict__.get("_listeners", []):
            callback()

    def listen(self, callback: Callable[[], None]) -> None:
        """Call back after each change, in the thread of whoever made it."""
        self.__dict__["_listeners"].append(callback)

    def clear(self) -> None:
        """Everything works again."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) != field.default:
                setattr(self, field.name, field.default)

    def as_dict(self) -> dict[str, bool | str]:
        """All switches by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
