# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Whether snapshots can be had is found out by doing it, once, in the background; each "no" has its sentence."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import struct
from functools import partial
from pathlib import Path

import psutil
import pytest

from jupyter_pause.snapshot import selftest
from jupyter_pause.snapshot.availability import Availability, Mode
from jupyter_pause.snapshot.criu import Criu, find, run
from jupyter_pause.snapshot.rights import CAPABILITIES, rights_of
from jupyter_pause.snapshot.sentences import SNAPSHOT_SENTENCES
from jupyter_pause.states import Reason
from tests.waiting import until


class Clock:
    """Seconds since the epoch, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fake(folder: Path, script: str, version: str = "4.2.1") -> Path:
    """A criu that does what `script` says (dump and restore arrive as $1)."""
    program = folder / "criu"
    program.write_text(f'#!/bin/sh\ncase $1 in --version) echo "Version: {version}"; exit 0 ;; esac\n{script}\n')
    program.chmod(0o700)
    return program


def availability(
    folder: Path, program: Path | str, clock: Clock, mode: Mode = "auto", **options: object
) -> Availability:
    """One over a cache in `folder`."""
    log = logging.getLogger("test")
    return Availability(
        mode=mode,
        configured=str(program),
        cache=folder / "criu.json",
        now=clock,
        log=log,
        **options,  # type: ignore[arg-type]
    )


async def test_a_real_criu_is_found_tested_and_remembered(criu: Path, tmp_path: Path) -> None:
    tests = 0

    async def counted(program: Criu) -> Reason | None:
        nonlocal tests
        tests += 1
        return await selftest.self_test(program)

    first = availability(tmp_path, criu, Clock(), test=counted)
    assert not first.verdict().known
    verdict = await first.wait()
    assert verdict.reason is None
    assert verdict.criu is not None
    assert verdict.criu.program == criu
    assert first.verdict() == verdict
    assert (tmp_path / "criu.json").stat().st_mode & 0o777 == 0o600

    again = await availability(tmp_path, criu, Clock(), test=counted).wait()
    assert again.reason is None
    assert tests == 1


async def test_a_failure_is_tried_again_after_a_day_and_after_a_change(tmp_path: Path) -> None:
    clock = Clock()
    program = fake(tmp_path, "exit 1")
    seen: list[str] = []

    async def failing(criu: Criu) -> Reason | None:
        seen.append(str(criu.program))
        return Reason(code="criu_dump_failed", message="no")

    for _ in range(2):
        verdict = await availability(tmp_path, program, clock, test=failing).wait()
        assert verdict.criu is None
        assert verdict.reason is not None
        assert verdict.reason.code == "criu_dump_failed"
    assert len(seen) == 1
    clock.now += 25 * 3600
    await availability(tmp_path, program, clock, test=failing).wait()
    assert len(seen) == 2
    fake(tmp_path, "exit 2 # another program")
    await availability(tmp_path, program, clock, test=failing).wait()
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("script", "version", "code"),
    [
        ("exit 0", "4.2.1", "criu_restore_failed"),
        ("echo no >&2; exit 1", "4.2.1", "criu_dump_failed"),
        ("echo no >&2; exit 1", "3.17.1", "criu_too_old"),
        ("case $1 in restore) exit 1 ;; esac", "4.2.1", "criu_restore_failed"),
        ("exec sleep 600", "4.2.1", "criu_dump_hung"),
        ("case $1 in restore) exec sleep 600 ;; esac", "4.2.1", "criu_restore_hung"),
    ],
)
async def test_each_way_of_failing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, version: str, code: str
) -> None:
    monkeypatch.setattr(selftest, "_rights", lambda criu: None)
    why = await selftest.self_test(Criu(fake(tmp_path, script, version)), limit=2.0)
    assert why is not None
    expected = "criu_test_failed" if script == "exit 0" else code
    assert why.code == expected
    assert why.message


async def test_without_criu_it_is_absent_and_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_pause.snapshot.criu.shutil.which", lambda name, path=None: None)
    for configured, code in (("", "criu_absent"), (str(tmp_path / "nothing"), "criu_not_there")):
        verdict = await availability(tmp_path, configured, Clock()).wait()
        assert verdict.reason is not None
        assert verdict.reason.code == code
        assert not (tmp_path / "criu.json").exists()
    assert find(str(tmp_path / "nothing")) is None


def test_switched_off_looks_for_nothing(tmp_path: Path) -> None:
    verdict = availability(tmp_path, "", Clock(), mode="off").verdict()  # no event loop is needed
    assert verdict.known
    assert verdict.reason is not None
    assert verdict.reason.code == "snapshots_off"


async def test_missing_capabilities_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, "exit 1")
    monkeypatch.setattr("jupyter_pause.snapshot.rights.os.geteuid", lambda: 12345)
    cut = "0000000000000000"
    monkeypatch.setattr(
        "jupyter_pause.snapshot.rights._status",
        lambda: {"CapEff": cut, "CapBnd": "000001fffeffffff", "NoNewPrivs": "0"},
    )
    assert set(rights_of(program).missing) == set(CAPABILITIES)
    why = await selftest.self_test(Criu(program))
    assert why is not None
    assert why.code == "criu_missing_capabilities"
    assert "cap_checkpoint_restore" in why.message
    assert "setcap" in why.message


@pytest.mark.skipif(os.geteuid() != 0, reason="setting a file's capabilities needs root")
async def test_capabilities_of_the_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, "exit 1")
    low, high = 1 << CAPABILITIES["cap_sys_ptrace"], 1 << (CAPABILITIES["cap_checkpoint_restore"] - 32)
    # What `setcap cap_checkpoint_restore,cap_sys_ptrace+ep` writes (capabilities(7), VFS_CAP_REVISION_2).
    os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, low, 0, high, 0))
    monkeypatch.setattr("jupyter_pause.snapshot.rights.os.geteuid", lambda: 12345)
    status = {"CapEff": "0", "CapBnd": "000001fffeffffff", "NoNewPrivs": "0"}
    monkeypatch.setattr("jupyter_pause.snapshot.rights._status", lambda: status)
    assert rights_of(program).missing == ("cap_setpcap",)
    assert not rights_of(program).no_new_privileges
    status["NoNewPrivs"] = "1"
    assert rights_of(program).no_new_privileges


async def test_a_program_that_outlives_its_limit_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $! >{pids}; echo $$ >>{pids}; wait"
    with pytest.raises(TimeoutError):
        await run(["/bin/sh", "-c", script], 1.0)
    for pid in pids.read_text().split():
        until(partial(_is_gone, int(pid)), "the program is gone")


async def test_a_cancelled_program_is_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    task = asyncio.create_task(run(["/bin/sh", "-c", f"echo $$ >{pids}.new; mv {pids}.new {pids}; sleep 600"], 60.0))
    await asyncio.to_thread(until, pids.exists, "the program runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    until(partial(_is_gone, int(pids.read_text())), "the program is gone")


def _is_gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def test_every_sentence_is_one_sentence() -> None:
    for code, sentence in SNAPSHOT_SENTENCES.items():
        assert sentence[0].isupper(), code
        assert sentence.endswith((".", "{program}")), code


def test_the_browser_knows_every_sentence() -> None:
    source = (Path(__file__).parents[2] / "src" / "sentences" / "snapshots.ts").read_text(encoding="utf-8")
    assert set(re.findall(r"^  (\w+): (?:trans|\(trans, params\)) =>", source, re.MULTILINE)) == {
        *SNAPSHOT_SENTENCES,
        "snapshot_not_usable",
        "snapshot_required",
    }
