# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A second pause writes what changed and shares the rest; whatever is killed or deleted, a checkpoint has its bytes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_pause.checkpoint.store import CheckpointError, CheckpointStore
from jupyter_pause.kernel import layout, mappings

from .engine import Process, manifest

Start = Callable[..., Process]
CHUNK = layout.CHUNK
#: Eight chunks and a bit, and something small.
BIG = (
    f"import numpy as np; big = np.random.default_rng(5).integers(0, 255, {8 * CHUNK + 5000}, dtype='u1'); note = 'one'"
)
CHANGE = f"big[{3 * CHUNK}:{3 * CHUNK + 10}] += 1; note = 'two'; total = int(big.sum())"


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "store")


def capture(store: CheckpointStore, process: Process) -> Path:
    staging = store.new_staging({"kernel_id": "k", "created": "2026-01-01T00:00:00Z"})
    request = json.loads((staging / "request.json").read_bytes())
    answer = process.ask("save", root=str(store.root), identifier=staging.name, request=request)
    assert answer["result"]["status"] == "ok", answer
    return staging


def pause(store: CheckpointStore, process: Process) -> str:
    return store.commit(capture(store, process)).id


def resume(store: CheckpointStore, process: Process, identifier: str) -> Process:
    secret = layout.read_secret(str(store.secret_file)).hex()
    result = process.ask("load", folder=str(store.path(identifier)), secret=secret)
    assert result["outcome"] == "restored", result
    return process


def own_bytes(store: CheckpointStore, identifier: str) -> int:
    return (store.path(identifier) / "pack.bin").stat().st_size


def read_by(store: CheckpointStore, staging: Path) -> int:
    """Bytes that a commit reads back."""
    seen: list[int] = []
    store.commit(staging, lambda done, total: seen.append(total))
    return seen[-1]


@pytest.mark.parametrize("resumed", [True, False])
def test_the_second_pause_writes_only_the_chunk_that_changed(
    store: CheckpointStore, start: Start, resumed: bool
) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    if resumed:
        process = resume(store, start(), first)
    process.cells(CHANGE)
    second = pause(store, process)
    assert own_bytes(store, second) == CHUNK
    found = manifest(store.path(second))
    assert [pack["file"] for pack in found["packs"]] == ["pack.bin", f"pack-{first}.bin"]
    assert found["packs"][1]["read_back"] == manifest(store.path(first))["created"]
    assert found["bytes"] > 8 * CHUNK > found["written"]
    assert store.verify(second, buffers=True)
    third = resume(store, start(), second)
    third.true("int(big.sum()) == total", "note == 'two'")
    fourth = pause(store, third.cells("big[-1] ^= 1; total = int(big.sum())"))
    assert own_bytes(store, fourth) < CHUNK, "of two packs, only the end was written anew"
    resume(store, start(), fourth).true("int(big.sum()) == total")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages were written")
def test_mapped_memory_that_was_not_written_is_not_even_hashed(store: CheckpointStore, start: Start) -> None:
    process = resume(store, start(), pause(store, start().cells(BIG)))
    process.cells(CHANGE)
    process.ask("count_hashes")
    staging = capture(store, process)
    assert process.ask("counted_hashes") == [CHUNK]
    assert len(manifest(staging)["regions"][0]["chunks"]) == 9


def test_unwritten_pages_are_told_from_written_ones_byte_for_byte(tmp_path: Path) -> None:
    if not mappings.Mappings({}).unwritten(0, 1) and not Path("/proc/self/pagemap").exists():
        pytest.skip("the system does not tell which pages were written")
    import ctypes
    import mmap

    path = tmp_path / "file"
    path.write_bytes(bytes(64 * mmap.PAGESIZE))
    with path.open("rb") as stream:
        memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    status = path.stat()
    found = mappings.Mappings({(status.st_dev, status.st_ino): 7})
    page = mmap.PAGESIZE
    assert found.unwritten(address, 64 * page) == (7, 0)
    assert memory[10 * page] == 0, "reading does not count"
    assert found.unwritten(address + 5 * page, 20 * page) == (7, 5 * page)
    memory[20 * page + 17] = 0
    assert found.unwritten(address, 64 * page) is None, "writing does, also the same byte"
    assert found.unwritten(address, 20 * page) == (7, 0)
    assert found.unwritten(address + 20 * page + 100, 1) is None
    assert found.unwritten(address + 21 * page, 43 * page) == (7, 21 * page)
    assert found.unwritten(address + 21 * page, 44 * page) is None, "goes on behind the mapping"
    other = mmap.mmap(-1, page)
    assert found.unwritten(ctypes.addressof(ctypes.c_char.from_buffer(other)), page) is None
    found.close()


def test_the_older_checkpoint_may_be_deleted_whenever(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    process.cells(CHANGE)
    staging = capture(store, process)
    store.delete(first)  # between capture and commit: its manifest and pack are held by their second names
    second = store.commit(staging).id
    assert store.verify(second, buffers=True) and [m.id for m in store.list()] == [second]
    resume(store, start(), second).true("int(big.sum()) == total")
    process.cells("big[0] ^= 1; total = int(big.sum())")
    third = pause(store, process)
    store.delete(second)
    new = resume(store, start(), third)
    store.delete(third)
    new.true("int(big.sum()) == total")
    fourth = pause(store, new)
    assert own_bytes(store, fourth) > 8 * CHUNK, "nothing is left that could be shared"
    resume(store, start(), fourth).true("int(big.sum()) == total")
    assert not any(store.root.glob("trash/*"))


def test_deleting_the_last_user_of_a_pack_frees_its_bytes(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    pack = store.path(first) / "pack.bin"
    second = pause(store, process.cells(CHANGE))
    shared = store.path(second) / f"pack-{first}.bin"
    assert shared.stat().st_nlink == 2 and shared.samefile(pack)
    sizes = [store.entry(each).bytes_on_disk for each in (first, second)]
    assert 8 * CHUNK < sum(sizes) < 10 * CHUNK, "shared bytes count once"
    store.delete(first)
    assert shared.stat().st_nlink == 1 and store.entry(second).bytes_on_disk > 8 * CHUNK


#: Calls after which a capture or a commit is killed, each time at its first, second, ... use.
STEPS = ("link", "fsync", "unlink", "replace", "rename")


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_each_checkpoint_that_exists_is_whole(
    store: CheckpointStore, start: Start, step: str
) -> None:
    """The process that captures, commits and deletes dies before its n-th link, sync, unlink or rename, for every n."""
    first = pause(store, start().cells(BIG))
    secret = layout.read_secret(str(store.secret_file)).hex()
    for number in range(1, 40):
        process = resume(store, start(), first)
        process.cells(CHANGE)
        identifier = f"{number:032x}"
        process.ask("die_before", function=step, number=number)
        try:
            process.ask("save", root=str(store.root), identifier=identifier)
            process.ask("commit", root=str(store.root), identifier=identifier, secret=secret)
            done = True
        except AssertionError:
            done = False
        for found in store.entries():
            assert found.damaged is None, (step, number, found)
            assert store.verify(found.id, buffers=True)
        assert first in {found.id for found in store.entries()}
        for left in store.root.glob("staging/*"):
            store.discard_staging(left)
        if done:
            store.delete(first)
            resume(store, start(), identifier).true("int(big.sum()) == total")
            assert number > 1, "nothing was killed"
            return
    raise AssertionError("it never came to its end")


def test_two_servers_pause_and_delete_over_one_folder(store: CheckpointStore, start: Start, tmp_path: Path) -> None:
    other = CheckpointStore(store.root)
    process = start().cells(BIG)
    first = pause(store, process)
    left, right = resume(store, start(), first), resume(other, start(), first)
    left.cells("big[0] += 1; total = int(big.sum())")
    right.cells("big[-1] += 1; total = int(big.sum())")
    one, two = capture(store, left), capture(other, right)
    other.delete(first)
    for found, identifier in ((store, store.commit(one).id), (other, other.commit(two).id)):
        assert found.verify(identifier, buffers=True) and own_bytes(found, identifier) <= CHUNK + 16384
        resume(found, start(), identifier).true("int(big.sum()) == total")


# --- what counts as checked ----------------------------------------------------------------------------------------


def test_what_this_pause_wrote_is_read_back_and_what_an_earlier_one_read_back_is_not(
    store: CheckpointStore, start: Start
) -> None:
    process = start().cells(BIG)
    assert read_by(store, capture(store, process)) > 8 * CHUNK
    staging = capture(store, process.cells(CHANGE))
    assert CHUNK < read_by(store, staging) < CHUNK + 100_000


def spoil_signature(store: CheckpointStore, staging: Path, first: str) -> None:
    path = staging / "base-manifest.sig"
    path.unlink()
    path.write_text("0" * 64)


def spoil_manifest(store: CheckpointStore, staging: Path, first: str) -> None:
    path = staging / "base-manifest.json"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data.replace(b'"path":""', b'"path":"x"'))


def take_base_away(store: CheckpointStore, staging: Path, first: str) -> None:
    (staging / "base-manifest.json").unlink()


def touch_pack(store: CheckpointStore, staging: Path, first: str) -> None:
    os.utime(staging / f"pack-{first}.bin")


@pytest.mark.parametrize("spoil", [spoil_signature, spoil_manifest, take_base_away, touch_pack])
def test_without_proof_of_the_earlier_reading_everything_is_read(
    store: CheckpointStore, start: Start, spoil: Callable[..., None]
) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    staging = capture(store, process.cells(CHANGE))
    spoil(store, staging, first)
    assert read_by(store, staging) > 8 * CHUNK


def test_a_shared_chunk_that_the_earlier_checkpoint_does_not_have_is_read(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    pause(store, process)
    staging = capture(store, process.cells(CHANGE))
    found = manifest(staging)
    chunks = found["regions"][0]["chunks"]
    chunks[0]["offset"], chunks[1]["offset"] = chunks[1]["offset"], chunks[0]["offset"]
    (staging / "manifest.json").write_bytes(layout.canonical_json(found))
    with pytest.raises(CheckpointError) as caught:
        store.commit(staging)
    assert caught.value.code == "damaged"


def flip(path: Path, offset: int) -> None:
    status = path.stat()
    with path.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # a disk that forgets changes no times


def test_damage_in_a_shared_pack_is_found_named_and_not_shared_again(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    second = pause(store, process.cells(CHANGE))
    flip(store.path(first) / "pack.bin", 100)
    with pytest.raises(CheckpointError) as caught:
        store.verify(second, buffers=True)
    assert caught.value.params["variables"] == ["big"]
    third = pause(store, process)
    assert own_bytes(store, third) > 8 * CHUNK and store.verify(third, buffers=True)


def test_a_pack_written_to_since_is_not_shared(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    os.utime(store.path(first) / "pack.bin")
    second = pause(store, process.cells(CHANGE))
    assert own_bytes(store, second) > 8 * CHUNK and len(manifest(store.path(second))["packs"]) == 1


def test_without_hard_links_everything_is_written(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    pause(store, process)
    process.ask("die_before", function="link", number=1, error="EPERM")
    second = pause(store, process.cells(CHANGE))
    assert own_bytes(store, second) > 8 * CHUNK
    assert sorted(path.name for path in store.path(second).iterdir()) == sorted(
        ["manifest.json", "manifest.sig", "frames.bin", "pack.bin"]
    )


# --- housekeeping --------------------------------------------------------------------------------------------------


def test_a_pack_of_which_little_is_used_is_written_anew_so_that_it_can_go(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    process.cells(f"big = big[: 3 * {CHUNK}].copy()")
    second = pause(store, process)
    assert own_bytes(store, second) == 0, "for once the old pack is kept: nothing had to be written"
    third = pause(store, process.cells("note = 'three'"))
    assert own_bytes(store, third) == 3 * CHUNK
    assert [pack["file"] for pack in manifest(store.path(third))["packs"]] == ["pack.bin"]
    for old in (first, second):
        store.delete(old)
    resume(store, start(), third).true(f"len(big) == 3 * {CHUNK}")


def test_equal_chunks_are_written_once(store: CheckpointStore, start: Start) -> None:
    process = start().cells(
        f"import numpy as np; zeros = np.zeros({20 * CHUNK}, 'u1'); ones = np.ones({5 * CHUNK}, 'u1')"
    )
    first = pause(store, process)
    assert own_bytes(store, first) == 2 * CHUNK
    new = resume(store, start(), first)
    new.cells(f"zeros[{7 * CHUNK}] = 9")
    new.true("int(zeros.sum()) == 9", f"int(ones.sum()) == {5 * CHUNK}")


def test_a_cancelled_capture_leaves_no_link(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    staging = store.new_staging({})
    answer = process.ask("save", root=str(store.root), identifier=staging.name, cancel_after=2)
    assert answer["result"]["status"] == "cancelled" and answer["left"] == ["request.json"]
    assert (store.path(first) / "pack.bin").stat().st_nlink == 1


def test_a_full_disk_leaves_no_link(store: CheckpointStore, start: Start) -> None:
    process = start().cells(BIG)
    first = pause(store, process)
    process.cells(f"more = np.random.default_rng(6).integers(0, 255, {4 * CHUNK}, dtype='u1')")
    process.ask("rlimit", bytes_=CHUNK)
    staging = store.new_staging({})
    answer = process.ask("save", root=str(store.root), identifier=staging.name)
    assert answer["result"]["code"] == "no_space" and answer["left"] == ["request.json"]
    assert (store.path(first) / "pack.bin").stat().st_nlink == 1
