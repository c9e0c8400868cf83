# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Files: where they lie, read from the mount table, and so what becomes of them.

Pausing a kernel touches no file. What matters is whether a file is still there tomorrow: a home on a volume is, one in
a tmpfs or in a container's own layer is not once that is gone. What cannot be told is called unknown.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jupyter_pause.states import CheckpointPlace, InventoryItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jupyter_pause.states import Fate

Storage = Literal["persistent", "temporary", "network", "object store", "unknown"]

MOUNT_TABLE = Path("/proc/self/mountinfo")

# fmt: off
_PERSISTENT = frozenset((
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "nilfs2", "reiserfs", "bcachefs", "ntfs", "ntfs3",
    "fuseblk", "vfat", "exfat", "msdos", "hfs", "hfsplus", "apfs", "ufs",
))
_TEMPORARY = frozenset(("tmpfs", "ramfs", "rootfs", "overlay", "aufs", "unionfs", "devtmpfs", "hugetlbfs"))
_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "ceph", "lustre", "gpfs", "beegfs", "afs", "coda", "glusterfs",
    "orangefs", "pvfs2", "wekafs", "panfs",
))
_NETWORK_FUSE = frozenset((
    "sshfs", "glusterfs", "ceph", "ceph-fuse", "juicefs", "beegfs", "davfs", "moosefs", "mfs", "cvmfs2", "hdfs",
))
# fmt: on
_OBJECT_FUSE = re.compile(
    r"gcsfuse|s3fs|goofys|geesefs|mountpoint-s3|mount-s3|blobfuse2?|rclone|ossfs|cosfs|riofs|s3ql|s3backer|alluxio",
    re.IGNORECASE,
)
#: Volumes that Kubernetes makes for one pod and removes with it, although the file system below is a disk's.
_POD_VOLUMES = re.compile(r"/volumes/kubernetes\.io~(empty-dir|configmap|secret|projected|downward-api)/")
_OCTAL = re.compile(r"\\([0-7]{3})")

_FATES: dict[Storage, tuple[Fate, str | None]] = {
    "persistent": ("kept", None),
    "temporary": ("kept", "temporary_storage"),
    "network": ("outside", "network_storage"),
    "object store": ("outside", "object_storage"),
    "unknown": ("unknown", "storage_unknown"),
}


@dataclass(frozen=True)
class Mount:
    """One line of the mount table."""

    point: str
    root: str
    fstype: str
    source: str
    read_only: bool

    @property
    def storage(self) -> Storage:
        """What kind of storage it is."""
        if _POD_VOLUMES.search(self.root):
            return "temporary"
        kind, _, helper = self.fstype.partition(".")
        if kind == "fuse":
            return _fuse_storage(helper, self.source)
        if self.fstype in _PERSISTENT:
            return "persistent"
        if self.fstype in _TEMPORARY:
            return "temporary"
        if self.fstype in _NETWORK:
            return "network"
        return "unknown"  # 9p, virtiofs and autofs among them: what the host has behind it cannot be seen from here


def _fuse_storage(helper: str, source: str) -> Storage:
    if _OBJECT_FUSE.fullmatch(helper) or (not helper and _OBJECT_FUSE.match(source)):
        return "object store"
    if helper in _NETWORK_FUSE:
        return "network"
    return "unknown"


def parse_mounts(table: str) -> list[Mount]:
    """The mounts of a text in the format of `/proc/self/mountinfo`, in its order; other lines are left out."""
    mounts = []
    for line in table.splitlines():
        left, separator, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if not separator or len(before) < 6 or len(after) < 2:
            continue
        mounts.append(
            Mount(
                point=_unescape(before[4]),
                root=_unescape(before[3]),
                fstype=after[0],
                source=_unescape(after[1]),
                read_only="ro" in before[5].split(","),
            )
        )
    return mounts


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), text)


def read_mounts(table: Path = MOUNT_TABLE) -> list[Mount]:
    """The mounts that this process sees; empty where the system has no such table."""
    try:
        return parse_mounts(table.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return []


def mount_of(path: str | os.PathLike[str], mounts: Iterable[Mount]) -> Mount | None:
    """The mount that `path` (absolute, links resolved) lies on; of several at one point the last one counts."""
    best: Mount | None = None
    text = os.fspath(path)
    for mount in mounts:
        inside = mount.point == "/" or text == mount.point or text.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def file_item(path: Path, kind: str, mounts: list[Mount], *, name: str | None = None) -> InventoryItem:
    """A file or folder with the fate that its storage gives it. Blocks: resolves links."""
    real = Path(os.path.realpath(path))
    mount = mount_of(real, mounts)
    storage: Storage = mount.storage if mount is not None else "unknown"
    fate, reason = _FATES[storage]
    details: dict[str, Any] = {"storage": storage, "path": str(path)}
    if mount is not None:
        details |= {"filesystem": mount.fstype, "mount": mount.point, "read_only": mount.read_only}
    return InventoryItem(name=name or str(path), kind=kind, fate=fate, reason=reason, details=details)


def document_item(root_dir: Path, notebook_path: str, mounts: list[Mount]) -> InventoryItem:
    """The notebook's own file. What is not saved yet is known to the browser, which adds it to this item."""
    item = file_item(root_dir / notebook_path, "notebook", mounts, name=notebook_path)
    try:
        item.bytes = (root_dir / notebook_path).stat().st_size
    except OSError:
        item.fate, item.reason = "unknown", "not_saved_yet"
        return item
    item.reason = item.reason or "saved_state_only"
    return item


def place_items(places: dict[str, Path], mounts: list[Mount]) -> list[InventoryItem]:
    """One item per place (kind -> folder); a folder that serves several purposes is listed once, with all of them."""
    merged: dict[str, InventoryItem] = {}
    for kind, path in places.items():
        item = file_item(path, kind, mounts)
        known = merged.setdefault(str(path), item)
        known.details.setdefault("uses", []).append(kind)
    return list(merged.values())


def open_file_items(paths: Iterable[str], variables: dict[str, str], mounts: list[Mount]) -> list[InventoryItem]:
    """Open files. One that a variable holds is opened again; of any other it is not known what holds it.

    `paths`: absolute paths of open files; `variables`: path -> name of the variable that holds it open.
    """
    items: dict[str, InventoryItem] = {}
    for path in [*paths, *variables]:
        real = os.path.realpath(path)
        if real in items:
            continue
        item = items[real] = file_item(Path(path), "open file", mounts)
        holder = variables.get(path) or variables.get(real)
        if holder is not None:
            item.details["variable"] = holder
        # Content in a bucket may change under the file, and its handles go stale: nothing is promised there.
        if item.details["storage"] != "object store":
            item.fate, item.reason = ("rebuilt", "reopened") if holder is not None else ("unknown", "holder_unknown")
    return list(items.values())


def checkpoint_place(directory: Path) -> CheckpointPlace:
    """Where checkpoints go and the room there. Blocks. The folder need not exist yet."""
    there = directory
    while not there.exists() and there != there.parent:
        there = there.parent
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    try:
        usage = shutil.disk_usage(there)
    except OSError:
        return CheckpointPlace(directory=str(directory), writable=writable)
    return CheckpointPlace(directory=str(directory), free=usage.free, total=usage.total, writable=writable)
