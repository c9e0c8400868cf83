# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""From a pod's spec to a container's: command, environment, mounts; and what of it a snapshot must fit."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.rest import Object

REPOSITORY = Path(__file__).resolve().parents[3]
SERVICE_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
#: Where a container finds files that were mounted into /etc/jupyter, which the machine need not have.
ETC_JUPYTER = "/run/container/etc-jupyter"
#: Folders in which a container's mounts may lie: those that are its own.
MOUNTABLE = ("/home/", "/run/", "/tmp/")

#: Fields of a container and of a pod that a snapshot is bound to (facts/cluster.md section 4: "image, command, args,
#: env, ports, volumes and mounts, gVisor annotations...; not node name or node selector").
CONTAINER_FIELDS = ("name", "image", "command", "args", "env", "ports", "volumeMounts", "workingDir")
GVISOR = "dev.gvisor."
#: What a pod selects a kind of machine by.
MACHINE = ("cloud.google.com/machine-family", "cloud.google.com/gke-accelerator")


def main_container(pod: Object) -> Object:
    """The container that runs; pods have one here."""
    container: Object = pod["spec"]["containers"][0]
    return container


def image_paths() -> list[Path]:
    """What makes up the "image": this Python, its packages, this repository."""
    return sorted({Path(sys.prefix), Path(sys.base_prefix), REPOSITORY})


def environment(pod: Object, ip: str, api: tuple[str, int]) -> dict[str, str]:
    """The environment: the image's, the cluster's, the pod's own."""
    bin_folders = [str(Path(sys.prefix) / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    made = {
        "PATH": ":".join(bin_folders),
        "HOME": "/home/jovyan",
        # dash, the usual /bin/sh, keeps /dev/tty open in a terminal, which CRIU cannot dump; images of notebooks
        # name bash too.
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "HOSTNAME": pod["metadata"]["name"],
        "KUBERNETES_SERVICE_HOST": api[0],
        "KUBERNETES_SERVICE_PORT": str(api[1]),
    }
    if any(mount["mountPath"].startswith("/etc/jupyter/") for mount in main_container(pod).get("volumeMounts", [])):
        made["JUPYTER_CONFIG_PATH"] = ETC_JUPYTER
    for entry in main_container(pod).get("env", []):
        made[entry["name"]] = _expand(_value(entry, pod, ip), made)
    return made


def command(pod: Object, entrypoint: list[str], env: Mapping[str, str]) -> list[str]:
    """What is run: the pod's command and args, else the image's entry point; $(NAME) is replaced as Kubernetes does."""
    container = main_container(pod)
    words = [*(container.get("command") or ([] if container.get("args") else entrypoint)), *container.get("args", [])]
    return [_expand(word, env) for word in words]


def spec_hash(pod: Object) -> str:
    """What a snapshot must match to fit a pod: its spec, and the machine that it selects.

    GKE restores only on the same machine family and the same GPU model; here, what the pod asks for is what it gets.
    """
    containers = [
        {name: container[name] for name in CONTAINER_FIELDS if name in container}
        for container in pod["spec"]["containers"]
    ]
    annotations = pod["metadata"].get("annotations", {})
    essential = {
        "containers": containers,
        "volumes": [volume for volume in pod["spec"].get("volumes", []) if "projected" not in volume],
        "runtime": pod["spec"].get("runtimeClassName"),
        "machine": {name: value for name, value in (pod["spec"].get("nodeSelector") or {}).items() if name in MACHINE},
        "annotations": {name: value for name, value in annotations.items() if name.startswith(GVISOR)},
    }
    return hashlib.sha256(json.dumps(essential, sort_keys=True).encode()).hexdigest()


def grace_seconds(pod: Object) -> float:
    """How long the pod has after SIGTERM: of its deletion, once it is being deleted."""
    of_deletion = pod["metadata"].get("deletionGracePeriodSeconds")
    return float(pod["spec"].get("terminationGracePeriodSeconds", 30) if of_deletion is None else of_deletion)


def _value(entry: Object, pod: Object, ip: str) -> str:
    field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
    if field is None:
        return str(entry.get("value", ""))
    if field == "status.podIP":
        return ip
    found: object = pod
    for part in field.split("."):
        found = found[part]  # type: ignore[index]
    return str(found)


def _expand(text: str, env: Mapping[str, str]) -> str:
    return re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", lambda match: env.get(match[1], match[0]), text)
