# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The parts of a run: each is a function of the prepared `Machine` and its own `Part`."""

from __future__ import annotations

import json
import socket
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

import cluster_tools
import setup
from console import CI, ROOT, Command, Missing, Part


@dataclass
class Machine:
    """What the set-up found and made."""

    work: Path
    full: bool
    pytest_arguments: list[str]
    env: dict[str, str] = field(default_factory=dict)
    python: Path = Path()
    pythons: dict[str, str] = field(default_factory=dict)
    wheel: Path | None = None
    #: What tests of the cluster find real parts by: names and values of environment variables.
    cluster: dict[str, str] = field(default_factory=dict)

    @property
    def bin(self) -> Path:
        """The main environment's scripts."""
        return self.python.parent


def prepare(machine: Machine, part: Part) -> None:
    """The main virtual environment, Node.js, and PATH."""
    env = setup.base_environment()
    machine.python = setup.main_environment(part, machine.work, env)
    node = setup.node_folder(part, machine.python, env)
    machine.env = setup.with_path(env, machine.bin, *([node] if node else []))
    part.step("node", ["node", "--version"], env=machine.env, counts=False)
    part.step("python", [machine.python, "--version"], env=machine.env, counts=False)


def find_pythons(machine: Machine, part: Part) -> None:
    """Kernels of other Python minors and of a second environment."""
    machine.pythons = setup.test_pythons(part, setup.base_environment())
    part.note("kernels for tests: " + ", ".join(machine.pythons))


def find_cluster_tools(machine: Machine, part: Part) -> None:
    """CRIU, and the API server of a cluster: minutes of compiling where Go's own cache is empty."""
    env = setup.base_environment()
    for name, find in (
        ("JUPYTER_PAUSE_TEST_CRIU", cluster_tools.criu),
        ("JUPYTER_PAUSE_TEST_CLUSTER", cluster_tools.api_server),
    ):
        try:
            machine.cluster[name] = str(find(part, env))
        except Missing as reason:
            part.left_out_because(str(reason))
    part.note("; ".join(f"{name}={path}" for name, path in machine.cluster.items()))


def node_modules(machine: Machine, part: Part) -> None:
    """The frontend's packages, exactly as locked."""
    part.must("jlpm install", ["jlpm", "install", "--immutable"], env=machine.env, counts=False, quiet_ok=True)


def build(machine: Machine, part: Part) -> None:
    """A wheel from this checkout with no Node.js on PATH, as `pip install .` makes it; then installed for the tests."""
    env = setup.without_node(setup.base_environment(), machine.work / "build")
    wheels = machine.work / "wheels"
    command: Command = [
        machine.python,
        "-m",
        "pip",
        "wheel",
        ".",
        "--no-deps",
        "--progress-bar",
        "off",
        "--wheel-dir",
        wheels,
    ]
    part.must("wheel without Node.js on PATH", command, env=env, quiet_ok=True)
    (machine.wheel,) = wheels.glob("jupyter_pause-*.whl")
    install: Command = [machine.python, "-m", "pip", "install", "--no-deps", "--force-reinstall", machine.wheel]
    part.must("install it into the test environment", install, env=machine.env, counts=False, quiet_ok=True)


def lint(machine: Machine, part: Part) -> None:
    """Style and types of both languages."""
    part.step("ruff check", [machine.bin / "ruff", "check", "."], env=machine.env)
    part.step("ruff format", [machine.bin / "ruff", "format", "--check", "."], env=machine.env)
    part.step("mypy", [machine.bin / "mypy"], env=machine.env)
    part.step("frontend lint", ["jlpm", "lint:check"], env=machine.env)


def typescript(machine: Machine, part: Part) -> None:
    """The frontend's unit tests."""
    report = machine.work / "jest.json"
    part.step("jest", ["jlpm", "test", "--ci", "--json", f"--outputFile={report}"], env=machine.env, counts=False)
    result = json.loads(report.read_text()) if report.exists() else {}
    part.passed += result.get("numPassedTests", 0)
    _check_count(part, "jest", result.get("numTotalTests", 0))


#: Tests that stand on an API server, containers or a Hub: a part of their own, beside the others.
CLUSTER_TESTS = ("tests/cluster", "tests/hub")
#: Tests that stand on CRIU, kill servers or adopt kernels, and tests of servers and of the command line: parts of their
#: own too, so that those that run beside each other take about as long.
FAULT_TESTS = ("tests/faults", "tests/owner", "tests/snapshot")
SERVER_TESTS = ("tests/server", "tests/cli")


def python(machine: Machine, part: Part) -> None:
    """The Python tests of one machine, against the installed wheel, with real kernels."""
    others = CLUSTER_TESTS + FAULT_TESTS + SERVER_TESTS
    _pytest(machine, part, "python", *(f"--ignore={folder}" for folder in others))


def servers(machine: Machine, part: Part) -> None:
    """The Python tests with real servers, and of the command line."""
    _pytest(machine, part, "servers", *SERVER_TESTS)


def faults(machine: Machine, part: Part) -> None:
    """The Python tests in which something is killed, frozen or adopted."""
    _pytest(machine, part, "faults", *FAULT_TESTS)


def cluster(machine: Machine, part: Part) -> None:
    """The Python tests with a real API server, real containers and a real Hub."""
    _pytest(machine, part, "cluster", *CLUSTER_TESTS)
    if machine.full and machine.cluster:
        load: Command = [machine.python, ROOT / "benchmarks" / "cluster_load.py"]
        part.step("500 Workspaces", load, env={**machine.env, **machine.cluster}, limit=1800)


def _pytest(machine: Machine, part: Part, name: str, *chosen: str) -> None:
    report = machine.work / f"{name}.xml"
    env = {**machine.env, **machine.cluster, "JUPYTER_PAUSE_TEST_PYTHONS": json.dumps(machine.pythons)}
    if machine.wheel is not None:
        env["JUPYTER_PAUSE_TEST_WHEEL"] = str(machine.wheel)
    selection = [] if machine.full else ["-m", "not full"]
    # A second try tells a broken product from a busy machine. The log names every test that needed one (RERUN).
    selection += ["--reruns=1"] if CI else []
    selection += ["--durations=15", "--durations-min=5"]
    # Folders of their own: two runs beside each other would clear each other's. Short: sockets are made in them.
    folders = [f"--basetemp={machine.work / name[0]}", f"--junitxml={report}"]
    command: Command = [machine.bin / "pytest", "-p", "no:cacheprovider", *folders, *selection, *chosen]
    part.step(name, [*command, *machine.pytest_arguments], env=env, limit=3000, counts=False)
    total = skipped = bad = 0
    if report.exists():
        for suite in ET.parse(report).getroot().iter("testsuite"):
            total += int(suite.get("tests", 0))
            skipped += int(suite.get("skipped", 0))
            bad += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    part.passed += total - skipped - bad
    part.failed = max(part.failed, bad)
    if skipped:
        part.left_out.append(f"pytest skipped {skipped}; the reasons are in its summary")
    _check_count(part, name, total)


def docs(machine: Machine, part: Part) -> None:
    """The documentation builds without a warning."""
    target = machine.work / "docs"
    command: Command = [machine.python, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", target]
    part.step("sphinx", command, env=machine.env)


def install(machine: Machine, part: Part) -> None:
    """The README's first command in a fresh environment without Node.js: install, drill, uninstall."""
    base = setup.without_node(setup.base_environment(), machine.work / "install")
    folder = machine.work / "fresh"
    part.must("fresh environment", [machine.python, "-m", "venv", folder], env=base, counts=False)
    env = setup.with_path(base, folder / "bin")
    env.update({name: str(machine.work / "fresh-home" / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")})
    pip: Command = [folder / "bin" / "python", "-m", "pip"]
    assert machine.wheel is not None
    part.must("install the wheel", [*pip, "install", "--progress-bar", "off", machine.wheel], env=env, quiet_ok=True)
    check: Command = [folder / "bin" / "python", "-B", ROOT / "scripts" / "checks" / "installed.py"]
    part.step("what was installed", [*check, "present"], env=env, cwd=machine.work)
    part.step("jupyter pause drill", ["jupyter", "pause", "drill"], env=env, cwd=machine.work, limit=900)
    part.step("uninstall", [*pip, "uninstall", "-y", "jupyter-pause"], env=env, cwd=machine.work)
    part.step("nothing is left", [*check, "absent"], env=env, cwd=machine.work)


def browser(machine: Machine, part: Part) -> None:
    """Real JupyterLab and Notebook servers and kernels, driven in Chromium."""
    tests = ROOT / "ui-tests"
    env = {**machine.env, **machine.cluster, "GALATA_PORT": str(_free_port())}
    env["CHROMIUM_PATH"] = setup.chromium(part, machine.env)
    env["JUPYTER_PAUSE_TEST_PYTHON"] = str(machine.python)
    env["JUPYTER_PAUSE_TEST_PYTHONS"] = json.dumps(machine.pythons)
    env["JUPYTER_PAUSE_TEST_COLLABORATION"] = str(_with_collaboration(machine, part))
    report = machine.work / "playwright.json"
    env["PLAYWRIGHT_JSON_OUTPUT_FILE"] = str(report)
    part.must("jlpm install", ["jlpm", "install", "--immutable"], env=env, cwd=tests, counts=False, quiet_ok=True)
    part.step("types", ["jlpm", "types:check"], env=env, cwd=tests)
    part.step("prettier", ["jlpm", "prettier:check"], env=env, cwd=tests)
    command: Command = ["jlpm", "playwright", "test", "--reporter=list,json"]
    part.step("playwright", command, env=env, cwd=tests, limit=2400, counts=False)
    stats = json.loads(report.read_text())["stats"] if report.exists() else {}
    part.passed += stats.get("expected", 0)
    part.failed = max(part.failed, stats.get("unexpected", 0))
    if stats.get("flaky"):
        part.left_out.append(f"{stats['flaky']} browser tests passed only when tried again")
        part.passed += stats["flaky"]
    _check_count(part, "playwright", sum(stats.get(name, 0) for name in ("expected", "unexpected", "flaky")))


def _with_collaboration(machine: Machine, part: Part) -> Path:
    """Our wheel beside jupyter-collaboration, in an environment without anything that only tests need."""
    python = setup.collaboration_environment(part, machine.work, setup.base_environment())
    assert machine.wheel is not None
    pip: Command = [python, "-m", "pip", "install", "--no-deps", "--force-reinstall", machine.wheel]
    part.must("install the wheel beside jupyter-collaboration", pip, env=machine.env, counts=False, quiet_ok=True)
    return python


def _check_count(part: Part, runner: str, total: int) -> None:
    """A runner that ran nothing has proven nothing."""
    if not total:
        part.failed += 1
        part.error = part.error or f"{runner} ran no test"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
