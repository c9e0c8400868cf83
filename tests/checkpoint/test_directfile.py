# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Files written past the cache: any sizes in any order, and file systems that refuse it, at once or later."""

from __future__ import annotations

import errno
import os
import random
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_pause.kernel import directfile, layout, memory, readback
from jupyter_pause.kernel.directfile import BUFFER, SECTOR, DirectFile, aligned

SIZES = st.one_of(st.integers(0, 5000), st.sampled_from([SECTOR, BUFFER - 1, BUFFER, BUFFER + 1]))


def write(path: Path, parts: list[tuple[int, bool]]) -> bytes:
    """Append parts of these sizes, whole sectors in place where the flag says so; returns what must be in the file."""
    file, wanted, numbers = DirectFile(str(path)), bytearray(), random.Random(3)
    for size, in_place in parts:
        data = numbers.randbytes(size)
        if in_place and size:
            block = memoryview(aligned(-(-size // SECTOR) * SECTOR))
            block[:size] = data
            file.append_blocks([block, block])
            wanted += bytes(block) * 2
        else:
            file.append(data)
            wanted += data
        if size % 3 == 0:
            file.pad(layout.PAGE)
            wanted += bytes(-len(wanted) % layout.PAGE)
    assert file.size == len(wanted)
    assert file.finish().st_size == len(wanted)
    file.close()
    return bytes(wanted)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(SIZES, st.booleans()), max_size=8))
def test_what_is_appended_is_what_is_in_the_file(parts: list[tuple[int, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        wanted = write(path, parts)
        assert path.read_bytes() == wanted
        assert path.stat().st_mode & 0o777 == 0o600


PARTS = [(100, False), (BUFFER, True), (7, False), (2 * BUFFER, False), (SECTOR, True), (1, False)]


def test_a_file_system_without_direct_files_is_written_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refusing(path: Any, flags: int, *more: Any) -> int:
        if flags & directfile.DIRECT:
            raise OSError(errno.EINVAL, "no direct files here")
        return real(path, flags, *more)

    monkeypatch.setattr("os.open", refusing)
    wanted = write(tmp_path / "file", PARTS)
    assert (tmp_path / "file").read_bytes() == wanted


@pytest.mark.skipif(not directfile.DIRECT, reason="the system has no direct files")
@pytest.mark.parametrize("good", [0, 1, 2, 3])
def test_one_that_refuses_a_later_write_goes_on_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: int
) -> None:
    """The first `good` direct writes work, then every one is refused until the flag is taken off."""
    import fcntl

    left = [good]

    def refuse(real: Any) -> Any:
        def call(descriptor: int, data: Any) -> int:
            if fcntl.fcntl(descriptor, fcntl.F_GETFL) & directfile.DIRECT:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(errno.EINVAL, "not this one")
            return int(real(descriptor, data))

        return call

    monkeypatch.setattr("os.write", refuse(os.write))
    monkeypatch.setattr("os.writev", refuse(os.writev))
    wanted = write(tmp_path / "file", PARTS)
    assert (tmp_path / "file").read_bytes() == wanted
    assert left[0] < 0


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.sampled_from([1, 70, 20_000, 1 << 20, 3 << 20, layout.CHUNK, (9 << 20) + 5]), max_size=7))
@pytest.mark.parametrize("mapped", [True, False])
def test_regions_of_any_sizes_come_back(mapped: bool, sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        numbers = random.Random(4)
        data = [numbers.randbytes(size) for size in sizes]
        writer = layout.PackWriter(str(folder / "pack.bin"))
        stored = [writer.region([memoryview(each)], lambda count: None) for each in data]
        manifest: dict[str, Any] = {"regions": stored, "packs": writer.close(True), "frames": [], "variables": []}
        layout.write_private(str(folder / layout.FRAMES), b"")
        layout.check_sizes(name, manifest)
        for from_disk in (True, False):
            assert layout.hash_everything(name, manifest, from_disk=from_disk) == []
        if not mapped:
            patch.setattr(memory, "may_map", lambda folder: False)
        found = memory.Memory(name, manifest)
        assert [bytes(found.view(number, 0, size)) for number, size in enumerate(sizes)] == data
        found.ready()


def test_reading_back_goes_through_the_cache_where_direct_reads_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = layout.PackWriter(str(tmp_path / "pack.bin"))
    stored = [writer.region([memoryview(bytes([n]) * 5_000_000)], lambda count: None) for n in range(3)]
    manifest = {"regions": stored, "packs": writer.close(True), "frames": [], "variables": []}
    real = os.preadv
    refused: list[int] = []
    both = threading.Barrier(2)
    changed_over = threading.Event()

    def refusing(descriptor: int, buffers: Any, offset: int) -> int:
        import fcntl

        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & readback.DIRECT:
            refused.append(offset)
            if both.wait(60):  # two readers are refused at once; one learns of it when the other has changed over
                assert changed_over.wait(60)
            raise OSError(errno.EINVAL, "not here")
        changed_over.set()  # the other one reads on past its change
        return real(descriptor, buffers, offset)

    monkeypatch.setattr("os.preadv", refusing)
    monkeypatch.setattr(readback, "READERS", 2)
    assert layout.hash_everything(str(tmp_path), manifest, from_disk=True) == []
    assert bool(refused) == bool(readback.DIRECT)
    changed_over.clear()
    with (tmp_path / "pack.bin").open("r+b") as stream:
        stream.seek(stored[1]["chunks"][1]["offset"] + 5)
        stream.write(b"x")
    assert layout.hash_everything(str(tmp_path), manifest, from_disk=True) == [1]
