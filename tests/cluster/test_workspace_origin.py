# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What has changed since a pause, told from the note that it left (S18, S19)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from jupyter_pause.owners import origin

Object = dict[str, Any]


def workspace(generation: int = 4, **pod_template: Any) -> Object:
    """A Workspace as the API server gives it."""
    template = {
        "options": {"imageConfig": "jupyterlab_cpu", "podConfig": "small"},
        "volumes": {"home": "home-ada", "data": [{"pvcName": "corpus", "mountPath": "/data"}]},
        **pod_template,
    }
    return {"metadata": {"name": "ada", "generation": generation}, "spec": {"kind": "lab", "podTemplate": template}}


def template(**spec: Any) -> Object:
    """The pod template of its StatefulSet."""
    container = {
        "name": "main",
        "image": "lab:1",
        "env": [{"name": "MODEL", "value": "s3cret-value"}],
        "volumeMounts": [{"name": "home", "mountPath": "/home/ada"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {"spec": {"containers": [container], "nodeSelector": {origin.GPU_MODEL_KEYS[0]: "nvidia-l4"}, **spec}}


def paused(before: Object, made_of: Object | None, *, changes: int = 1) -> Object:
    """The Workspace after a pause that left its note, and `changes` changes of its spec (the pause is one)."""
    after = copy.deepcopy(before)
    after["metadata"]["annotations"] = {origin.ANNOTATION: origin.note(before, made_of)}
    after["metadata"]["generation"] += changes
    return after


def test_s19_an_untouched_workspace_has_no_differences() -> None:
    assert origin.compare(paused(workspace(), template()), template()) == origin.Comparison()


def test_s19_each_kind_of_change_is_named() -> None:
    after = paused(workspace(), template(), changes=3)
    after["spec"]["podTemplate"]["options"]["imageConfig"] = "jupyterlab_gpu"
    after["spec"]["podTemplate"]["volumes"]["data"] = []
    now = template()
    main = now["spec"]["containers"][0]
    main["image"] = "lab:2"
    main["env"].append({"name": "NEW", "value": "1"})
    main["volumeMounts"].append({"name": "extra", "mountPath": "/extra"})
    found = origin.compare(after, now)
    assert {(d.name, d.saved, d.current) for d in found.differences if "variable" not in d.name} == {
        ("image choice", "jupyterlab_cpu", "jupyterlab_gpu"),
        ("data volume at /data", "corpus", None),
        ("image of main", "lab:1", "lab:2"),
        ("mount /extra of main", None, "extra"),
    }
    assert [d.name for d in found.differences if "variable" in d.name] == ["variable NEW of main"]
    assert found.unknown is None


def test_the_note_holds_no_values_of_variables() -> None:
    note = origin.note(workspace(), template())
    assert "s3cret-value" not in note and "variable MODEL of main" in note


@pytest.mark.parametrize(
    ("change", "current"),
    [
        ({"nodeSelector": {origin.GPU_MODEL_KEYS[0]: "nvidia-tesla-t4"}}, "1 nvidia.com/gpu on nvidia-tesla-t4"),
        ({"nodeSelector": {}}, "1 nvidia.com/gpu on model not named"),
        ({"containers": [{"name": "main"}]}, None),
        (
            {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}]},
            "2 nvidia.com/gpu on nvidia-l4",
        ),
    ],
)
def test_s18_another_gpu_is_shown_beside_the_old_one(change: Object, current: str | None) -> None:
    found = origin.compare(paused(workspace(), template()), template(**change))
    gpu = [difference for difference in found.differences if difference.name == "GPU"]
    assert gpu == [origin.Difference("GPU", "1 nvidia.com/gpu on nvidia-l4", current)]


def test_s18_models_of_a_required_affinity_count() -> None:
    term = {"key": origin.GPU_MODEL_KEYS[1], "operator": "In", "values": ["A100", "H100"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert origin.gpu_of(template(nodeSelector={}, affinity=affinity)) == "1 nvidia.com/gpu on A100 or H100"


def test_without_a_note_nothing_is_claimed() -> None:
    assert origin.compare(workspace(), template()) == origin.Comparison(unknown="not_recorded")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 2}', '{"version": 1, "generation": "4"}'])
def test_a_note_that_is_not_ours_counts_as_none(text: str) -> None:
    after = paused(workspace(), template())
    after["metadata"]["annotations"][origin.ANNOTATION] = text
    assert origin.compare(after, template()).unknown == "not_recorded"


def test_a_second_pause_without_a_note_is_not_taken_for_the_first() -> None:
    """Paused with a note, resumed, paused by somebody who leaves none: equal fields prove nothing."""
    after = paused(workspace(), template(), changes=3)
    assert origin.compare(after, template()) == origin.Comparison(unknown="changed_since")


@pytest.mark.parametrize(("at_pause", "now"), [(None, template()), (template(), None), (None, None)])
def test_a_template_that_may_not_be_read_is_said_and_the_rest_compared(at_pause: Object | None, now: Any) -> None:
    after = paused(workspace(), at_pause)
    assert origin.compare(after, now) == origin.Comparison(unknown="template_not_readable")
    after["spec"]["podTemplate"]["volumes"]["home"] = "home-bob"
    found = origin.compare(after, now)
    assert found.differences == (origin.Difference("home volume", "home-ada", "home-bob"),)


def test_the_note_is_small_and_valid_json() -> None:
    big = template()
    big["spec"]["containers"][0]["env"] = [{"name": f"VARIABLE_{i}", "value": "x" * 1000} for i in range(300)]
    note = origin.note(workspace(), big)
    assert len(note) < 32_768 and json.loads(note)["version"] == origin.VERSION
