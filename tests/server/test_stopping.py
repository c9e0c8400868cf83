# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Stops of a real server: by others (SIGTERM), by Ctrl-C at a terminal, through the REST interface, by kill -9."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import LIMIT, TOKEN, HttpError, ServerProcess, until

Start = Callable[..., ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[ServerProcess] = []

    def make(*options: str, **more: Any) -> ServerProcess:
        made.append(ServerProcess(tmp_path, options=list(options), **more).start())
        return made[-1]

    yield make
    for server in made:
        server.clean_up()


def last_stop(server: ServerProcess) -> dict[str, Any]:
    """The report of the next server, and its kernels by id."""
    report: dict[str, Any] = server.api("GET", "state")["last_stop"]
    assert report is not None
    return {**report, "by": {kernel["kernel"]: kernel for kernel in report["kernels"]}}


def said_by_the_command_line(server: ServerProcess) -> str:
    program = [sys.executable, "-m", "jupyter_pause.cli", "status", "--token", TOKEN]
    address = f"http://127.0.0.1:{server.port}/"
    done = subprocess.run([*program, "--url", address], capture_output=True, text=True, check=True, timeout=LIMIT)
    return done.stdout


def log(server: ServerProcess) -> str:
    return (server.base / "server.log").read_text()


def test_sigterm_keeps_all_kernels_and_the_next_server_has_them(start: Start) -> None:
    server = start()
    sessions = [server.notebook(f"{name}.ipynb") for name in "abc"]
    kernels = [session["kernel"]["id"] for session in sessions]
    tokens = {k: server.run(k, "import os; token = os.urandom(8).hex()", "token") for k in kernels}
    server.run(kernels[0], "lock = __import__('threading').Lock(); gen = (i for i in range(3))")
    server.terminate()
    assert not server.kernels_alive()

    server.start()
    assert {s["id"] for s in server.get("api/sessions")} == {s["id"] for s in sessions}
    report = last_stop(server)
    assert report["cause"] == "ordered" and report["limit"] > 20 and report["seconds"] < report["limit"]
    assert [report["by"][k]["saved"] for k in kernels] == [True] * 3
    assert report["by"][kernels[0]]["losses"] == 1, "the generator; nobody could be asked, so it is named"
    for kernel in kernels:
        assert server.resume(kernel=kernel)["state"] == "done"
        assert server.run(kernel, "", "token") == tokens[kernel]


def test_time_is_up_the_small_ones_are_kept_and_the_huge_one_is_named(start: Start) -> None:
    # Long enough for the small one on a machine that is busy with other things; all of it is used up.
    server = start("--PauseApp.grace_period=45", "--PauseApp.interrupt_on_stop=False")
    huge, small, busy = (server.notebook(f"{n}.ipynb")["kernel"]["id"] for n in ("huge", "small", "busy"))
    # Large, and slower to save than any grace period: the time is spent in the capture itself.
    server.run(
        huge,
        "import time\nclass Slow:\n    def __getstate__(self): time.sleep(600); return {}\n"
        "slow = Slow(); big = bytearray(3 << 30)",
    )
    token = server.run(small, "import os; token = os.urandom(8).hex()", "token")
    with server.client(busy) as client:
        client.execute("import pathlib, time; pathlib.Path('began').touch(); time.sleep(600)")
        until((server.root / "began").exists, "the cell runs")
        server.terminate()

    server.start()
    report = last_stop(server)
    assert report["by"][small]["saved"] and report["by"][small]["code"] is None
    assert not report["by"][huge]["saved"] and report["by"][huge]["code"] == "stopped_unsaved"
    assert not report["by"][busy]["saved"] and report["by"][busy]["path"] == "busy.ipynb"
    assert {row["id"] for row in server.api("GET", "state")["kernels"]} == {small}
    assert server.resume(kernel=small)["outcome"] == "restored"
    assert server.run(small, "", "token") == token
    until(lambda: not list((server.checkpoints / "staging").glob("*")), "nothing half written is left")
    assert f"kernel {huge} was not saved before the stop (stopped_unsaved)" in log(server)
    told = said_by_the_command_line(server)
    assert "was not saved: huge.ipynb, busy.ipynb." in told or "was not saved: busy.ipynb, huge.ipynb." in told


def test_a_running_cell_is_interrupted_at_the_end_so_that_its_variables_are_kept(start: Start) -> None:
    server = start("--PauseApp.grace_period=12")
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    token = server.run(kernel, "import os, time; token = os.urandom(8).hex(); step = 0", "token")
    with server.client(kernel) as client:
        client.execute("open('began', 'w').close()\nwhile True:\n    step += 1\n    time.sleep(0.01)")
        until((server.root / "began").exists, "the cell runs")
        server.terminate()
    server.start()
    stopped = last_stop(server)["by"][kernel]
    assert stopped["saved"] and stopped["interrupted"]
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "token, step > 0") == f"({token}, True)"


def test_a_pause_that_waits_for_an_answer_is_not_lost_to_a_stop(start: Start) -> None:
    server = start()
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    with server.client(kernel) as client:
        client.execute(
            "import os, time\nopen('began', 'w').close()\n"
            "while not os.path.exists('go'): time.sleep(0.05)\nvalue = 5; gen = (i for i in range(3))"
        )
        until((server.root / "began").exists, "the cell runs")
        operation = server.api("POST", "pause", {"kernels": [kernel]})["operation"]
        (server.root / "go").touch()
        until(
            lambda: server.api("GET", f"operations/{operation['id']}")["state"] == "needs_decision",
            "the losses are asked about",
        )
    server.terminate()
    server.start()
    stopped = last_stop(server)["by"][kernel]
    assert stopped["saved"] and stopped["losses"] == 1
    assert server.resume(kernel=kernel)["outcome"] == "partial"
    assert server.run(kernel, "", "value") == "5"


def test_a_second_signal_does_not_cut_the_saving_in_two(start: Start) -> None:
    server = start()
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(
        kernel,
        "import time\nclass Slow:\n    def __getstate__(self): time.sleep(1.5); return {'value': 42}\nslow = Slow()",
    )
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    until(lambda: list((server.checkpoints / "staging").glob("*/progress.json")), "saving has begun")
    server.terminate()
    server.start()
    assert last_stop(server)["by"][kernel]["saved"]
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "slow.value") == "42"


@pytest.mark.parametrize("delay", [0.0, 0.5, 1.0, 1.5])
def test_killed_during_the_rescue_leaves_old_or_complete_checkpoints(start: Start, delay: float) -> None:
    """The delay only chooses the moment; what must hold afterwards is the same for all of them."""
    server = start("--PauseApp.orphan_timeout=600")
    first, second = (server.notebook(f"{n}.ipynb")["kernel"]["id"] for n in "ab")
    tokens = {k: server.run(k, "import os; token = os.urandom(8).hex()", "token") for k in (first, second)}
    for kernel in (first, second):
        assert server.pause(kernel)["state"] == "done"
        assert server.resume(kernel=kernel)["outcome"] == "restored"
        server.run(kernel, "newer = bytearray(30 << 20)")
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    time.sleep(delay)
    server.kill()
    for process in server.kernels_alive():  # a container takes its kernels with it
        process.kill()
        process.wait(LIMIT)

    server.start()
    checkpoints = server.api("GET", "checkpoints")["checkpoints"]
    assert len(checkpoints) >= 2
    assert all(c["damaged"] is None and c["signature_ok"] for c in checkpoints)
    rows = {row["id"]: row for row in server.api("GET", "state")["kernels"]}
    for kernel in (first, second):
        if kernel in rows:  # complete: the rescue reached it
            assert server.resume(kernel=kernel)["outcome"] == "restored"
            assert server.run(kernel, "", "token, len(newer)") == f"({tokens[kernel]}, {30 << 20})"
        else:  # the older one is still there, and the stop says that this one was not saved
            old = next(c for c in checkpoints if c["kernel_id"] == kernel)
            operation = server.resume(checkpoint=old["id"])
            assert operation["outcome"] == "restored"
            assert server.run(operation["kernels"][0], "", "token") == tokens[kernel]
            stop = server.api("GET", "state")["last_stop"]
            assert stop is None or not next(k for k in stop["kernels"] if k["kernel"] == kernel)["saved"]


def test_without_a_grace_period_nothing_is_saved_and_that_is_said(start: Start) -> None:
    server = start("--PauseApp.grace_period=0")
    server.notebook("a.ipynb")
    server.terminate()
    assert "1 running kernel(s) end with it; PauseApp.grace_period" in log(server)
    server.start()
    assert server.api("GET", "state")["kernels"] == []


# --- a person's own act ---------------------------------------------------------------------------------------------


def shut_down(server: ServerProcess) -> None:
    with contextlib.suppress(OSError, HttpError):  # the answer may not come any more
        server.request("POST", "api/shutdown")
    assert server.process is not None
    server.process.wait(LIMIT)
    server.process = None


def test_shut_down_through_the_rest_interface_discards_with_one_sentence(start: Start) -> None:
    server = start()
    server.notebook("a.ipynb")
    shut_down(server)
    assert "1 running kernel(s) end with it; PauseApp.on_exit = 'checkpoint' keeps their state." in log(server)
    server.start()
    state = server.api("GET", "state")
    assert (state["kernels"], state["last_stop"]) == ([], None)


@pytest.mark.parametrize("on_exit", ["checkpoint", "ask"])
def test_shut_down_keeps_the_kernels_where_that_is_configured(start: Start, on_exit: str) -> None:
    server = start(f"--PauseApp.on_exit={on_exit}")
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "value = 7")
    shut_down(server)
    server.start()
    assert last_stop(server)["cause"] == "request"
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "value") == "7"


class Terminal:
    """The person's side of a pseudo terminal."""

    def __init__(self) -> None:
        self.near, self.far = pty.openpty()
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self.near, 4096):
                self.text += piece.decode(errors="replace")

    def wait_for(self, text: str) -> None:
        until(lambda: text in self.text, f"the terminal shows {text!r}; it shows {self.text[-2000:]}")

    def type(self, text: str) -> None:
        os.write(self.near, text.encode())

    def close(self) -> None:
        os.close(self.far)
        os.close(self.near)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def at_terminal(tmp_path: Path, terminal: Terminal, *options: str) -> ServerProcess:
    server = ServerProcess(tmp_path, options=list(options))
    server.input = server.output = terminal.far
    return server.start()


def ctrl_c(server: ServerProcess, terminal: Terminal) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGINT)
    terminal.wait_for("Shut down this Jupyter server (y/[n])?")
    terminal.type("y\n")


def ended(server: ServerProcess) -> None:
    assert server.process is not None
    server.process.wait(LIMIT)
    server.process = None


def test_ctrl_c_discards_with_one_sentence(tmp_path: Path, terminal: Terminal) -> None:
    server = at_terminal(tmp_path, terminal)
    try:
        server.notebook("a.ipynb")
        ctrl_c(server, terminal)
        ended(server)
        terminal.wait_for("1 running kernel(s) end with it; PauseApp.on_exit = 'checkpoint' keeps their state.")
    finally:
        server.clean_up()


@pytest.mark.parametrize(("answer", "kept"), [("y\n", True), ("\n", True), ("n\n", False)])
def test_ctrl_c_asks_where_that_is_configured(tmp_path: Path, terminal: Terminal, answer: str, kept: bool) -> None:
    server = at_terminal(tmp_path, terminal, "--PauseApp.on_exit=ask")
    try:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, "value = 7")
        ctrl_c(server, terminal)
        terminal.wait_for("Save the state of 1 running kernel(s) for the next start")
        terminal.type(answer)
        ended(server)
        server.start()
        rows = server.api("GET", "state")["kernels"]
        assert [row["id"] for row in rows] == ([kernel] if kept else [])
        if kept:
            assert last_stop(server)["cause"] == "terminal"
            assert server.resume(kernel=kernel)["outcome"] == "restored"
    finally:
        server.clean_up()


def test_a_stop_ordered_while_a_person_is_being_asked_is_not_held_up(tmp_path: Path, terminal: Terminal) -> None:
    server = at_terminal(tmp_path, terminal, "--PauseApp.on_exit=ask")
    try:
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        server.run(kernel, "value = 7")
        ctrl_c(server, terminal)
        terminal.wait_for("Save the state of 1 running kernel(s) for the next start")
        server.terminate()
        server.start()
        assert last_stop(server)["cause"] == "ordered"
        assert last_stop(server)["by"][kernel]["saved"]
    finally:
        server.clean_up()
