# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in's faults do what cases.md and facts/cluster.md say of the real thing."""

from __future__ import annotations

import pytest

from .rest import Object
from .standin.addon import LAST, STATE
from .standin.api import condition, is_true
from .standin.cluster import StandIn
from .standin.faults import Faults
from .test_standin_addon import SNAPSHOT, annotations, process_of, running, snapshots
from .test_standin_kubeflow import PROGRAM, ask


def events(standin: StandIn) -> set[str]:
    """Reasons of all events so far."""
    return {event["reason"] for event in standin.api_server.list("v1/Event", standin.namespace)}


def pod_of(standin: StandIn) -> Object:
    pod = standin.pod("w")
    assert pod is not None
    return pod


def waiting_reason(standin: StandIn) -> str:
    """Why the container does not run."""
    statuses = (standin.pod("w") or {}).get("status", {}).get("containerStatuses", [{}])
    reason: str = statuses[0].get("state", {}).get("waiting", {}).get("reason", "")
    return reason


def test_unknown_faults_and_values_are_refused() -> None:
    """A typing error in a test is told at once."""
    faults = Faults()
    with pytest.raises(AttributeError):
        faults.no_such_thing = True
    with pytest.raises(TypeError):
        faults.no_capacity = "yes"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("more", "event"),
    [({}, "TriggeredScaleUp"), ({"no_scale_up": True}, "FailedScaleUp"), ({"silent_scale_up": True}, None)],
)
def test_s14_no_capacity(standin: StandIn, more: dict[str, bool], event: str | None) -> None:
    """S14; section 2: unschedulable is `Error`, although a new node may be on its way."""
    standin.faults.no_capacity = True
    for name, value in more.items():
        setattr(standin.faults, name, value)
    standin.create_workspace("w", PROGRAM, stateful=False)
    workspace = standin.wait_for_state("w", "Error")
    assert "unschedulable" in workspace["status"]["stateMessage"]
    scheduled = condition(pod_of(standin), "PodScheduled")
    assert scheduled is not None and (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    if event:
        standin.wait_for(lambda: event in events(standin), event)
    assert not {"TriggeredScaleUp", "FailedScaleUp"} - {event} & events(standin)
    standin.faults.no_capacity = False
    standin.wait_for_state("w", "Running")


def test_s15_the_status_lags_behind(standin: StandIn) -> None:
    """S15: the reported state is old while the pod is already going."""
    running(standin, stateful=False)
    standin.faults.status_lag = True
    standin.pause("w")
    standin.wait_for(lambda: standin.pod("w") is None, "the pod is gone")
    assert standin.state("w") == "Running"
    standin.faults.status_lag = False
    standin.wait_for_state("w", "Paused")


def test_s16_a_volume_that_hangs_elsewhere(standin: StandIn) -> None:
    """S16: Pending with a FailedAttachVolume warning."""
    standin.faults.volume_attached_elsewhere = True
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for(lambda: "FailedAttachVolume" in events(standin), "the warning")
    assert waiting_reason(standin) == "ContainerCreating"
    standin.wait_for_state("w", "Error")
    standin.faults.volume_attached_elsewhere = False
    standin.wait_for_state("w", "Running")


def test_image_pull_back_off(standin: StandIn) -> None:
    """Section 2: "CrashLoopBackOff and ImagePullBackOff are real errors"."""
    standin.faults.image_pull_fails = True
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for(lambda: waiting_reason(standin) == "ImagePullBackOff", "the back-off")
    assert "ImagePullBackOff" in standin.wait_for_state("w", "Error")["status"]["stateMessage"]
    standin.faults.image_pull_fails = False
    standin.wait_for_state("w", "Running")


def test_crash_loop_back_off(standin: StandIn) -> None:
    """The same."""
    standin.faults.crash_loop = True
    standin.create_workspace("w", PROGRAM, stateful=False)
    standin.wait_for(lambda: waiting_reason(standin) == "CrashLoopBackOff", "the back-off")
    assert standin.wait_for_state("w", "Error")["status"]["stateMessage"]


def paused(standin: StandIn) -> tuple[dict[str, object], str]:
    """A stateful workspace that is paused: what its process said, and the snapshot's name."""
    first = running(standin)
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    return first, annotations(standin)[LAST]


def test_s20_a_cold_start_without_a_word(standin: StandIn) -> None:
    """S20: no `PodRestored` condition."""
    first, _ = paused(standin)
    standin.faults.restore_cold = True
    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    assert ask(standin, "w")["token"] != first["token"]
    assert condition(pod_of(standin), "PodRestored") is None


def test_s20_another_snapshot_is_named(standin: StandIn) -> None:
    """S20: "the condition true but naming another snapshot"."""
    first, name = paused(standin)
    standin.faults.restore_wrong_snapshot = "another"
    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    restored = condition(pod_of(standin), "PodRestored")
    assert restored is not None and restored["status"] == "True"
    assert "another" in restored["message"] and name not in restored["message"]
    assert ask(standin, "w")["token"] != first["token"]


def test_s20_the_condition_is_false(standin: StandIn) -> None:
    """S20: "the condition false with a reason"."""
    first, _ = paused(standin)
    standin.faults.restore_failed = "IncompatibleNode"
    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    restored = condition(pod_of(standin), "PodRestored")
    assert restored is not None and (restored["status"], restored["reason"]) == ("False", "IncompatibleNode")
    assert ask(standin, "w")["token"] != first["token"]


def test_s21_a_restore_that_hangs(standin: StandIn) -> None:
    """S21: Running, not Ready, nothing further; the snapshot is kept, and the pod can still be taken away."""
    first, name = paused(standin)
    standin.faults.restore_hangs = True
    standin.pause("w", False)
    standin.wait_for(lambda: (standin.pod("w") or {}).get("status", {}).get("phase") == "Running", "Running")
    assert not is_true(pod_of(standin), "Ready")
    assert [found["metadata"]["name"] for found in snapshots(standin)] == [name]
    assert annotations(standin)[STATE] == "Restoring"
    standin.faults.restore_hangs = False
    standin.wait_for_state("w", "Running")
    assert ask(standin, "w")["token"] == first["token"]


def test_s28_a_snapshot_that_stays_terminating(standin: StandIn) -> None:
    """S28 and section 4, "Deleting": the finalizer needs the policy; it can hang in Terminating."""
    _, name = paused(standin)
    standin.faults.snapshot_deletion_stuck = True
    standin.api_server.delete(SNAPSHOT, name, standin.namespace)
    found = standin.api_server.get(SNAPSHOT, name, standin.namespace)
    assert found["metadata"]["deletionTimestamp"] and found["metadata"]["finalizers"]
    policy = "podsnapshot.gke.io/v1/PodSnapshotPolicy"
    standin.faults.addon_down = True  # it would make the policy again
    standin.api_server.delete(policy, "ws-w-policy", standin.namespace)
    standin.faults.snapshot_deletion_stuck = False
    assert standin.api_server.get(SNAPSHOT, name, standin.namespace)["metadata"]["finalizers"], "no policy, no bucket"
    standin.faults.addon_down = False
    standin.wait_for(lambda: not snapshots(standin), "gone once the policy is there again")


def test_s48_pods_cannot_reach_the_api_server(standin: StandIn) -> None:
    """S48: the way is cut for pods only."""
    running(standin, stateful=False)
    assert ask(standin, "w", "connect")["count"] == 1
    standin.faults.api_unreachable = True
    process = process_of(standin)
    assert process is not None
    standin.wait_for(
        lambda: (
            not [c for c in process.net_connections("tcp") if c.status == "ESTABLISHED" and c.raddr.ip == "127.0.0.1"]
        ),
        "the connection is cut",
    )
    assert standin.state("w") == "Running"


def test_the_gate_that_never_closes(standin: StandIn) -> None:
    """The add-on's webhook only warns when it cannot write the pod's status; the pause goes on."""
    running(standin)
    standin.faults.gate_never_false = True
    standin.faults.snapshot_slow = True
    standin.pause("w")
    standin.wait_for(lambda: snapshots(standin), "a snapshot is made all the same")
    assert is_true(pod_of(standin), "Ready")
    standin.faults.snapshot_slow = False
    standin.wait_for_state("w", "Paused")


def test_a_process_that_ends_is_started_again(standin: StandIn) -> None:
    """The kubelet: restartPolicy Always, in the same pod."""
    first = running(standin, stateful=False)
    uid = pod_of(standin)["metadata"]["uid"]
    process = process_of(standin)
    assert process is not None
    process.kill()
    standin.wait_for(
        lambda: (
            pod_of(standin)["status"]["containerStatuses"][0]["restartCount"] == 1 and is_true(pod_of(standin), "Ready")
        ),
        "restarted",
    )
    assert pod_of(standin)["metadata"]["uid"] == uid
    assert ask(standin, "w")["token"] != first["token"]


def test_watches_can_be_cut_once(standin: StandIn) -> None:
    """What pods have open to the API server is cut; new connections work."""
    running(standin, stateful=False)
    ask(standin, "w", "connect")
    process = process_of(standin)
    assert process is not None
    port = standin.parts.relay.address[1]

    def connected() -> bool:
        found = process.net_connections("tcp")
        return any(c.status == "ESTABLISHED" and c.raddr and c.raddr.port == port for c in found)

    assert connected()
    standin.cut_watches()
    standin.wait_for(lambda: not connected(), "cut")
    ask(standin, "w", "connect")
    assert connected()


def test_s44_a_token_is_renewed_in_place(standin: StandIn) -> None:
    """S44: the kubelet replaces the file; the token that is no longer in it still works for a while."""
    first = running(standin, stateful=False)
    standin.renew_token("w")
    second = ask(standin, "w")
    assert second["account"] != first["account"]
    for token in (first["account"], second["account"]):
        assert standin.api_server.api(str(token)).can("get", "kubeflow.org", "workspaces", standin.namespace)
