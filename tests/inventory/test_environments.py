# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S37: home on a volume, the image's prefix on the overlay, environments here and there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_pause.inventory import build_inventory, environments, files
from jupyter_pause.inventory.reasons import sentence

#: A pod: everything is the container's own layer, but for the home.
TABLE = r"""
100 1 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/b
101 100 0:51 / /proc rw - proc proc rw
102 100 8:16 / /home/jovyan rw,relatime - ext4 /dev/sdb rw
"""
MOUNTS = files.parse_mounts(TABLE)
IMAGE = Path("/opt/conda")


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        ("/opt/conda/envs/mine", "environment_on_container_disk"),
        ("/srv/venv", "environment_on_container_disk"),
        ("/home/jovyan/envs/mine", None),
        ("/opt/conda", None),
    ],
)
def test_s37_an_environment_on_the_containers_disk_is_marked(prefix: str, reason: str | None) -> None:
    item = environments.environment_item(Path(prefix), MOUNTS, own=IMAGE)
    assert (item.kind, item.fate, item.reason) == ("environment", "kept", reason)
    assert "cold start" in sentence("environment_on_container_disk")
    assert "snapshot" in sentence("environment_on_container_disk")


def test_s37_a_link_into_the_home_is_followed(tmp_path: Path) -> None:
    (tmp_path / "envs").symlink_to("/home/jovyan/envs")
    assert not environments.on_container_disk(tmp_path / "envs" / "mine", MOUNTS, own=IMAGE)


def test_s37_without_a_mount_table_nothing_is_claimed() -> None:
    assert not environments.on_container_disk(Path("/opt/conda/envs/mine"), [], own=IMAGE)


def test_s37_kernel_specifications_are_named_by_their_interpreter(tmp_path: Path) -> None:
    for name in ("mine", "image"):
        program = tmp_path / name / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.symlink_to(sys.executable)  # as a virtual environment has it: its own place counts
    argv_of = {
        "mine": [str(tmp_path / "mine" / "bin" / "python"), "-m", "ipykernel_launcher"],
        "python3": [str(tmp_path / "image" / "bin" / "python"), "-m", "ipykernel_launcher"],
        "gone": [str(tmp_path / "gone" / "bin" / "python")],
        "nothing": [],
    }
    assert environments.prefix_of(argv_of["mine"]) == tmp_path / "mine"
    assert environments.names_to_warn_of(argv_of, MOUNTS, own=tmp_path / "image") == ["mine"]


async def test_s37_the_panel_has_a_line_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "read_mounts", lambda: MOUNTS)
    reply = {"status": "ok", "prefix": "/opt/conda/envs/mine", "variables": []}
    inventory = await build_inventory(
        reply, kernel_id="k", pid=None, root_dir=tmp_path, notebook_path=None, checkpoint_dir=tmp_path
    )
    [item] = [item for item in inventory.files if item.kind == "environment"]
    assert item.details["uses"] == ["environment"] and item.details["storage"] == "temporary"
    assert (item.name, item.reason) == ("/opt/conda/envs/mine", "environment_on_container_disk")
