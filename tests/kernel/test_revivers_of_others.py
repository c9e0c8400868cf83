# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A package that is installed in the kernel's environment brings a reviver for its own objects.

It is the worked example of docs/developers/revivers.md, taken from that page.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .livekernel import LiveKernel

PAGE = Path(__file__).resolve().parents[2] / "docs" / "developers" / "revivers.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the example's distribution."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    blocks = re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert {name for name, _ in blocks} == {"pyproject.toml", "probe.py", "probe_revivers.py"}
    for name, text in blocks:
        (source / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", str(target), str(source)], check=True)
    return target


def test_the_reviver_of_an_installed_package_is_used(new_kernel: Callable[..., LiveKernel], installed: Path) -> None:
    kernel = new_kernel(env={"PYTHONPATH": str(installed)})
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute(
        "import probe\nmeter = probe.Probe('lab-3')\nmeter.calibrate(1.5)\nlost = probe.Probe('lab-4')\nlost.close()"
    )
    staging, captured = kernel.capture()
    assert [(loss["path"], loss["reason"]) for loss in captured["losses"]] == [("lost", "the probe was closed")]
    checkpoint = kernel.commit(staging)
    kernel.end()
    result = kernel.resume(checkpoint)
    assert result["rebuilt"] == ["meter"]
    facts = {item["name"]: item for item in result["variables"]}
    assert facts["meter"]["fate"] == "rebuilt" and facts["meter"]["reason"] == "connected again; readings begin anew"
    assert (
        kernel.value("type(meter) is probe.Probe, meter.name, meter.offset, meter.readings")
        == "(True, 'lab-3', 1.5, [])"
    )


def test_without_the_package_its_object_is_lost_and_named(
    new_kernel: Callable[..., LiveKernel], installed: Path
) -> None:
    kernel = new_kernel(env={"PYTHONPATH": str(installed)})
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute("import probe\nmeter = probe.Probe('lab-3')\nrest = [1]")
    checkpoint = kernel.save()
    without = new_kernel()
    without.write_kernel_file()
    result = without.resume(checkpoint)
    assert "meter" in {loss["name"] for loss in result["losses"]}
    assert without.value("rest") == "[1]"


def test_a_broken_reviver_is_said_and_breaks_nothing(new_kernel: Callable[..., LiveKernel], tmp_path: Path) -> None:
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jupyter_pause.revivers]\nbroken = not_there:revivers\n")
    kernel = new_kernel(env={"PYTHONPATH": str(tmp_path / "site")})
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute("import threading\nlock = threading.Lock()")
    staging, captured = kernel.capture()
    assert captured["status"] == "ok" and captured["losses"] == []
    status = kernel.control(op="status")
    assert status["available"] and status["problems"] == []
    assert [problem for problem in status["reviver_problems"] if "broken" in problem and "not_there" in problem]
    checkpoint = kernel.commit(staging)
    kernel.end()
    assert kernel.resume(checkpoint)["rebuilt"] == ["lock"]
