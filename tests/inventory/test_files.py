# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Mount tables of laptops, clusters and containers: what lasts, what does not, and what cannot be told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_pause.inventory import files

TABLE = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:40 / /tmp rw - tmpfs tmpfs rw,size=1g
31 27 0:41 / /home/jovyan rw - nfs4 server:/export/home rw
32 31 0:42 / /home/jovyan/bucket rw - fuse.gcsfuse my-bucket rw,user_id=0
33 31 0:43 / /home/jovyan/s3 ro,relatime - fuse mountpoint-s3 ro
34 31 0:44 / /home/jovyan/remote rw - fuse.sshfs me@host:/ rw
35 27 8:1 /var/lib/kubelet/pods/1f/volumes/kubernetes.io~empty-dir/scratch /scratch rw - ext4 /dev/sda1 rw
36 27 8:16 / /data\040sets rw - xfs /dev/sdb rw
37 27 0:50 / /host rw - 9p host rw
38 27 0:51 / /odd rw - fuse.something thing rw
39 27 0:52 / /overlay rw - overlay overlay rw,lowerdir=/a
40 27 0:53 / /stacked rw - tmpfs tmpfs rw
41 40 8:32 / /stacked rw - btrfs /dev/sdc rw
not a mount line
"""
MOUNTS = files.parse_mounts(TABLE)


@pytest.mark.parametrize(
    ("path", "storage", "fate", "reason"),
    [
        ("/root/a.ipynb", "persistent", "kept", None),
        ("/data sets/x", "persistent", "kept", None),
        ("/stacked/x", "persistent", "kept", None),
        ("/tmp/x", "temporary", "kept", "temporary_storage"),
        ("/overlay/opt/conda", "temporary", "kept", "temporary_storage"),
        ("/scratch/x", "temporary", "kept", "temporary_storage"),
        ("/home/jovyan/work", "network", "outside", "network_storage"),
        ("/home/jovyan/remote/x", "network", "outside", "network_storage"),
        ("/home/jovyan/bucket/x", "object store", "outside", "object_storage"),
        ("/home/jovyan/s3/x", "object store", "outside", "object_storage"),
        ("/host/x", "unknown", "unknown", "storage_unknown"),
        ("/odd/x", "unknown", "unknown", "storage_unknown"),
    ],
)
def test_S40_storage_is_told_apart(path: str, storage: str, fate: str, reason: str | None) -> None:
    item = files.file_item(Path(path), "home", MOUNTS)
    assert (item.details["storage"], item.fate, item.reason) == (storage, fate, reason)


def test_a_neighbour_with_the_same_beginning_is_not_inside() -> None:
    mount = files.mount_of("/tmpfiles/x", MOUNTS)
    assert mount is not None
    assert mount.point == "/"


def test_read_only_mounts_say_so() -> None:
    assert files.file_item(Path("/home/jovyan/s3"), "home", MOUNTS).details["read_only"] is True


def test_without_a_mount_table_nothing_is_claimed(tmp_path: Path) -> None:
    mounts = files.read_mounts(tmp_path / "no-such-table")
    assert mounts == []
    assert files.file_item(tmp_path, "home", mounts).fate == "unknown"


def test_this_machine_has_a_mount_table() -> None:
    proc = files.mount_of("/proc/self", files.read_mounts())
    assert proc is not None
    assert proc.fstype == "proc"


def test_links_are_followed_to_where_the_file_lies(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home/jovyan/bucket")
    assert files.file_item(tmp_path / "link" / "x", "open file", MOUNTS).details["storage"] == "object store"


def test_one_folder_with_several_uses_is_one_item() -> None:
    items = files.place_items({"home": Path("/root"), "working directory": Path("/root")}, MOUNTS)
    assert [item.details["uses"] for item in items] == [["home", "working directory"]]


def test_open_files_come_back_only_when_a_variable_holds_them() -> None:
    variables = {"/root/a.txt": "a", "/home/jovyan/bucket/b.txt": "b"}
    items = {i.name: i for i in files.open_file_items(["/root/a.txt", "/root/c.h5"], variables, MOUNTS)}
    assert {name: (i.fate, i.reason) for name, i in items.items()} == {
        "/root/a.txt": ("rebuilt", "reopened"),
        "/home/jovyan/bucket/b.txt": ("outside", "object_storage"),
        "/root/c.h5": ("unknown", "holder_unknown"),
    }
    assert items["/root/a.txt"].details["variable"] == "a"


def test_the_notebook_is_kept_as_last_saved(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("{}")
    saved = files.document_item(tmp_path, "a.ipynb", MOUNTS)
    assert saved.bytes == 2
    assert saved.name == "a.ipynb"
    missing = files.document_item(tmp_path, "sub/b.ipynb", MOUNTS)
    assert (missing.fate, missing.reason, missing.bytes) == ("unknown", "not_saved_yet", None)


def test_the_checkpoint_place_need_not_exist_yet(tmp_path: Path) -> None:
    place = files.checkpoint_place(tmp_path / "not" / "yet")
    assert place.writable
    assert place.free is not None
    assert place.total is not None
    assert 0 < place.free <= place.total
    assert not (tmp_path / "not").exists()


def test_a_checkpoint_place_below_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not files.checkpoint_place(tmp_path / "file" / "sub").writable


def test_a_read_only_file_system_is_not_writable() -> None:
    if os.access("/proc/self", os.W_OK):  # the superuser may; the kernel's own tables then show it
        assert not files.checkpoint_place(Path("/proc/version")).writable
    else:
        assert not files.checkpoint_place(Path("/proc/self")).writable
