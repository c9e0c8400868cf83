# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""Arrays that a resume mapped instead of reading them behave like any other."""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkpoint.engine import Process, manifest

Start = Callable[..., Process]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what is mapped")

BIG = "import numpy as np; big = np.random.default_rng(3).random(6_000_000); first = float(big[0]); total = float(big.sum())"
#: Lines of /proc/self/maps that show a pack.
MAPPED = "[line for line in open('/proc/self/maps') if '/pack' in line]"


def test_loading_reads_nothing_and_first_use_reads_the_right_bytes(start: Start, again: Callable[..., Process]) -> None:
    new = again(start().cells(BIG))
    new.cells("def resident(): return int(open('/proc/self/statm').read().split()[1]) * 4096")
    before = new.value("resident()")
    assert new.value(f"len({MAPPED})") == 1
    new.true("float(big.sum()) == total", "big.flags.writeable")
    assert new.value("resident()") - before > 40_000_000, "only now its pages are there"


def test_what_is_written_stays_in_the_process_and_is_saved_by_the_next_pause(
    start: Start, again: Callable[..., Process]
) -> None:
    new = again(start().cells(BIG))
    pack = (new.folder / "pack.bin").read_bytes()  # type: ignore[attr-defined]
    new.cells("big[:] = 7.0; big.sort(); big += 1")
    assert (new.folder / "pack.bin").read_bytes() == pack  # type: ignore[attr-defined]
    third = again(new)
    third.true("big.min() == big.max() == 8.0 and len(big) == 6_000_000")


def test_the_checkpoint_may_be_deleted_and_the_disk_full(start: Start, again: Callable[..., Process]) -> None:
    new = again(start().cells(BIG))
    shutil.rmtree(new.folder)  # type: ignore[attr-defined]
    new.ask("rlimit", bytes_=0)  # nothing can be written to any file any more
    new.true("float(big.sum()) == total")
    new.cells("big[::2] = 0")
    new.true("float(big[::2].sum()) == 0.0 and big[1] != 0")


def test_memory_of_one_array_is_given_back_when_it_is_deleted(start: Start, again: Callable[..., Process]) -> None:
    new = again(start().cells(BIG, "other = big * 2"))
    assert new.value(f"len({MAPPED})") == 2
    new.cells("big += 1; del big; import gc; gc.collect()")
    assert new.value(f"len({MAPPED})") == 1
    new.true("other[0] == 2 * first")


def test_many_arrays_need_few_mappings_and_no_open_files(start: Start, again: Callable[..., Process]) -> None:
    """Linux lets a process have 65,530 mappings and often 1,024 open files."""
    before = start().cells("import numpy as np; many = [np.arange(3000) + n for n in range(3000)]")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    new = again(before)
    new.true("all(int(array[7]) == n + 7 for n, array in enumerate(many))")
    new.cells("many[5][:] = -1")
    new.true("int(many[4][-1]) == 3003 and int(many[6][0]) == 6 and int(many[5].sum()) == -3000")
    assert new.value(f"len({MAPPED})") < 40
    assert new.value("len(__import__('os').listdir('/proc/self/fd'))") < 40 < soft
    assert sum(len(region["chunks"]) for region in manifest(new.folder)["regions"]) == 3000  # type: ignore[attr-defined]


def test_a_pack_that_was_cut_short_is_refused_before_it_can_kill_the_process(start: Start, tmp_path: Path) -> None:
    """Touching a mapping behind the end of its file ends a process by SIGBUS."""
    folder = start().cells(BIG).save()
    with (folder / "pack.bin").open("r+b") as stream:
        stream.truncate(8 << 20)
    result = start().load(folder)
    assert (result["status"], result["code"]) == ("failed", "damaged")


def test_growing_in_place_raises_numpys_own_error(start: Start, again: Callable[..., Process]) -> None:
    new = again(start().cells(BIG))
    new.cells("try:\n    big.resize(7_000_000)\nexcept ValueError as error: said = str(error)")
    new.true("'does not own its data' in said", "len(np.resize(big, 7_000_000)) == 7_000_000")
