# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The stand-in's add-on and GKE against facts/cluster.md sections 3 and 4, with real CRIU dumps and restores."""

from __future__ import annotations

import httpx
import pytest

from .rest import ApiError, Object
from .standin.addon import GATE, IPC, LAST, RESTORE, STARTED, STATE
from .standin.api import condition, is_true
from .standin.cluster import StandIn
from .test_standin_kubeflow import PROGRAM, ask

TRIGGER = "podsnapshot.gke.io/v1/PodSnapshotManualTrigger"
SNAPSHOT = "podsnapshot.gke.io/v1/PodSnapshot"


def annotations(standin: StandIn, name: str = "w") -> dict[str, str]:
    found: dict[str, str] = standin.workspace(name)["metadata"].get("annotations", {})
    return found


def snapshots(standin: StandIn) -> list[Object]:
    return standin.api_server.as_admin.list(SNAPSHOT, standin.namespace)


def running(standin: StandIn, name: str = "w", **options: object) -> dict[str, object]:
    """A stateful workspace that runs; what its process says."""
    standin.create_workspace(name, PROGRAM, **options)  # type: ignore[arg-type]
    standin.wait_for_state(name, "Running")
    return ask(standin, name)


def closed(standin: StandIn) -> Object | None:
    """The pod, once its gate is closed."""
    pod = standin.pod("w")
    return pod if pod is not None and not is_true(pod, GATE) and not is_true(pod, "Ready") else None


def process_of(standin: StandIn, name: str = "w"):
    pod = standin.pod(name)
    return None if pod is None else standin.pod_process(pod["metadata"]["name"])


def test_a_pod_that_can_be_snapshotted_shows_it(standin: StandIn) -> None:
    """Weak spot 7: "runtime class `gvisor`, the readiness gate in `spec.readinessGates`"; weak spot 8: ipc."""
    about = running(standin)
    pod = standin.pod("w")
    assert pod is not None
    assert pod["spec"]["runtimeClassName"] == "gvisor"
    assert {"conditionType": GATE} in pod["spec"]["readinessGates"]
    assert is_true(pod, GATE) and is_true(pod, "Ready")
    config = standin.api_server.get("v1/ConfigMap", IPC, standin.namespace)
    assert 'transport = "ipc"' in config["data"]["jupyter_server_config.py"]
    assert about["env"]["JUPYTER_CONFIG_PATH"]  # type: ignore[index]


def test_the_order_of_a_pause(standin: StandIn) -> None:
    """Section 3, "Order of a pause"."""
    running(standin)
    standin.faults.snapshot_slow = True
    process = process_of(standin)
    answer = standin.pause("w")
    assert answer["spec"]["paused"] is False, "rewritten in the same request: success, not refusal"
    assert answer["metadata"]["annotations"][STATE] == "Checkpointing"
    stamp = answer["metadata"]["annotations"][STARTED]
    pod = standin.wait_for(lambda: closed(standin), "the gate is closed, and the pod is not Ready")
    standin.wait_for_state("w", "Unknown")

    standin.wait_for(lambda: snapshots(standin), "a PodSnapshot")
    trigger = standin.api_server.get(TRIGGER, "ws-w-trigger", standin.namespace)
    assert trigger["metadata"]["annotations"][STARTED] == stamp
    assert trigger["spec"]["targetPod"] == pod["metadata"]["name"]
    policy = standin.api_server.get("podsnapshot.gke.io/v1/PodSnapshotPolicy", "ws-w-policy", standin.namespace)
    assert policy["spec"]["triggerConfig"]["type"] == "manual"
    standin.wait_for(lambda: not process.is_running(), "the process is frozen")
    assert standin.workspace("w")["spec"]["paused"] is False, "held back while the snapshot is made"

    standin.faults.snapshot_slow = False
    standin.wait_for_state("w", "Paused")
    (snapshot,) = snapshots(standin)
    assert annotations(standin)[STATE] == "Ready"
    assert annotations(standin)[LAST] == snapshot["metadata"]["name"]
    assert STARTED not in annotations(standin)
    assert standin.workspace("w")["spec"]["paused"] is True
    assert standin.pod("w") is None


def test_what_gke_writes(standin: StandIn) -> None:
    """Section 4: trigger and PodSnapshot, and who may write them."""
    running(standin)
    pod = standin.pod("w")
    assert pod is not None
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    (snapshot,) = snapshots(standin)
    trigger = standin.api_server.get(TRIGGER, "ws-w-trigger", standin.namespace)
    done = condition(trigger, "Triggered")
    assert done is not None and (done["status"], done["reason"]) == ("True", "Complete")
    assert trigger["status"]["snapshotCreated"]["name"] == snapshot["metadata"]["name"]
    assert snapshot["spec"]["policyName"] == "ws-w-policy"
    assert snapshot["metadata"]["labels"]["gke-pod-snapshot-triggered-by"] == "ws-w-trigger"
    assert snapshot["metadata"]["annotations"]["podsnapshot.gke.io/origin-pod"] == pod["metadata"]["name"]
    assert is_true(snapshot, "Ready")
    with pytest.raises(ApiError) as refused:
        standin.api_server.patch(
            SNAPSHOT, snapshot["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}}, standin.namespace
        )
    assert refused.value.status == 403


def test_the_order_of_a_resume_brings_the_memory_back(standin: StandIn) -> None:
    """Section 3, "Order of a resume"; section 4: the pod's annotation and its condition `PodRestored`."""
    first = running(standin)
    ask(standin, "w", "count")
    ask(standin, "w", "scratch")
    (standin.home("w") / "before.txt").touch()
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    (snapshot,) = snapshots(standin)
    name = snapshot["metadata"]["name"]
    (standin.home("w") / "meanwhile.txt").touch()

    standin.faults.no_capacity = True
    answer = standin.pause("w", False)
    assert answer["metadata"]["annotations"][STATE] == "Restoring"
    pod = standin.wait_for(lambda: standin.pod("w"), "the pod")
    assert pod["metadata"]["annotations"]["podsnapshot.gke.io/ps-name"] == name
    assert pod["spec"]["runtimeClassName"] == "gvisor"
    assert snapshots(standin), "kept until it is restored"
    standin.faults.no_capacity = False

    standin.wait_for_state("w", "Running")
    again = ask(standin, "w")
    assert again["token"] == first["token"]
    assert again["count"] == 1
    assert again["scratch"] is True, "what lay on the container's own disk is in the snapshot"
    assert again["home"] == ["before.txt", "meanwhile.txt"], "a claim is not in the snapshot"
    assert again["account"] != first["account"], "the new pod has a token of its own"
    restored = condition(standin.pod("w") or {}, "PodRestored")
    assert restored is not None and restored["status"] == "True" and name in restored["message"]
    standin.wait_for(lambda: not snapshots(standin), "the add-on deletes the PodSnapshot")
    standin.wait_for(lambda: STATE not in annotations(standin), "the annotations are removed")
    assert LAST not in annotations(standin)
    assert not standin.api_server.as_admin.list(TRIGGER, standin.namespace)


def test_two_pauses_in_a_row(standin: StandIn) -> None:
    """Section 3: "A snapshot therefore serves one resume"; the next pause makes its own."""
    first = running(standin)
    names = set()
    for _ in range(2):
        standin.wait_for(lambda: STATE not in annotations(standin), "the last resume is over")
        standin.pause("w")
        standin.wait_for_state("w", "Paused")
        names.add(annotations(standin)[LAST])
        standin.pause("w", False)
        standin.wait_for_state("w", "Running")
        assert ask(standin, "w")["token"] == first["token"]
    assert len(names) == 2


def test_weak_spot_1_no_failure_path_and_the_way_back(standin: StandIn) -> None:
    """Weak spot 1: it stays Checkpointing, the gate stays False; removing `checkpoint-state` publishes it again."""
    first = running(standin)
    standin.faults.snapshot_never_ready = True
    standin.pause("w")
    standin.wait_for(lambda: snapshots(standin), "a PodSnapshot that is never Ready")
    assert annotations(standin)[STATE] == "Checkpointing"
    process = process_of(standin)
    assert process is not None and process.is_running()
    standin.wait_for(lambda: closed(standin), "the gate is closed")
    assert httpx.get(standin.url("w"), trust_env=False).status_code == 503, "locked out of a pod that still runs"

    own = standin.api_server.api(str(first["account"]))
    removed = {"metadata": {"annotations": {STATE: None, STARTED: None}}}
    own.patch("kubeflow.org/v1beta1/Workspace", "w", removed, standin.namespace)
    standin.wait_for_state("w", "Running")
    assert ask(standin, "w")["token"] == first["token"]


def test_a_trigger_that_failed_leaves_the_workspace_checkpointing(standin: StandIn) -> None:
    """Section 4: condition `Triggered` False with reason Failed and a message; weak spot 1: nobody reacts."""
    running(standin)
    standin.faults.snapshot_fails = "bucket not found"
    standin.pause("w")

    def failed() -> Object | None:
        found = standin.api_server.as_admin.list(TRIGGER, standin.namespace)
        return condition(found[0], "Triggered") if found else None

    done = standin.wait_for(failed, "the trigger fails")
    assert (done["status"], done["reason"], done["message"]) == ("False", "Failed", "bucket not found")
    assert annotations(standin)[STATE] == "Checkpointing"
    assert standin.state("w") == "Unknown"


def test_weak_spot_2_a_changed_image_is_a_silent_cold_start(standin: StandIn) -> None:
    """Weak spot 2 and section 4: "A snapshot fits a pod only if a hash over the essential pod spec matches"."""
    first = running(standin)
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    standin.change_image("w")
    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    again = ask(standin, "w")
    assert again["token"] != first["token"]
    assert again["hostname"] == first["hostname"], "same pod name"
    assert condition(standin.pod("w") or {}, "PodRestored") is None


def test_another_machine_is_a_silent_cold_start(standin: StandIn) -> None:
    """Section 4: "A snapshot fits a pod only if a hash over the essential pod spec matches", "the same model"; and what
    is in memory is lost then: reconcile.go, reconcileActive, deletes a Workspace's snapshots once its pod is Ready."""
    before = running(standin)
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    size = {"spec": {"podTemplate": {"options": {"podConfig": "other"}}}}
    standin.api_server.patch("kubeflow.org/v1beta1/Workspace", "w", size, standin.namespace)
    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    pod = standin.pod("w")
    assert pod is not None and pod["metadata"]["annotations"][RESTORE]
    assert condition(pod, "PodRestored") is None and ask(standin, "w")["token"] != before["token"]
    standin.wait_for(lambda: not snapshots(standin), "the snapshot is deleted")
    standin.wait_for(lambda: LAST not in annotations(standin), "the annotations are gone")


def test_without_the_annotation_a_pod_is_not_told_what_to_restore(standin: StandIn) -> None:
    """webhook.go, mutatePod: `last-checkpoint-name` of the Workspace, read when the pod is made; reconcile.go,
    reconcileActive: nothing is deleted where neither that nor `checkpoint-state` is set."""
    before = running(standin)
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    gone = {"metadata": {"annotations": {LAST: None, STATE: None}}, "spec": {"paused": False}}
    standin.api_server.patch("kubeflow.org/v1beta1/Workspace", "w", gone, standin.namespace)
    standin.wait_for_state("w", "Running")
    pod = standin.pod("w")
    assert pod is not None and RESTORE not in pod["metadata"].get("annotations", {})
    assert ask(standin, "w")["token"] != before["token"]
    assert len(snapshots(standin)) == 1 and STATE not in annotations(standin)


def test_a_pause_of_what_waits_goes_straight_through(standin: StandIn) -> None:
    """webhook.go, mutateWorkspace: without a running pod `spec.paused: true` is let through, with all annotations."""
    running(standin)
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    standin.faults.first_size_taken = True
    standin.pause("w", False)
    standin.wait_for_state("w", "Error")
    assert standin.pause("w")["spec"]["paused"] is True
    assert annotations(standin)[STATE] == "Restoring" and annotations(standin)[LAST]
    standin.wait_for_state("w", "Paused")


def test_a_pause_of_what_is_ready_goes_straight_through(standin: StandIn) -> None:
    """webhook.go, mutateWorkspace: `checkpoint-state: Ready` lets a pause through, also while a pod runs."""
    running(standin)
    ready = {"metadata": {"annotations": {STATE: "Ready"}}, "spec": {"paused": True}}
    written = standin.api_server.patch("kubeflow.org/v1beta1/Workspace", "w", ready, standin.namespace)
    assert written["spec"]["paused"] is True
    standin.wait_for_state("w", "Paused")
    assert not snapshots(standin)


def test_weak_spot_3_nothing_running_is_paused_without_a_snapshot(standin: StandIn) -> None:
    """Weak spot 3."""
    standin.faults.no_capacity = True
    standin.create_workspace("w", PROGRAM)
    standin.wait_for_state("w", "Error")
    assert standin.pause("w")["spec"]["paused"] is True
    standin.wait_for_state("w", "Paused")
    assert not snapshots(standin)
    assert LAST not in annotations(standin)


def test_weak_spot_4_what_kubectl_exec_started_is_gone(standin: StandIn) -> None:
    """Weak spot 4: not in the checkpointed tree, and silently gone."""
    first = running(standin)
    pod = standin.pod("w")
    assert pod is not None
    started = standin.exec_in_pod(pod["metadata"]["name"], ["sh", "-c", "hostname; exec sleep 1000"])
    assert started.stdout is not None
    assert started.stdout.readline().decode().strip() == first["hostname"]
    standin.pause("w")
    standin.wait_for_state("w", "Paused")
    assert started.wait(30) != 0
    started.stdout.close()
    standin.pause("w", False)
    standin.wait_for_state("w", "Running")
    assert ask(standin, "w")["token"] == first["token"]
    process = process_of(standin)
    assert process is not None and not process.children()


def test_weak_spot_5_tpu_pods_are_paused_statelessly(standin: StandIn) -> None:
    """Weak spot 5."""
    running(standin, resources={"limits": {"google.com/tpu": "1"}})
    pod = standin.pod("w")
    assert pod is not None and "runtimeClassName" not in pod["spec"]
    assert standin.pause("w")["spec"]["paused"] is True
    standin.wait_for_state("w", "Paused")
    assert not snapshots(standin)


def test_weak_spot_6_out_of_memory_during_the_pause(standin: StandIn) -> None:
    """Weak spot 6."""
    first = running(standin)
    standin.faults.snapshot_out_of_memory = True
    standin.pause("w")

    def restarted() -> bool:
        statuses = (standin.pod("w") or {}).get("status", {}).get("containerStatuses", [{}])
        return bool(statuses[0].get("restartCount") and statuses[0].get("ready"))

    standin.wait_for(restarted, "the container is started anew")
    last = (standin.pod("w") or {})["status"]["containerStatuses"][0]["lastState"]
    assert last["terminated"]["reason"] == "OOMKilled"
    process = process_of(standin)
    assert process is not None
    assert str(first["token"]) not in standin.log("w").splitlines()[-1]


def test_weak_spot_7_with_the_add_on_down_a_pause_goes_straight_through(standin: StandIn) -> None:
    """Weak spot 7: `failurePolicy: Ignore`."""
    running(standin)
    standin.faults.addon_down = True
    assert standin.pause("w")["spec"]["paused"] is True
    standin.wait_for_state("w", "Paused")
    assert not snapshots(standin)


def test_an_outside_connection_at_snapshot_time_loses_the_process(standin: StandIn) -> None:
    """design.md section 8, "In a pod, before the snapshot"; facts/process-snapshots.md section 3."""
    first = running(standin)
    ask(standin, "w", "connect")
    standin.pause("w")

    def lost() -> bool:
        statuses = (standin.pod("w") or {}).get("status", {}).get("containerStatuses", [{}])
        return statuses[0].get("restartCount", 0) == 1

    standin.wait_for(lost, "the sandbox is lost")
    trigger = standin.api_server.get(TRIGGER, "ws-w-trigger", standin.namespace)
    standin.wait_for(
        lambda: condition(standin.api_server.get(TRIGGER, "ws-w-trigger", standin.namespace), "Triggered"), "it is told"
    )
    assert trigger["spec"]["targetPod"]
    standin.wait_for(lambda: "started" in standin.log("w"), "a new process")
    standin.wait_for(lambda: str(first["token"]) not in standin.log("w").splitlines()[-1], "with a new memory")


def test_a_pod_deleted_while_checkpointing_ends_the_pause(standin: StandIn) -> None:
    """The add-on's public source: without a pod there is nothing left to checkpoint, and the pause completes."""
    running(standin)
    standin.faults.snapshot_never_ready = True
    standin.pause("w")
    pod = standin.pod("w")
    assert pod is not None
    standin.api_server.delete("v1/Pod", pod["metadata"]["name"], standin.namespace)
    standin.wait_for_state("w", "Paused")
    assert annotations(standin)[STATE] == "Ready"
    assert LAST not in annotations(standin)
