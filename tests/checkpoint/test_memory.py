# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Regions as memory: mapped, read, spread over several packs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_pause.kernel import layout, memory, regions


def pack(folder: Path, name: str, pieces: list[bytes]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    writer = layout.PackWriter(str(folder / name))
    stored = [writer.region([memoryview(piece)], lambda count: None) for piece in pieces]
    (entry,) = writer.close(True)
    return stored, entry


def test_a_region_may_lie_in_several_packs(tmp_path: Path) -> None:
    one, two = bytes(range(256)) * 100, b"x" * 9000
    (first,), pack1 = pack(tmp_path, "a.bin", [one])
    (second,), pack2 = pack(tmp_path, "b.bin", [two])
    second["chunks"][0]["pack"] = 1
    joined = {"bytes": len(one) + len(two), "chunks": first["chunks"] + second["chunks"]}
    manifest = {"regions": [joined, first], "packs": [pack1, pack2], "frames": [], "variables": []}
    found = memory.Memory(str(tmp_path), manifest)
    assert bytes(found.view(0, 0, joined["bytes"])) == one + two
    assert layout.hash_everything(str(tmp_path), {**manifest, "frames": []}) == []


@pytest.mark.parametrize("mapped", [True, False])
def test_views_of_one_region_share_private_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool
) -> None:
    monkeypatch.setattr(memory, "may_map", lambda folder: mapped)
    stored, made = pack(tmp_path, "pack.bin", [b"a" * 5_000_000, b"b" * 100])
    assert stored[0]["chunks"][0]["offset"] % layout.PAGE == 0 and len(stored[0]["chunks"]) == 2
    found = memory.Memory(str(tmp_path), {"regions": stored, "packs": [made]})
    left, right = found.view(0, 10, 100), found.view(0, 50, 100)
    left[45] = ord("z")
    assert right[5] == ord("z") and bytes(found.view(1, 0, 100)) == b"b" * 100
    assert b"z" not in (tmp_path / "pack.bin").read_bytes(), "what is written stays in the process"


def test_network_file_systems_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {tmp_path}/net\\040work nfs4 rw 0 0\n")
    real = open

    def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
        return real(mounts if path == "/proc/self/mounts" else path, *args, **kwargs)

    monkeypatch.setattr("builtins.open", opened)
    (tmp_path / "net work" / "deep").mkdir(parents=True)
    assert memory.may_map(str(tmp_path))
    assert not memory.may_map(str(tmp_path / "net work" / "deep"))


def test_overlapping_buffers_become_one_region() -> None:
    base = bytearray(range(256)) * 400
    view = memoryview(base)
    buffers = regions.Buffers()
    for start, end in ((20_000, 60_000), (0, 30_000), (70_000, 90_000), (25_000, 26_000)):
        buffers.add(view[start:end])
    pieces, places = buffers.regions()
    assert [sum(map(len, region)) for region in pieces] == [60_000, 20_000]
    assert places == [[0, 20_000, 40_000], [0, 0, 30_000], [1, 0, 20_000], [0, 25_000, 1000]]
    assert b"".join(map(bytes, pieces[0])) == bytes(base[:60_000])
    assert regions.used_by(places, 1, 3) == [0, 1]


def test_canonical_json_is_the_same_for_the_same_value() -> None:
    value = {"b": [1, 2.5, None, True], "a": {"ü": "\ud800"}}
    data = layout.canonical_json(value)
    assert data == layout.canonical_json({"a": {"ü": "\ud800"}, "b": [1, 2.5, None, True]})
    assert data.startswith('{"a":{"ü":'.encode()) and json.loads(data)["b"] == [1, 2.5, None, True]
    with pytest.raises(ValueError):
        layout.canonical_json(float("nan"))


def test_private_files_follow_no_links_and_replace_nothing(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(OSError):
        layout.open_private(str(link))
    with pytest.raises(OSError):
        layout.read_file(str(link))
    layout.write_private(str(link), b"new")
    assert target.read_text() == "kept" and link.read_bytes() == b"new" and not link.is_symlink()
    assert link.stat().st_mode & 0o777 == 0o600
