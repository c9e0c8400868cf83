# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause resume --without-memory | --snapshot ID` against the stand-in, as a person on a laptop runs it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from jupyter_pause.owners.kubeflow_cold import cold_start_operations, pause_again_operations

from .standin.addon import LAST, RESTORE, STATE
from .standin.cluster import StandIn
from .standin.faults import Faults
from .test_cli_workspaces import (  # noqa: F401 (fixtures)
    SHORT,
    CommandLine,
    _reason,
    bind,
    cluster,
    faults,
    line_of,
    person,
    running,
    secret,
)


def _snapshots(person: CommandLine, name: str) -> list[str]:  # noqa: F811
    return [found["id"] for found in person("snapshots", name, "--json").json["snapshots"]]


def _annotations(cluster: StandIn, name: str) -> dict[str, str]:  # noqa: F811
    return dict(cluster.workspace(name)["metadata"].get("annotations") or {})


def test_a_paused_workspace_starts_fresh_and_its_snapshot_can_be_had_again(
    cluster: StandIn,  # noqa: F811
    person: CommandLine,  # noqa: F811
) -> None:
    remembered = running(cluster, "coldly")
    assert person("now", "coldly").code == 0
    [snapshot] = _snapshots(person, "coldly")
    spec = cluster.workspace("coldly")["spec"]

    done = person("resume", "coldly", "--without-memory")
    assert done.code == 0, done
    assert f"Snapshot {snapshot} is not deleted" in done.out and "fresh: a new process" in done.out
    fresh = secret(cluster, "coldly")
    assert fresh != remembered
    pod = cluster.pod("coldly")
    assert pod is not None and RESTORE not in (pod["metadata"].get("annotations") or {})
    assert not {LAST, STATE} & _annotations(cluster, "coldly").keys()
    assert cluster.workspace("coldly")["spec"] == {**spec, "paused": False}
    assert _snapshots(person, "coldly") == [snapshot]

    # What was promised on the way: pause, then that snapshot.
    refused = person("resume", "coldly", "--snapshot", snapshot)
    assert refused.code == 1 and "pause it first" in refused.err, refused
    assert person("now", "coldly").code == 0
    [newer] = [name for name in _snapshots(person, "coldly") if name != snapshot]
    asked = person("resume", "coldly", "--snapshot", snapshot, "--json")
    assert asked.code == 3 and asked.json["error"]["params"] == {"snapshots": [newer]}, asked
    assert cluster.state("coldly") == "Paused"
    back = person("resume", "coldly", "--snapshot", snapshot, "--accept-difference", "--json")
    assert back.code == 0 and (back.json["outcome"], back.json["snapshot"]) == ("restored", snapshot), back
    assert secret(cluster, "coldly") == remembered
    cluster.wait_for(lambda: not _snapshots(person, "coldly"), "the add-on has deleted both")


def test_the_next_pause_and_resume_of_a_cold_start_are_its_own(cluster: StandIn, person: CommandLine) -> None:  # noqa: F811
    """What is said about who deletes the snapshot: the add-on, once a later one has been restored."""
    running(cluster, "later")
    assert person("now", "later").code == 0
    [first] = _snapshots(person, "later")
    assert person("resume", "later", "--without-memory").code == 0
    fresh = secret(cluster, "later")
    assert person("now", "later").code == 0
    assert first in _snapshots(person, "later")
    done = person("resume", "later", "--json")
    assert done.code == 0 and done.json["outcome"] == "restored" and done.json["snapshot"] != first, done
    assert secret(cluster, "later") == fresh
    cluster.wait_for(lambda: not _snapshots(person, "later"), "the add-on has deleted both")


def test_one_that_waits_for_capacity_is_paused_again_first(
    cluster: StandIn,  # noqa: F811
    person: CommandLine,  # noqa: F811
    faults: Faults,  # noqa: F811
) -> None:
    remembered = running(cluster, "waits")
    assert person("now", "waits").code == 0
    [snapshot] = _snapshots(person, "waits")
    faults.no_capacity = True
    assert person("resume", "waits", "--no-wait").code == 0
    cluster.wait_for(lambda: _reason(person, "waits") == "node_coming", "it waits")
    pod = cluster.pod("waits")
    assert pod is not None and pod["metadata"]["annotations"][RESTORE] == snapshot

    done = person("resume", "waits", "--without-memory", "--timeout", SHORT)
    assert done.code == 5 and "paused again first" in done.out, done
    faults.no_capacity = False
    assert person("wait", "waits").code == 0
    assert secret(cluster, "waits") != remembered
    assert _snapshots(person, "waits") == [snapshot]


def test_a_restored_pod_that_crashes_is_got_rid_of(
    cluster: StandIn,  # noqa: F811
    person: CommandLine,  # noqa: F811
    faults: Faults,  # noqa: F811
) -> None:
    """Its phase is Running: a plain pause of it would be held back for a snapshot that never comes."""
    remembered = running(cluster, "crashes")
    assert person("now", "crashes").code == 0
    [snapshot] = _snapshots(person, "crashes")
    faults.restore_cold = True
    faults.crash_loop = True
    assert person("resume", "crashes", "--no-wait").code == 0
    cluster.wait_for(lambda: person("status", "crashes", "--json").json["workspace"]["state"] == "failed", "it crashes")
    done = person("resume", "crashes", "--without-memory", "--no-wait", "--json")
    assert done.code == 0 and done.json["left_out"] == snapshot, done
    faults.crash_loop = False
    cluster.wait_for_state("crashes", "Running")
    assert secret(cluster, "crashes") != remembered and _snapshots(person, "crashes") == [snapshot]


def test_one_that_runs_is_left_alone(cluster: StandIn, person: CommandLine, faults: Faults) -> None:  # noqa: F811
    remembered = running(cluster, "runs")
    done = person("resume", "runs", "--without-memory", "--json")
    assert done.code == 1 and done.json["error"]["code"] == "workspace_runs", done
    assert "A pod of runs runs" in done.json["error"]["message"] and secret(cluster, "runs") == remembered
    assert person("now", "runs").code == 0
    faults.restore_hangs = True
    assert person("resume", "runs", "--no-wait").code == 0
    cluster.wait_for(lambda: _container_runs(cluster, "runs"), "it is being restored")
    done = person("resume", "runs", "--without-memory", "--json")
    assert done.code == 1 and done.json["error"]["code"] == "workspace_runs", done
    faults.restore_hangs = False
    assert person("wait", "runs", "--for", "restored").code == 0
    assert secret(cluster, "runs") == remembered


def _container_runs(cluster: StandIn, name: str) -> bool:  # noqa: F811
    statuses = (cluster.pod(name) or {}).get("status", {}).get("containerStatuses", [])
    return any("running" in status["state"] for status in statuses)


def test_without_a_snapshot_it_says_so(cluster: StandIn, person: CommandLine) -> None:  # noqa: F811
    running(cluster, "bare", stateful=False)
    assert person("now", "bare", "--yes").code == 0
    done = person("resume", "bare", "--without-memory", "--json")
    assert done.code == 0 and done.json["outcome"] == "fresh" and done.json["code"] == "no_snapshot", done


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--without-memory", "--snapshot", "x"), 2, "not allowed with"),
        (("--without-memory", "--take-back"), 2, "--take-back undoes a pause"),
        (("--snapshot", "nowhere"), 1, "There is no snapshot nowhere of words"),
    ],
)
def test_unclear_words(
    cluster: StandIn,  # noqa: F811
    person: CommandLine,  # noqa: F811
    words: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    if not any(found["name"] == "words" for found in person("workspaces", "--json").json["workspaces"]):
        running(cluster, "words", stateful=False)
        assert person("now", "words", "--yes").code == 0
    done = person("resume", "words", *words)
    assert done.code == code and text in done.err, done


def test_it_takes_the_right_to_patch_and_no_more(cluster: StandIn, tmp_path: Any) -> None:  # noqa: F811
    """S47; and of all rights of deploy/rbac/role-person.yaml only patch changes anything."""
    running(cluster, "rightful")
    bind(cluster, "rightful", "role-person.yaml", "cluster-read.yaml")
    line = line_of(cluster, "rightful", tmp_path)
    assert line("now", "rightful").code == 0
    assert line("resume", "rightful", "--without-memory").code == 0
    asked = cluster.api_server.audit(user=f"system:serviceaccount:{cluster.namespace}:rightful")
    changing = {found.verb for found in asked} - {"get", "list", "watch"}
    assert changing == {"create", "patch"}  # create: the access review
    assert not [found for found in asked if found.status == 403]
    nobody = line_of(cluster, "nobody-cold", tmp_path)("resume", "rightful", "--without-memory")
    assert nobody.code == 1 and "You may not" in nobody.err


def test_each_value_that_is_taken_away_is_tested() -> None:
    annotations = {"kept": "1", LAST: "abc", STATE: "Restoring"}
    workspace = {"metadata": {"annotations": annotations}, "spec": {"paused": True}}
    operations = cold_start_operations(workspace)
    assert operations is not None
    for before, after in itertools.pairwise(operations):
        if after["op"] == "remove":
            assert (
                before["op"] == "test" and before["path"] == after["path"] and before["value"] in annotations.values()
            )
    assert [found["op"] for found in operations] == ["test", "remove", "test", "remove", "replace"]
    assert cold_start_operations({"metadata": {}, "spec": {"paused": False}}) is None
    assert pause_again_operations(workspace, broken=True) is None
