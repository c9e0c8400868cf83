# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause ... --kind statefulset`: the same commands for a pod that Kubeflow Workspaces does not own."""

from __future__ import annotations

from pathlib import Path

from .standin.cluster import StandIn
from .test_cli_workspaces import PROGRAM, bind, line_of


def test_a_bare_statefulset_is_paused_and_comes_back_fresh(standin: StandIn, tmp_path: Path) -> None:
    image = f"{standin.namespace}/bare:1"
    standin.parts.node.images[image] = PROGRAM
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    labels = {"app": "bare"}
    standin.api_server.service_account(standin.namespace, "default")
    container = {"name": "main", "image": image, "env": [address]}
    standin.api_server.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "bare", "namespace": standin.namespace},
            "spec": {
                "serviceName": "bare",
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"serviceAccountName": "default", "containers": [container]},
                },
            },
        }
    )

    def ready() -> bool:
        status = standin.api_server.get("apps/v1/StatefulSet", "bare", standin.namespace).get("status", {})
        return bool(status.get("readyReplicas"))

    standin.wait_for(ready, "the pod is ready")
    first = standin.pod_process("bare-0")
    assert first is not None
    bind(standin, "owner", "role-statefulset.yaml")
    line = line_of(standin, "owner", tmp_path)
    kind = ("--kind", "statefulset")
    assert line("status", "bare", *kind, "--json").json["workspace"]["state"] == "running"
    refused = line("now", "bare", *kind, "--json")
    assert refused.code == 3 and refused.json["error"]["code"] == "files_only", refused
    paused = line("now", *kind, "--yes", "--json")
    assert paused.code == 0 and paused.json["workspace"]["state"] == "paused", paused
    assert not first.is_running()
    resumed = line("resume", "bare", *kind, "--json")
    assert resumed.code == 0 and resumed.json["outcome"] == "fresh", resumed
    second = standin.pod_process("bare-0")
    assert second is not None and second.pid != first.pid
    missing = line("now", "nobody", *kind)
    assert missing.code == 1 and "There is no StatefulSet nobody" in missing.err
