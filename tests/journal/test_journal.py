# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The history works, and whatever is wrong with its file never reaches pause or resume."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jupyter_pause import journal as module
from jupyter_pause.journal import LARGE, Journal

KERNEL = "0b2e1a58-8d4b-4a0f-9d3c-8b1f0a1c2d3e"


def _rows(path: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT kind, code, numbers FROM events ORDER BY id").fetchall()
    finally:
        connection.close()


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_events_come_back_newest_first_with_utc_times(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "sub" / "journal.sqlite")
    before = datetime.now(UTC)
    journal.record("state", kernel_id=KERNEL, operation="ab" * 16, phase="saving", code="pausing")
    journal.record("paused", kernel_id=KERNEL, bytes=12, seconds=0.5)
    assert journal.flush()
    newest, first = journal.recent(10)
    assert (newest.kind, newest.numbers) == ("paused", {"bytes": 12, "seconds": 0.5})
    assert (first.kernel_id, first.operation, first.phase, first.code) == (KERNEL, "ab" * 16, "saving", "pausing")
    assert before.replace(microsecond=0) <= first.at <= datetime.now(UTC)
    assert journal.recent(1) == [newest]
    assert journal.recent(9, kind="state") == [first]
    journal.close()


def test_file_and_folder_are_owner_only_from_creation(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        journal = Journal(tmp_path / "sub" / "journal.sqlite")
        journal.record("note", code="x")
        assert journal.flush()
        journal.close()
    finally:
        os.umask(old)
    assert _mode(journal.path) == 0o600
    assert _mode(journal.path.parent) == 0o700
    assert [p.name for p in journal.path.parent.iterdir()] == ["journal.sqlite"]


def test_no_write_ahead_log(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note")
    journal.close()
    connection = sqlite3.connect(journal.path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def test_what_is_not_an_id_a_word_or_a_number_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record(
        "note",
        kernel_id="/home/someone/secret.ipynb",
        operation="a b",
        code="Bearer 0123456789ABCDEF/+=",
        phase=None,
        bytes=1,
        seconds=float("nan"),
        path="/etc/passwd",  # type: ignore[arg-type]
        nothing=None,
    )
    journal.close()
    (event,) = journal.recent(1)
    assert (event.kernel_id, event.operation, event.code, event.numbers) == (None, None, None, {"bytes": 1})
    content = journal.path.read_bytes()
    assert b"secret" not in content
    assert b"Bearer" not in content
    assert b"passwd" not in content


def test_S39_locked_by_another_program_nothing_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note", code="first")
    assert journal.flush()
    other = sqlite3.connect(journal.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for number in range(50):
        journal.record("note", code="locked", number=number)
    assert not journal.flush(0.2)
    assert journal.recent(5) == []  # a reader gives up too, instead of hanging
    other.execute("COMMIT")
    other.close()
    assert journal.flush(30)
    assert len(journal.recent(100, kind="note")) == 51
    journal.close()


def test_S39_locked_for_good_rows_are_dropped_with_one_log_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOCKED_FOR", 0.0)
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note")
    assert journal.flush()
    other = sqlite3.connect(journal.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            journal.record("note")
            assert journal.flush(30)
    other.execute("COMMIT")
    other.close()
    assert journal.dropped == 3
    assert len(caplog.records) == 1
    assert "locked" in caplog.text
    journal.close()


@pytest.mark.parametrize("content", [b"this is not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(content)
    journal = Journal(path)
    assert journal.recent(5) == []
    assert journal.throughput().pause.samples == 0
    with caplog.at_level(logging.WARNING):
        journal.record("note", code="after")
        assert journal.flush()
    assert [event.code for event in journal.recent(5)] == ["after"]
    (aside,) = tmp_path.glob("journal.sqlite.damaged-*")
    assert aside.read_bytes() == content
    assert len(caplog.records) == 1
    assert "set aside" in caplog.text
    assert _mode(path) == 0o600
    journal.close()


def test_damage_while_it_is_open_is_noticed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    for _ in range(200):
        journal.record("note", code="before")
    assert journal.flush()
    with journal.path.open("r+b") as stream:
        stream.write(b"\xff" * 8192)
    journal.record("note", code="after")
    assert journal.flush()
    assert [event.code for event in journal.recent(500)] == ["after"]
    journal.close()


def test_a_removed_file_comes_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note", code="one")
    assert journal.flush()
    journal.path.unlink()
    journal.record("note", code="two")
    assert journal.flush()
    assert [row[1] for row in _rows(journal.path)] == ["two"]
    journal.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    (tmp_path / "journal.sqlite").symlink_to(target)
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note")
    assert journal.flush()
    assert not target.exists()
    assert journal.dropped == 1
    journal.close()


def test_a_folder_that_cannot_be_made_costs_rows_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    journal = Journal(tmp_path / "file" / "journal.sqlite")
    with caplog.at_level(logging.WARNING):
        journal.record("note")
        journal.record("note")
        assert journal.flush()
    assert journal.dropped == 2
    assert len(caplog.records) == 1
    assert journal.recent(3) == []
    journal.close()


READ_ONLY = """
import logging, os, sys
from pathlib import Path
import sqlite3, encodings.idna
from jupyter_pause.journal import Journal
path = Path(sys.argv[1])
if os.getuid() == 0:
    os.setegid(65534); os.seteuid(65534)  # the superuser is not stopped by any mode
logging.basicConfig(format="LOG %(message)s", stream=sys.stdout)
journal = Journal(path)
print([event.code for event in journal.recent(5)])
for _ in range(3):
    journal.record("note", code="new")
    assert journal.flush(10)
print(journal.dropped)
journal.close()
"""


def test_read_only_file_is_read_and_never_in_the_way(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note", code="old")
    journal.close()
    journal.path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    tmp_path.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(journal.path)], capture_output=True, text=True, timeout=60
        )
    finally:
        tmp_path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    seen, *rest = done.stdout.splitlines()
    assert seen == "['old']"
    assert rest[-1] == "3"
    assert len([line for line in rest if line.startswith("LOG")]) == 1
    assert [row[1] for row in _rows(journal.path)] == ["old"]


def test_record_never_waits_and_the_queue_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, seen = threading.Event(), threading.Event()

    def hang(self: object, events: object) -> None:
        seen.set()
        stuck.wait(60)

    monkeypatch.setattr(module._File, "append", hang)
    monkeypatch.setattr(module, "QUEUE_SIZE", 10)
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note")
    assert seen.wait(30)
    for _ in range(25):
        journal.record("note")
    assert journal.dropped == 15
    began = time.monotonic()
    journal.close(0.2)  # a writer that hangs in a file lock must not keep the server from stopping
    assert time.monotonic() - began < 30
    stuck.set()


def test_throughput_is_measured_from_earlier_pauses(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    nothing = journal.throughput()
    assert nothing.pause.seconds(10) is None
    assert nothing.resume.seconds(10) is None
    for seconds in (1.0, 2.0, 9.0):
        journal.record("paused", bytes=1000, seconds=seconds)
    assert journal.flush()
    small = journal.throughput().pause
    assert small.seconds(5000) == 2.0
    assert small.seconds(LARGE) is None
    journal.record("paused", bytes=200 * LARGE, seconds=22.0)
    journal.record("resumed", bytes=100 * LARGE, seconds=10.0)
    journal.record("resumed", bytes=0, seconds=None)
    journal.close()
    measured = journal.throughput()
    assert measured.pause.seconds(400 * LARGE) == pytest.approx(2 + 40)
    assert measured.resume.seconds(10 * LARGE) == pytest.approx(1.0)
    assert measured.resume.seconds(100) is None, "of large ones alone nobody can tell what a small one costs"
    assert measured.resume.samples == 1


def test_nothing_is_recorded_after_close(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.record("note")
    journal.close()
    journal.record("note")
    assert journal.flush(0)
    assert len(_rows(journal.path)) == 1
