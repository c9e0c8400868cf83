# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The drill holds where everything works, and fails where something does not."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_pause.drill import cells
from jupyter_pause.drill.report import Check, Report
from jupyter_pause.drill.run import MIB, Drill, DrillOptions, planned
from jupyter_pause.drill.server import DrillServer
from tests.harness import until

from .conftest import CommandLine

SMALL = 8 * MIB


def run(**options: Any) -> tuple[Report, str]:
    """A drill in this process; returns its report and the folder it used."""
    drill = Drill(DrillOptions(size=SMALL, **options), lambda check: print(check.line()))
    base = str(drill._server.base)
    return drill.run(), base


def verdicts(report: Report) -> dict[str, str]:
    return {check.name: check.verdict for check in report.checks}


def nothing_is_left(base: str) -> None:
    assert not Path(base).exists()
    for process in psutil.process_iter(["cmdline"]):
        assert not any(base in word for word in process.info["cmdline"] or []), process


def test_every_promise_holds(nobody: CommandLine, tmp_path: Path) -> None:
    done = nobody("drill", "--json", "--junit", str(tmp_path / "report.xml"))
    answer = done.json
    assert done.code == 0, [check for check in answer["checks"] if check["verdict"] != "kept"]
    assert answer["ok"]
    assert answer["held"]
    names = [check["name"] for check in answer["checks"] if not check["name"].startswith("exact.")]  # where CRIU is
    assert names == [name for name, _ in planned()]
    assert {check["verdict"] for check in answer["checks"]} == {"kept"}
    measured = answer["measured"]
    for name in ("in_place", "restart"):
        assert measured[f"{name}.memory.rss_before"] > 128 * MIB
        assert measured[f"{name}.memory.rss_after"] == 0
        assert measured[f"{name}.pause.bytes"] >= 128 * MIB
    suite = ET.parse(tmp_path / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (str(len(answer["checks"])), "0", "0")
    assert len(suite.findall("testcase")) == len(planned())


def test_a_kernel_of_ones_own_without_numpy_and_the_folder_kept(nobody: CommandLine, tmp_path: Path) -> None:
    spec = Path(nobody.env["JUPYTER_DATA_DIR"]) / "kernels" / "mine" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "numpy.py").write_text("raise ImportError('not in this environment')\n")
    env = {"PYTHONPATH": str(hidden)}
    spec.write_text(json.dumps({"argv": argv, "display_name": "Mine", "language": "python", "env": env}))
    done = nobody("drill", "--keep", "--size", "8", "--kernel", "mine")
    assert done.code == 0, done
    assert "All " in done.out
    assert "jupyter_server" in done.out
    assert "kernel mine" in done.out
    assert "kernel's numpy none" in done.out
    (folder,) = [
        line.partition(": ")[2] for line in done.out.splitlines() if line.startswith("The folder of the drill")
    ]
    assert (Path(folder) / "server.log").is_file()
    shutil.rmtree(folder)
    nothing_is_left(folder)


def test_a_checkpoint_removed_between_pause_and_resume_is_noticed() -> None:
    def remove(server: DrillServer) -> None:
        for path in server.checkpoints.iterdir():
            shutil.rmtree(path)

    report, base = run(after_pause=remove)
    found = verdicts(report)
    assert not report.ok
    assert found["in_place.gone"] == "kept"
    assert found["in_place.resume"] == "broken"
    broken = next(check for check in report.checks if check.verdict == "broken")
    assert "checkpoint" in broken.detail
    assert found["restart.token"] == "not reached"
    assert found["clean_up"] == "kept"
    assert list(found) == [name for name, _ in planned()]
    nothing_is_left(base)


def test_a_stock_provisioner_is_noticed(nobody: CommandLine) -> None:
    option = "--server-option=--KernelProvisionerFactory.default_provisioner_name=local-provisioner"
    done = nobody("drill", "--json", "--size", "8", option)
    assert done.code == 1
    broken = [check["name"] for check in done.json["checks"] if check["verdict"] == "broken"]
    assert broken == ["loss_named"]
    assert done.json["checks"][-1]["name"] == "clean_up"
    assert done.json["checks"][-1]["verdict"] == "kept"


def test_a_fresh_kernel_in_place_of_the_restored_one_is_noticed() -> None:
    def restart(server: DrillServer, kernel_id: str) -> None:
        server.jupyter("POST", f"api/kernels/{kernel_id}/restart")

    report, base = run(after_resume=restart)
    found = verdicts(report)
    assert not report.ok
    # The queued cell may have run before the restart or in the fresh kernel; afterwards nothing is there.
    compared = {name: found[f"in_place.{name}"] for name in cells.PROMISES}
    assert set(compared.values()) <= {"broken", "not reached"}
    assert found["clean_up"] == "kept"
    nothing_is_left(base)


def test_a_server_that_does_not_start_is_said() -> None:
    report, base = run(server_options=["--ServerApp.port=notaport"])
    assert verdicts(report)["start"] == "broken"
    assert "exit code" in report.checks[0].detail
    nothing_is_left(base)


def test_a_terminated_drill_cleans_up(nobody: CommandLine) -> None:
    running = nobody.start("drill")
    assert running.stdout is not None
    folder = ""
    for text in running.stdout:
        if "folder " in text:
            folder = text.rpartition("folder ")[2].strip()
        if "is built" in text:
            break
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "Traceback" not in err
    until(lambda: not Path(folder).exists(), "the folder is gone")
    nothing_is_left(folder)


# --- the parts -----------------------------------------------------------------------------------------------------


def test_the_comparison_tells_every_difference() -> None:
    before = {name: {"value": name} for name in cells.PROMISES}
    assert all(found.same for found in cells.compare(before, before))
    for name in cells.PROMISES:
        changed = cells.compare(before, {**before, name: {"value": "other"}})
        assert [found.name for found in changed if not found.same] == [name]
        missing = cells.compare(before, {**before, name: {"error": "NameError: gone"}})
        assert [found.name for found in missing if not found.same] == [name]
        useless = cells.compare({**before, name: {"error": "NameError"}}, {**before, name: {"error": "NameError"}})
        assert [found.name for found in useless if not found.same] == [name]
    assert not any(found.same for found in cells.compare({}, {}))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"value": "alive"}, False),
        ({"value": "1"}, False),
        ({"error": "NameError: name 'squares' is not defined"}, False),
        ({"error": "LostError: squares was a generator, which cannot be saved"}, True),
    ],
)
def test_the_lost_generator_must_say_what_it_was(found: dict[str, str], said: bool) -> None:
    assert cells.generator_says_what_it_was({"generator": found})[0] is said


def test_a_drill_that_checked_nothing_proves_nothing() -> None:
    assert not Report().ok
    assert not Report([Check("a", "b", "kept"), Check("c", "d")]).ok
    assert Report([Check("a", "b", "kept")]).ok


def test_junit_survives_odd_text(tmp_path: Path) -> None:
    report = Report([Check("a", "b", "broken", "odd \x00\x1b<&> text"), Check("c", "d")])
    report.write_junit(tmp_path / "r.xml")
    suite = ET.parse(tmp_path / "r.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")
