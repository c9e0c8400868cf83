# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause ... --namespace`, as a person on a laptop runs it: a program of its own, with a kubeconfig of an
account that has the shipped rights and no others, against a real API server and containers that CRIU really freezes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.harness import take_ctrl_c

from .apiserver import ApiServer
from .standin.cluster import StandIn
from .standin.faults import Faults
from .standin_fixtures import SETTLE

DEPLOY = Path(__file__).parents[2] / "deploy"
PROGRAM = [sys.executable, str(Path(__file__).parent / "standin" / "small_program.py")]
#: Seconds for one run of the program; nothing is decided by it.
LIMIT = 120.0
#: Seconds that a command follows when the test wants it to give up; it can never get there before.
SHORT = "2"


@dataclass
class Done:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout must be exactly one JSON object."""
        return json.loads(self.out)


class CommandLine:
    """`jupyter pause` with one kubeconfig."""

    def __init__(self, kubeconfig: Path, namespace: str, home: Path) -> None:
        self.namespace = namespace
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
            "JUPYTER_RUNTIME_DIR": str(home),
            "PYTHONWARNINGS": "ignore",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The program while it runs."""
        return subprocess.Popen(
            [sys.executable, "-m", "jupyter_pause.cli", *words, "--namespace", self.namespace],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=take_ctrl_c,
        )

    def __call__(self, *words: str) -> Done:
        return self.end(self.start(*words))

    def end(self, process: subprocess.Popen[str]) -> Done:
        """How it ends."""
        try:
            out, err = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        assert "Traceback" not in err, err
        return Done(process.returncode, out, err)


@pytest.fixture(scope="module")
def cluster(api_server: ApiServer, criu: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """One stand-in for all tests of this file; each uses workspaces of its own."""
    if os.geteuid() != 0:
        pytest.skip("containers are made by root")
    folder = tmp_path_factory.mktemp("standin")
    with StandIn(api_server, folder, criu=criu, settle=SETTLE) as running:
        yield running


@pytest.fixture
def faults(cluster: StandIn) -> Iterator[Faults]:
    """The stand-in's faults, all off again afterwards."""
    yield cluster.faults
    for name, value in vars(Faults()).items():
        if not name.startswith("_") and getattr(cluster.faults, name) != value:
            setattr(cluster.faults, name, value)


@pytest.fixture(scope="module")
def person(cluster: StandIn, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A person with the rights of deploy/rbac/role-person.yaml and cluster-read.yaml, and no others."""
    bind(cluster, "person", "role-person.yaml", "cluster-read.yaml")
    return line_of(cluster, "person", tmp_path_factory.mktemp("home"))


def bind(cluster: StandIn, account: str, *files: str) -> None:
    """Give a service account shipped roles, as an administrator would."""
    server, group = cluster.api_server, "rbac.authorization.k8s.io"
    for file in files:
        role = yaml.safe_load((DEPLOY / "rbac" / file).read_text(encoding="utf-8"))
        namespaced = role["kind"] == "Role"
        server.apply(role, cluster.namespace if namespaced else None)
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding" if namespaced else "ClusterRoleBinding",
            "metadata": {"name": f"{account}-{role['metadata']['name']}"},
            "roleRef": {"apiGroup": group, "kind": role["kind"], "name": role["metadata"]["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": cluster.namespace}],
        }
        server.apply(binding, cluster.namespace if namespaced else None)


def line_of(cluster: StandIn, account: str, home: Path) -> CommandLine:
    """The command line of a service account."""
    token = cluster.api_server.service_account(cluster.namespace, account)
    return CommandLine(cluster.api_server.kubeconfig(token, cluster.namespace), cluster.namespace, home)


def running(cluster: StandIn, name: str, *, stateful: bool = True) -> str:
    """A workspace that runs. Returns the secret that lives only in its process's memory."""
    cluster.create_workspace(name, PROGRAM, stateful=stateful)
    cluster.wait_for_state(name, "Running")
    return secret(cluster, name)


def secret(cluster: StandIn, name: str) -> str:
    """What the process in the pod remembers."""
    answer = httpx.get(cluster.url(name), trust_env=False, timeout=10)
    return str(answer.raise_for_status().json()["token"])


# --- there and back -------------------------------------------------------------------------------------------------


def test_paused_and_restored_from_a_laptop(cluster: StandIn, person: CommandLine) -> None:
    remembered = running(cluster, "ada")
    before = person("workspaces", "--json").json["workspaces"]
    [ada] = [row for row in before if row["name"] == "ada"]
    assert (ada["state"], ada["memory"], ada["kind"]) == ("running", "snapshot", f"{cluster.namespace}-ada")
    process = cluster.pod_process(ada["pod"])
    assert process is not None

    paused = person("now", "ada")
    assert paused.code == 0, paused
    first, *_, last = paused.out.splitlines()
    assert first.startswith("Pausing ada: its memory goes into a pod snapshot")
    assert "pausing (taking the snapshot)" in paused.out and "jupyter pause resume ada" in last
    assert not process.is_running()
    status = person("status", "ada", "--json").json
    snapshot = status["workspace"]["snapshot"]
    assert status["workspace"]["state"] == "paused" and status["workspace"]["memory"] == f"snapshot {snapshot}"
    assert status["differences"] == []

    [listed] = person("snapshots", "ada", "--json").json["snapshots"]
    assert (listed["id"], listed["ready"], listed["next"], listed["bytes"]) == (snapshot, True, True, None)
    refused = person("snapshots", "delete", snapshot)
    assert refused.code == 1 and "The next resume would use" in refused.err
    assert len(person("snapshots", "ada", "--json").json["snapshots"]) == 1

    resumed = person("resume", "ada", "--json")
    assert resumed.code == 0, resumed
    assert (resumed.json["outcome"], resumed.json["snapshot"]) == ("restored", snapshot)
    assert secret(cluster, "ada") == remembered
    again = person("resume", "ada")
    assert again.code == 0 and "is running already; restored from snapshot" in again.out


def test_without_a_snapshot_it_says_files_only_and_asks(cluster: StandIn, person: CommandLine) -> None:
    remembered = running(cluster, "plain", stateful=False)
    refused = person("now", "plain", "--json")
    assert refused.code == 3 and refused.json["error"]["code"] == "files_only"
    assert refused.json["error"]["params"]["code"] == "snapshots_off"
    assert cluster.state("plain") == "Running" and secret(cluster, "plain") == remembered

    preview = person("now", "plain", "--preview")
    assert preview.code == 0 and "files only" in preview.out and cluster.state("plain") == "Running"

    paused = person("now", "plain", "--yes")
    assert paused.code == 0 and "files only" in paused.out.splitlines()[0]
    listed = person("workspaces").out
    assert any("plain" in line and "paused" in line and "files only" in line for line in listed.splitlines())
    resumed = person("resume", "plain")
    assert resumed.code == 0 and "fresh: a new process" in resumed.out, resumed
    assert secret(cluster, "plain") != remembered


def test_vs_code_is_files_only_even_where_the_add_on_would_snapshot(cluster: StandIn, person: CommandLine) -> None:
    running(cluster, "codeserver")
    refused = person("now", "codeserver")
    assert refused.code == 3 and "VS Code" in refused.err and "files only" in refused.err
    assert cluster.state("codeserver") == "Running"


def test_asked_twice_is_once(cluster: StandIn, person: CommandLine) -> None:
    running(cluster, "twice")
    first, second = person.start("now", "twice", "--json"), person.start("now", "twice", "--json")
    assert [person.end(first).code, person.end(second).code] == [0, 0]
    assert len(cluster.api_server.list("podsnapshot.gke.io/v1/PodSnapshot", cluster.namespace)) >= 1
    assert len(person("snapshots", "twice", "--json").json["snapshots"]) == 1
    generation = cluster.workspace("twice")["metadata"]["generation"]
    first, second = person.start("resume", "twice", "--json"), person.start("resume", "twice", "--json")
    outcomes = [person.end(first), person.end(second)]
    assert [done.code for done in outcomes] == [0, 0], outcomes
    assert [done.json["outcome"] for done in outcomes] == ["restored", "restored"]
    assert cluster.workspace("twice")["metadata"]["generation"] == generation + 1


def test_wait_sees_what_others_do(cluster: StandIn, person: CommandLine) -> None:
    running(cluster, "watched")
    waiting = person.start("wait", "watched", "--for", "paused", "--json")
    asked = person("now", "watched", "--no-wait", "--json")
    assert asked.code == 0 and asked.json["workspace"]["state"] == "pausing"
    done = person.end(waiting)
    assert done.code == 0 and done.json["workspace"]["state"] == "paused"
    waiting = person.start("wait", "watched", "--for", "restored", "--json")
    assert person("resume", "watched", "--no-wait").code == 0
    done = person.end(waiting)
    assert done.code == 0 and done.json["outcome"] == "restored", done


def test_ctrl_c_leaves_the_request_in_place(cluster: StandIn, person: CommandLine, faults: Faults) -> None:
    running(cluster, "left")
    faults.snapshot_slow = True
    process = person.start("now", "left")
    cluster.wait_for(lambda: _checkpointing(cluster, "left"), "the add-on makes a snapshot")
    assert process.stdout is not None
    while "taking the snapshot" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    done = person.end(process)
    assert done.code == 130 and "stays asked for" in done.err, done
    faults.snapshot_slow = False
    cluster.wait_for_state("left", "Paused")


def _checkpointing(cluster: StandIn, name: str) -> bool:
    annotations = cluster.workspace(name)["metadata"].get("annotations") or {}
    return bool(annotations.get("podsnapshot.gke.kubeflow.org/checkpoint-state") == "Checkpointing")


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_snapshot_that_never_comes_is_taken_back_from_outside(
    cluster: StandIn, person: CommandLine, faults: Faults
) -> None:
    remembered = running(cluster, "stuck")
    faults.snapshot_never_ready = True
    done = person("now", "stuck", "--timeout", SHORT, "--json")
    assert done.code == 1 and done.json["error"]["code"] == "timeout"
    assert "taking the snapshot" in done.json["error"]["message"]
    refused = person("resume", "stuck")
    assert refused.code == 1 and "--take-back" in refused.err
    back = person("resume", "stuck", "--take-back", "--json")
    assert back.code == 0 and back.json["same_pod"] is True, back
    assert secret(cluster, "stuck") == remembered


def test_with_the_add_on_down_the_request_is_taken_back(cluster: StandIn, person: CommandLine, faults: Faults) -> None:
    running(cluster, "addonless")
    faults.addon_down = True
    cluster.run(cluster.parts.webhooks.look_again())
    done = person("now", "addonless", "--json")
    assert done.code == 1 and done.json["error"]["code"] == "snapshot_not_made", done
    cluster.wait_for_state("addonless", "Running")
    assert cluster.workspace("addonless")["spec"]["paused"] is False


def _workspaces(cluster: StandIn) -> Any:
    return cluster.api_server.list("kubeflow.org/v1beta1/Workspace", cluster.namespace)


@pytest.mark.parametrize(
    ("fault", "value", "code"),
    [
        ("restore_cold", True, "not_restored"),
        ("restore_wrong_snapshot", "another-snapshot", "other_snapshot"),
        ("restore_failed", "HashMismatch", "restore_refused"),
    ],
)
def test_s20_what_was_not_restored_is_called_fresh(
    cluster: StandIn, person: CommandLine, faults: Faults, fault: str, value: Any, code: str
) -> None:
    name = fault.replace("_", "-")
    remembered = running(cluster, name)
    assert person("now", name).code == 0
    setattr(faults, fault, value)
    done = person("resume", name, "--json")
    assert done.code == 1 and done.json["ok"] is False, done
    assert (done.json["outcome"], done.json["code"]) == ("fresh", code)
    assert secret(cluster, name) != remembered


@pytest.mark.parametrize(
    ("fault", "more", "reason", "words"),
    [
        ("no_capacity", "", "node_coming", "a node is being added"),
        ("no_capacity", "no_scale_up", "no_scale_up", "the cluster adds none"),
        ("volume_attached_elsewhere", "", "volume_attached_elsewhere", "still attached to another node"),
    ],
)
def test_s14_s16_waiting_is_told_from_failing(
    cluster: StandIn, person: CommandLine, faults: Faults, fault: str, more: str, reason: str, words: str
) -> None:
    name = (more or fault).replace("_", "-")
    running(cluster, name)
    assert person("now", name).code == 0
    if more:
        setattr(faults, more, True)
    setattr(faults, fault, True)
    assert person("resume", name, "--no-wait").code == 0
    cluster.wait_for(lambda: _reason(person, name) == reason, f"{name} waits because of {reason}")
    done = person("resume", name, "--timeout", SHORT)
    assert done.code == 5 and "still waiting for capacity" in done.err and words in done.err, done
    assert "snapshot" in person("status", name, "--json").json["workspace"]["memory"]
    setattr(faults, fault, False)
    done = person("resume", name, "--json")
    assert done.code == 0 and done.json["outcome"] == "restored", done


def _reason(person: CommandLine, name: str) -> str | None:
    waiting = person("status", name, "--json").json["workspace"]["waiting"]
    return waiting and str(waiting["code"])


def test_s21_a_restore_that_hangs_ends_with_the_last_step_seen(
    cluster: StandIn, person: CommandLine, faults: Faults
) -> None:
    running(cluster, "hangs")
    assert person("now", "hangs").code == 0
    snapshot = person("status", "hangs", "--json").json["workspace"]["snapshot"]
    faults.restore_hangs = True
    done = person("resume", "hangs", "--timeout", SHORT, "--json")
    assert done.code == 1 and done.json["error"]["code"] == "timeout", done
    message = done.json["error"]["message"]
    assert "the last step seen is resuming" in message and f"Snapshot {snapshot} is kept" in message
    faults.restore_hangs = False
    again = person("resume", "hangs", "--json")
    assert again.code == 0 and again.json["outcome"] == "restored", again


def test_s19_a_changed_image_is_named_before_the_resume(cluster: StandIn, person: CommandLine) -> None:
    remembered = running(cluster, "drift")
    assert person("now", "drift").code == 0
    before = cluster.workspace("drift")
    image = cluster.change_image("drift")
    cluster.wait_for(lambda: image in json.dumps(_statefulset(cluster, "drift")), "the StatefulSet has the new image")
    refused = person("resume", "drift", "--json")
    assert refused.code == 3 and refused.json["error"]["code"] == "workspace_differs", refused
    [difference] = refused.json["error"]["differences"]
    assert difference["name"] == "image of main" and difference["current"] == image
    assert cluster.workspace("drift")["spec"] == before["spec"]
    assert len(person("snapshots", "drift", "--json").json["snapshots"]) == 1
    accepted = person("resume", "drift", "--accept-difference", "--json")
    assert accepted.code == 1 and accepted.json["outcome"] == "fresh", accepted
    assert secret(cluster, "drift") != remembered


def _statefulset(cluster: StandIn, name: str) -> Any:
    label = f"notebooks.kubeflow.org/workspace-name={name}"
    return cluster.api_server.as_admin.list("apps/v1/StatefulSet", cluster.namespace, labels=label)


def test_a_snapshot_that_is_gone_is_said_before_the_resume(cluster: StandIn, person: CommandLine) -> None:
    running(cluster, "gone")
    assert person("now", "gone").code == 0
    snapshot = person("status", "gone", "--json").json["workspace"]["snapshot"]
    assert person("snapshots", "delete", snapshot, "--force").code == 0
    cluster.wait_for(lambda: not person("snapshots", "gone", "--json").json["snapshots"], "the snapshot is deleted")
    refused = person("resume", "gone")
    assert refused.code == 3 and "does not exist any more" in refused.err, refused


def test_s47_a_missing_right_is_named_and_reading_still_works(cluster: StandIn, tmp_path: Path) -> None:
    running(cluster, "readonly")
    role = yaml.safe_load((DEPLOY / "rbac" / "role-person.yaml").read_text(encoding="utf-8"))
    role["metadata"]["name"] = "reader"
    for rule in role["rules"]:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb not in ("patch", "delete")]
    cluster.api_server.apply(role, cluster.namespace)
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": cluster.namespace}],
    }
    cluster.api_server.apply(binding, cluster.namespace)
    reader = line_of(cluster, "reader", tmp_path)
    listed = reader("workspaces", "--json").json
    assert "readonly" in [row["name"] for row in listed["workspaces"]]
    assert listed["not_readable"] == ["workspacekinds.kubeflow.org"]
    done = reader("now", "readonly", "--json")
    assert done.code == 1 and done.json["error"]["code"] == "cluster_forbidden"
    [missing] = done.json["error"]["params"]["missing"]
    assert (missing["verb"], missing["resource"]) == ("patch", "workspaces.kubeflow.org")
    assert "patch on workspaces.kubeflow.org" in done.json["error"]["message"]
    assert cluster.state("readonly") == "Running"
    nobody = line_of(cluster, "nobody", tmp_path)("workspaces")
    assert nobody.code == 1 and "You may not list workspaces.kubeflow.org in namespace" in nobody.err


def test_an_api_server_that_does_not_answer_is_exit_code_4(cluster: StandIn, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.api_server.kubeconfig("token").read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")
    away = CommandLine(tmp_path / "kubeconfig", "team", tmp_path)
    done = away("workspaces")
    assert done.code == 4 and len(done.err.splitlines()) == 1 and "does not answer" in done.err, done
    nothing = CommandLine(tmp_path / "missing", "team", tmp_path)("status")
    assert nothing.code == 4 and len(nothing.err.splitlines()) == 1 and "no kubeconfig" in nothing.err, nothing
    stranger = CommandLine(cluster.api_server.kubeconfig("not a token"), "team", tmp_path)("workspaces")
    assert stranger.code == 1 and "does not accept these credentials" in stranger.err, stranger


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("status", "nobody"), 1, "There is no Workspace nobody in namespace"),
        (("now", "a", "b"), 2, "one workspace at a time"),
        (("now", "a", "--all"), 2, "one workspace at a time"),
        (("now", "a", "--when-busy", "interrupt"), 2, "a cell is not seen from outside"),
        (("resume", "a", "--checkpoint", "abcd"), 2, "it resumes kernels"),
        (("status", "--server", "8888"), 2, "not both"),
        (("snapshots", "delete"), 2, "Which snapshots?"),
        (("snapshots", "delete", "x"), 1, "There is no snapshot x"),
    ],
)
def test_unclear_words(person: CommandLine, words: tuple[str, ...], code: int, text: str) -> None:
    done = person(*words)
    assert done.code == code and text in done.err, done
    as_json = person(*words, "--json")
    assert as_json.code == code and as_json.json["ok"] is False


def test_which_one_is_asked_when_there_are_several(cluster: StandIn, person: CommandLine) -> None:
    for name in ("one", "two"):
        if name not in [w["metadata"]["name"] for w in _workspaces(cluster)]:
            cluster.create_workspace(name, PROGRAM, stateful=False)
    done = person("now")
    assert done.code == 2 and "Which one?" in done.err and "one" in done.err


def test_the_shipped_rights_are_those_that_the_commands_use(cluster: StandIn, tmp_path: Path, faults: Faults) -> None:
    """Every command once, with role-person.yaml and cluster-read.yaml: nothing is refused, no right is left over."""
    running(cluster, "rights")
    bind(cluster, "exact", "role-person.yaml", "cluster-read.yaml")
    line = line_of(cluster, "exact", tmp_path)
    for words in (("workspaces",), ("now", "rights"), ("status", "rights"), ("wait", "rights", "--for", "paused")):
        assert line(*words).code == 0, words
    [snapshot] = line("snapshots", "rights", "--json").json["snapshots"]
    assert line("snapshots", "delete", snapshot["id"], "--force").code == 0
    faults.volume_attached_elsewhere = True  # so that its events are looked at
    assert line("resume", "rights", "--accept-difference", "--timeout", SHORT).code == 5
    faults.volume_attached_elsewhere = False
    assert line("wait", "rights", "--for", "running").code == 0
    requests = cluster.api_server.audit(user=f"system:serviceaccount:{cluster.namespace}:exact")
    assert not [request for request in requests if request.status == 403]
    used = {(request.verb, _resource(request.uri)) for request in requests}
    granted = {
        (verb, resource)
        for file in ("role-person.yaml", "cluster-read.yaml")
        for rule in yaml.safe_load((DEPLOY / "rbac" / file).read_text(encoding="utf-8"))["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    everybody = {("create", "selfsubjectaccessreviews")}
    assert used - everybody == granted


def _resource(uri: str) -> str:
    parts = uri.split("?")[0].strip("/").split("/")
    if "namespaces" in parts:
        return parts[parts.index("namespaces") + 2]
    return parts[2] if parts[0] == "api" else parts[3]


def test_a_laptop_without_a_cluster_never_loads_kubernetes(tmp_path: Path) -> None:
    script = (
        "import sys; from jupyter_pause import cli; code = cli.main(['status', '--json']);"
        "assert not [name for name in sys.modules if name.startswith('kubernetes')]; sys.exit(code)"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 4 and time.monotonic() > began, done.stderr
