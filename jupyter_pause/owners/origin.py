# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a Workspace's pod was made of when its pause was asked for, and what has changed since (cases.md S18, S19).

A pod snapshot fits only a pod of the same image, environment, volumes and GPU model. The snapshot itself names nothing
but its origin pod, which is gone by then, so the one who asks for the pause leaves a note on the Workspace: an
annotation with the fields that matter, environment values as digests. Pure functions; no request is made here.

Sources: `facts/cluster.md` section 4 (what must match), Kubernetes API conventions (`metadata.generation` grows with
every change of the spec and with nothing else).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The note on the Workspace.
ANNOTATION = "jupyter-pause/origin"
VERSION = 1
#: The label of everything that belongs to a Workspace.
WORKSPACE_LABEL = "notebooks.kubeflow.org/workspace-name"
#: Node selectors and affinity keys that name a GPU model.
GPU_MODEL_KEYS = ("cloud.google.com/gke-accelerator", "nvidia.com/gpu.product", "cloud.google.com/compute-class")
#: Extended resources that are GPUs end like this; also MIG slices (`nvidia.com/mig-1g.5gb`).
GPU_RESOURCES = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/")
#: Hex digits of a digest: enough to tell values apart, and no way back to them by length.
DIGEST = 12

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One field that is not as it was: its name, what it was, what it is (None: not there)."""

    name: str
    saved: str | None
    current: str | None

    def row(self) -> dict[str, str | None]:
        """As the REST interface and the command line show differences."""
        return {"name": self.name, "saved": self.saved, "current": self.current}


@dataclass(frozen=True)
class Comparison:
    """What has changed since the pause, and why something cannot be told (None: everything was compared)."""

    differences: tuple[Difference, ...] = ()
    unknown: str | None = None


def note(workspace: Object, template: Object | None) -> str:
    """The annotation's value for a pause that is asked for now.

    Args:
        workspace: as read just before the request; the note holds for its `metadata.generation`.
        template: the pod template of its StatefulSet, None where it may not be read.
    """
    content = {
        "version": VERSION,
        "generation": _generation(workspace),
        "workspace": _workspace_fields(workspace),
        "template": None if template is None else _template_fields(template),
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def compare(workspace: Object, template: Object | None) -> Comparison:
    """The Workspace as it is now against the note of its last pause.

    The pause itself is one change of the spec (`paused`), so a generation that grew by exactly one proves that nothing
    else was changed. One that grew further may hide another pause whose asker left no note: then equal fields prove
    nothing and the answer is unknown.
    """
    saved = _read(workspace)
    if saved is None:
        return Comparison(unknown="not_recorded")
    found = _changes(saved.workspace, _workspace_fields(workspace))
    comparable = saved.template is not None and template is not None
    if saved.template is not None and template is not None:
        found += _changes(saved.template, _template_fields(template))
    if not found and _generation(workspace) > saved.generation + 1:
        return Comparison(unknown="changed_since")
    return Comparison(found, None if comparable else "template_not_readable")


def _changes(saved: Mapping[str, str], now: Mapping[str, str]) -> tuple[Difference, ...]:
    return tuple(
        Difference(name, saved.get(name), now.get(name))
        for name in sorted({*saved, *now})
        if saved.get(name) != now.get(name)
    )


@dataclass(frozen=True)
class _Note:
    generation: int
    workspace: dict[str, str]
    template: dict[str, str] | None


def _read(workspace: Object) -> _Note | None:
    """The note, None when there is none that we understand. Anybody who may edit the Workspace can have written it."""
    text = (workspace.get("metadata", {}).get("annotations") or {}).get(ANNOTATION)
    try:
        content = json.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        return None
    generation, own, template = content.get("generation"), content.get("workspace"), content.get("template")
    if not isinstance(generation, int) or not isinstance(own, dict) or not isinstance(template, dict | None):
        return None
    return _Note(generation, _texts(own), None if template is None else _texts(template))


def _texts(fields: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in fields.items()}


def _generation(workspace: Object) -> int:
    return int(workspace.get("metadata", {}).get("generation") or 0)


def _workspace_fields(workspace: Object) -> dict[str, str]:
    """What the Workspace itself chooses."""
    template = workspace.get("spec", {}).get("podTemplate") or {}
    options, volumes = template.get("options") or {}, template.get("volumes") or {}
    fields = {
        "image choice": options.get("imageConfig"),
        "size choice": options.get("podConfig"),
        "home volume": volumes.get("home"),
    }
    for volume in volumes.get("data") or []:
        mode = " (read-only)" if volume.get("readOnly") else ""
        fields[f"data volume at {volume.get('mountPath')}"] = f"{volume.get('pvcName')}{mode}"
    for secret in volumes.get("secrets") or []:
        fields[f"secret at {secret.get('mountPath')}"] = secret.get("secretName")
    return {name: str(value) for name, value in fields.items() if value}


def _template_fields(template: Object) -> dict[str, str]:
    """What the next pod is made of: images, commands, environment, mounts, GPU."""
    spec = template.get("spec") or {}
    fields: dict[str, str] = {}
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        name = container.get("name", "")
        fields[f"image of {name}"] = str(container.get("image"))
        if container.get("command") or container.get("args"):
            fields[f"command of {name}"] = _digest([container.get("command"), container.get("args")])
        for entry in container.get("env") or []:
            fields[f"variable {entry.get('name')} of {name}"] = _digest(entry)
        for mount in container.get("volumeMounts") or []:
            fields[f"mount {mount.get('mountPath')} of {name}"] = str(mount.get("name"))
    gpu = gpu_of(template)
    if gpu is not None:
        fields["GPU"] = gpu
    return fields


def gpu_of(template: Object) -> str | None:
    """ "1 nvidia.com/gpu on nvidia-tesla-t4"; None without a GPU. "model not named" where nothing chooses one."""
    spec = template.get("spec") or {}
    counts: dict[str, int] = {}
    for container in spec.get("containers") or []:
        limits = (container.get("resources") or {}).get("limits") or {}
        for resource, amount in limits.items():
            if resource.startswith(GPU_RESOURCES):
                counts[resource] = counts.get(resource, 0) + int(amount)
    if not counts:
        return None
    selector = spec.get("nodeSelector") or {}
    models = [str(selector[key]) for key in GPU_MODEL_KEYS if key in selector] or _affinity_models(spec)
    wanted = ", ".join(f"{count} {resource}" for resource, count in sorted(counts.items()))
    return f"{wanted} on {' or '.join(models) or 'model not named'}"


def _affinity_models(spec: Object) -> list[str]:
    """GPU models that a required node affinity names."""
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [
        str(value)
        for term in required.get("nodeSelectorTerms") or []
        for expression in term.get("matchExpressions") or []
        if expression.get("key") in GPU_MODEL_KEYS and expression.get("operator") == "In"
        for value in expression.get("values") or []
    ]


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST]
