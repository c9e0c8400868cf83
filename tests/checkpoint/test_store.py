# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""The store: commit, verify, list, delete; hostile ids and hostile bytes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_pause.checkpoint import signing
from jupyter_pause.checkpoint.compare import differences_with_interpreter
from jupyter_pause.checkpoint.store import CheckpointError, CheckpointStore
from jupyter_pause.kernel import layout

from .engine import Process, manifest

Start = Callable[..., Process]


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "store")


def put(store: CheckpointStore, process: Process, **request: object) -> str:
    """Capture in a process, commit by the store; returns the id."""
    staging = store.new_staging({"version": 1, "kernel_id": "k", "created": "2026-01-01T00:00:00Z", **request})
    facts = json.loads((staging / "request.json").read_bytes())
    answer = process.ask("save", root=str(store.root), identifier=staging.name, request=facts)
    assert answer["result"]["status"] == "ok", answer
    found = store.commit(staging)
    assert not staging.exists()
    return found.id


def load(process: Process, store: CheckpointStore, identifier: str) -> dict[str, object]:
    secret = layout.read_secret(str(store.secret_file)).hex()
    result: dict[str, object] = process.ask("load", folder=str(store.path(identifier)), secret=secret)
    return result


def code(call: Callable[[], object]) -> str:
    with pytest.raises(CheckpointError) as caught:
        call()
    return caught.value.code


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 1]))


ARRAYS = "import numpy as np; small = [1]; big = np.arange(2_000_000); other = np.arange(1_000_000.); view = big[5:]"


def test_commit_list_and_delete(store: CheckpointStore, start: Start) -> None:
    assert store.entries() == [] and store.list() == []
    process = start().cells(ARRAYS)
    seen: list[tuple[int, int]] = []
    first = put(store, process, path="a.ipynb", created="2026-01-01T00:00:00Z")
    staging = store.new_staging({"created": "2026-01-02T00:00:00Z"})
    process.ask(
        "save",
        root=str(store.root),
        identifier=staging.name,
        request=json.loads((staging / "request.json").read_bytes()),
    )
    second = store.commit(staging, lambda done, total: seen.append((done, total))).id
    assert 0 < seen[-1][0] == seen[-1][1] < 1_000_000, "the arrays lie on the disk already"
    assert [m.id for m in store.list()] == [second, first]
    found = store.manifest(first)
    assert found.path == "a.ipynb" and found.bytes > 24_000_000 and found.kernel_id == "k"
    assert store.verify(first, buffers=True).buffers_checked
    shares = [store.entry(each) for each in (first, second)]
    assert all(entry.signature_ok and entry.damaged is None for entry in shares)
    assert all(12_000_000 <= entry.bytes_on_disk < 13_000_000 for entry in shares), "half of what both share"
    for path in [store.root, *store.root.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    store.delete(first)
    assert [m.id for m in store.list()] == [second] and not list(store.root.glob("trash/*"))
    assert code(lambda: store.manifest(first)) == "not_found" and code(lambda: store.delete(first)) == "not_found"


def test_the_key_is_made_once(tmp_path: Path) -> None:
    keys: list[bytes] = []
    path = tmp_path / "new" / "secret"
    threads = [threading.Thread(target=lambda: keys.append(signing.key(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 1 and len(keys[0]) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["secret"]
    path.write_text("zz")
    with pytest.raises(ValueError):
        signing.key(path)


def test_a_flipped_byte_in_a_frame_is_found_before_loading(store: CheckpointStore, start: Start) -> None:
    process = start().cells(ARRAYS)
    identifier = put(store, process)
    frames = store.path(identifier) / "frames.bin"
    for offset in (0, frames.stat().st_size // 2, frames.stat().st_size - 1):
        flip(frames, offset)
        assert code(lambda: store.verify(identifier, buffers=False)) == "damaged"
        new = start()
        result = load(new, store, identifier)
        assert (result["status"], result["code"], result["outcome"]) == ("failed", "damaged", "fresh")
        new.true("'small' not in globals()")
        flip(frames, offset)
    assert store.verify(identifier, buffers=True)


def test_a_flipped_byte_in_a_buffer_names_the_variables(store: CheckpointStore, start: Start) -> None:
    identifier = put(store, start().cells(ARRAYS))
    folder = store.path(identifier)
    found = manifest(folder)
    region = next(v["regions"][0] for v in found["variables"] if v["name"] == "big")
    chunk = found["regions"][region]["chunks"][1]
    flip(folder / "pack.bin", chunk["offset"] + 100)
    assert store.verify(identifier, buffers=False)
    with pytest.raises(CheckpointError) as caught:
        store.verify(identifier, buffers=True)
    assert caught.value.code == "damaged" and caught.value.params["variables"] == ["big"]


def test_a_flipped_byte_between_capture_and_commit_is_found(store: CheckpointStore, start: Start) -> None:
    process = start().cells(ARRAYS)
    staging = store.new_staging({"created": "2026-01-01T00:00:00Z"})
    process.ask("save", root=str(store.root), identifier=staging.name)
    flip(staging / "pack.bin", 5000)
    assert code(lambda: store.commit(staging)) == "damaged"
    assert store.entries() == [] and staging.exists()
    assert code(lambda: store.commit(staging, None, lambda: True)) == "cancelled"
    store.discard_staging(staging)
    assert not staging.exists()
    process.true("small == [1]")


def test_S29_the_older_checkpoint_stays_when_the_newest_is_damaged(store: CheckpointStore, start: Start) -> None:
    process = start().cells("x = 'old'")
    old = put(store, process, created="2026-01-01T00:00:00Z")
    new = put(store, process.cells("x = 'new'"), created="2026-01-02T00:00:00Z")
    path = store.path(new) / "frames.bin"
    flip(path, path.stat().st_size - 1)
    assert load(start(), store, new)["code"] == "damaged"
    back = start()
    assert load(back, store, old)["outcome"] == "restored"
    assert back.value("x") == "old"
    assert [m.id for m in store.list()] == [new, old], (
        "it is listed with its time; what is damaged is said when verified"
    )


def test_S49_a_payload_replaced_by_code_is_never_run(store: CheckpointStore, start: Start, tmp_path: Path) -> None:
    identifier = put(store, start().cells("x = 1"))
    folder, marker = store.path(identifier), tmp_path / "marker"
    evil = b"cos\nsystem\n(Vtouch " + str(marker).encode() + b"\ntR."
    kept = (folder / "frames.bin").read_bytes(), (folder / "manifest.json").read_bytes()

    def attempt(expected: str) -> None:
        assert code(lambda: store.verify(identifier, buffers=True)) == expected
        new = start()
        assert load(new, store, identifier)["code"] == expected
        new.true("'x' not in globals()")
        assert not marker.exists()

    (folder / "frames.bin").write_bytes(evil)
    attempt("damaged")
    (folder / "frames.bin").write_bytes((evil + bytes(len(kept[0])))[: len(kept[0])])
    attempt("damaged")
    found = json.loads(kept[1])
    import hashlib

    found["frames"] = [{"offset": 0, "stored": len(evil), "bytes": len(evil), "encoding": "plain",
                        "sha256": hashlib.sha256(evil).hexdigest()}]  # fmt: skip
    (folder / "frames.bin").write_bytes(evil)
    (folder / "manifest.json").write_bytes(layout.canonical_json(found))
    attempt("signature_mismatch")
    (folder / "manifest.sig").write_text(layout.sign(layout.canonical_json(found), b"a key of somebody else"))
    attempt("signature_mismatch")
    (folder / "manifest.sig").unlink()
    attempt("incomplete")
    assert store.entry(identifier).damaged == "incomplete" and store.list() == []


@pytest.mark.parametrize(
    "bad",
    ["../../etc", "%2e%2e%2f", "/etc/passwd", "", "\0", "a" * 31 + "\0", "a" * 300, "A" * 32, "g" * 32, "a" * 32 + "\n", "a" * 33, "..",
     "a" * 31 + "/"],
)  # fmt: skip
def test_S50_hostile_ids_never_become_paths(store: CheckpointStore, tmp_path: Path, bad: str) -> None:
    (tmp_path / "etc").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for call in (store.path, store.manifest, store.delete, store.entry, lambda i: store.verify(i, buffers=True)):
        assert code(lambda call=call: call(bad)) == "bad_id"  # type: ignore[misc]
    assert sorted(tmp_path.rglob("*")) == before


def test_S50_links_and_foreign_inner_ids_are_refused(store: CheckpointStore, start: Start, tmp_path: Path) -> None:
    process = start().cells("x = 1")
    identifier = put(store, process)
    outside = tmp_path / "outside"
    shutil.copytree(store.path(identifier), outside)
    link = store.path("b" * 32)
    link.symlink_to(outside)
    for call in (store.manifest, store.delete, store.entry, lambda i: store.verify(i, buffers=True)):
        assert code(lambda call=call: call("b" * 32)) == "bad_id"  # type: ignore[misc]
    assert (outside / "manifest.json").exists() and [m.id for m in store.list()] == [identifier]
    link.unlink()
    shutil.copytree(outside, store.path("c" * 32))
    assert code(lambda: store.manifest("c" * 32)) == "damaged", "its manifest names another id"
    assert load(start(), store, "c" * 32)["code"] == "damaged"
    inner = store.path(identifier) / "frames.bin"
    inner.rename(tmp_path / "frames.bin")
    inner.symlink_to(tmp_path / "frames.bin")
    assert code(lambda: store.verify(identifier, buffers=False)) == "damaged"
    staging = store.new_staging({})
    process.ask("save", root=str(store.root), identifier=staging.name, request={"checkpoint_id": "../../evil"})
    assert code(lambda: store.commit(staging)) == "damaged"


def test_an_unknown_format_is_said(store: CheckpointStore, start: Start) -> None:
    identifier = put(store, start().cells("x = 1"))
    folder = store.path(identifier)
    found = manifest(folder)
    found["format"] = 2
    data = layout.canonical_json(found)
    (folder / "manifest.json").write_bytes(data)
    (folder / "manifest.sig").write_text(layout.sign(data, layout.read_secret(str(store.secret_file))))
    assert code(lambda: store.manifest(identifier)) == "unsupported_format"
    assert load(start(), store, identifier)["code"] == "unsupported_format"


def test_who_still_writes_into_a_staging_folder_that_is_thrown_away_finds_nothing(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel goes on for a while after its server was killed; a file that it makes must not keep the folder."""
    staging = store.new_staging({})
    (staging / "pack.bin").write_bytes(b"x")
    refused: list[str] = []
    real = shutil.rmtree

    def rmtree(path: str, **options: bool) -> None:
        try:
            (staging / "progress.json").write_text("{}")
        except FileNotFoundError:
            refused.append("progress.json")
        real(path, **options)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    store.discard_staging(staging)
    assert refused == ["progress.json"] and not staging.exists()
    assert not any((store.root / "trash").iterdir())


def test_the_writer_killed_half_way_leaves_nothing_valid(store: CheckpointStore, start: Start) -> None:
    """S02, second run: the writer dies at about half of its bytes."""
    process = start().cells("import numpy as np; big = np.random.default_rng(1).random(60_000_000)")
    staging = store.new_staging({})
    process.send("save", root=str(store.root), identifier=staging.name)
    pack = staging / "pack.bin"
    while not (pack.exists() and pack.stat().st_size > 20_000_000):
        assert not (staging / "manifest.json").exists(), "it was too quick to be killed"
    process.kill()
    assert code(lambda: store.commit(staging)) == "incomplete"
    assert store.entries() == [] and store.list() == []
    store.discard_staging(staging)
    assert list((store.root / "staging").iterdir()) == []


def test_leftovers_of_a_dead_server_are_cleaned_those_of_a_live_one_stay(store: CheckpointStore) -> None:
    make = (
        "import sys; from pathlib import Path; from jupyter_pause.checkpoint.store import CheckpointStore\n"
        "print(CheckpointStore(Path(sys.argv[1])).new_staging({}), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", make, str(store.root)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdin is not None
    theirs, ours = Path(other.stdout.readline().strip()), store.new_staging({})
    store.clean()
    assert theirs.exists() and ours.exists()
    other.kill()
    other.wait()
    other.stdout.close()
    other.stdin.close()
    (theirs / "frames.bin").write_bytes(b"half")
    (store.root / "trash" / "x").mkdir(parents=True)
    store.clean()
    assert not theirs.exists() and ours.exists() and not (store.root / "trash" / "x").exists()


def test_cancel_leaves_nothing_behind(store: CheckpointStore, start: Start) -> None:
    process = start().cells(ARRAYS)
    staging = store.new_staging({})
    for after in (1, 3, 5, 7):
        answer = process.ask("save", root=str(store.root), identifier=staging.name, cancel_after=after)
        assert answer["result"]["status"] == "cancelled" and answer["left"] == ["request.json"]
    store.request_cancel(staging)
    assert (staging / "cancel").exists()
    answer = process.ask("save", root=str(store.root), identifier=staging.name)
    assert answer["result"]["status"] == "ok", "the cancel file is the caller's to look at"
    process.true("small == [1] and int(big[9]) == 9")


def test_a_full_disk_is_no_space_and_leaves_nothing(store: CheckpointStore, start: Start) -> None:
    process = start().cells(ARRAYS, "text = [str(i) for i in range(2_000_000)]")
    staging = store.new_staging({})
    process.ask("rlimit", bytes_=3_000_000)
    answer = process.ask("save", root=str(store.root), identifier=staging.name)
    assert (answer["result"]["status"], answer["result"]["code"]) == ("failed", "no_space")
    assert answer["left"] == ["request.json"]
    process.cells("del text")
    answer = process.ask("save", root=str(store.root), identifier=staging.name)
    assert (answer["result"]["status"], answer["result"]["code"]) == ("failed", "no_space")
    assert answer["left"] == ["request.json"] and answer["result"]["message"]
    process.true("int(big[1_999_999]) == 1_999_999")


def test_a_small_file_system_is_refused_before_writing(start: Start, tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("mounting a small file system needs root; the limit on file sizes is tested above")
    try:
        store = CheckpointStore(mount / "store")
        process = start().cells(ARRAYS)
        staging = store.new_staging({})
        answer = process.ask("save", root=str(store.root), identifier=staging.name)
        assert (answer["result"]["status"], answer["result"]["code"]) == ("failed", "no_space")
        assert answer["left"] == ["request.json"]
        (mount / "fill").write_bytes(bytes(shutil.disk_usage(mount).free))
        assert code(lambda: store.new_staging({})) == "no_space"
        process.end()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_an_unwritable_place_is_said(store: CheckpointStore, start: Start) -> None:
    process = start().cells("x = 1")
    _, answer = process.capture()
    assert answer["result"]["status"] == "ok"
    store.root.mkdir(exist_ok=True)
    shutil.rmtree(store.root / "staging")
    (store.root / "staging").write_text("a file where a folder should be")
    assert code(lambda: store.new_staging({})) == "unwritable"


async def test_S05_other_versions_are_named_before_anything_is_loaded(store: CheckpointStore, start: Start) -> None:
    identifier = await asyncio.to_thread(
        lambda: put(store, start().cells("import numpy as np; x = np.arange(5); y = [1]"))
    )
    found = await asyncio.to_thread(store.manifest, identifier)
    assert set(found.packages) == {"numpy"}
    assert await differences_with_interpreter(found, [sys.executable]) == []
    edited = found.model_copy(deep=True)
    edited.packages["numpy"] = "1.0"
    edited.packages["nowhere_to_be_found"] = "3"
    edited.python["version"] = "3.8.1"
    current = manifest_numpy()
    assert await differences_with_interpreter(edited, [sys.executable]) == [
        {"name": "python", "saved": "3.8", "current": f"{sys.version_info[0]}.{sys.version_info[1]}"},
        {"name": "nowhere_to_be_found", "saved": "3", "current": None},
        {"name": "numpy", "saved": "1.0", "current": current},
    ]
    assert await differences_with_interpreter(found, ["/nonexistent/python"]) == [
        {"name": "python", "saved": found.python["version"], "current": None}
    ]
    assert store.path(identifier).is_dir()


def manifest_numpy() -> str:
    from importlib import metadata

    return metadata.version("numpy")
