# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Sessions outlive their server: real servers are stopped, killed and started again over the same folders."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.harness import HttpError, ServerProcess, until

CHECKPOINT = "c" * 32
Start = Callable[..., ServerProcess]


class BareServer(ServerProcess):
    """A server with the owner alone; see bare_extension.py."""

    def __init__(self, base: Path, extra_env: dict[str, str] | None = None, **kwargs: Any) -> None:
        others = ("jupyter_pause", "jupyterlab", "notebook", "notebook_shim", "jupyter_lsp", "jupyter_server_terminals")
        extensions = {"tests.owner.bare_extension": True, **dict.fromkeys(others, False)}
        super().__init__(base, extensions=extensions, **kwargs)
        self.extra_env = extra_env or {}

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, **self.extra_env}

    def bare(self, action: str, kernel: str, method: str = "POST") -> Any:
        return self.request(method, f"bare/{action}/{kernel}")

    def state(self, kernel: str) -> Any:
        self.get("api/kernels")  # waits until adoption is done
        return self.bare("state", kernel, "GET")

    def record(self, kernel: str) -> dict[str, Any] | None:
        path = self.checkpoints / "sessions" / kernel / "session.json"
        with contextlib.suppress(OSError):
            content: dict[str, Any] = json.loads(path.read_text())
            return content
        return None

    def recorded(self, kernel: str, **expected: Any) -> dict[str, Any]:
        """Wait until the record on disk says so."""

        def look() -> dict[str, Any] | None:
            record = self.record(kernel)
            return record if record and all(record.get(k) == v for k, v in expected.items()) else None

        found: dict[str, Any] = until(look, f"the record says {expected}")
        return found

    def open_notebook(self, path: str = "a.ipynb") -> tuple[str, str]:
        """Kernel id and session id of a new notebook whose record is on disk."""
        session = self.notebook(path)
        self.recorded(session["kernel"]["id"], session_id=session["id"], path=path)
        return session["kernel"]["id"], session["id"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., BareServer]]:
    made: list[BareServer] = []

    def make(**kwargs: Any) -> BareServer:
        server = BareServer(kwargs.pop("base", tmp_path), **kwargs)
        made.append(server)
        server.start()
        return server

    yield make
    for server in made:
        server.clean_up()


def sessions_of(server: ServerProcess) -> list[tuple[str, str, str]]:
    return [(s["id"], s["kernel"]["id"], s["path"]) for s in server.get("api/sessions")]


# --- live kernels ---------------------------------------------------------------------------------------------------


def test_live_kernel_survives_kill_of_the_server_and_is_adopted(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, session = server.open_notebook("sub dir ü.ipynb")
    assert server.run(kernel, "import os; x = os.urandom(4).hex(); print('to a dead server')", "x")
    value, pid = server.run(kernel, "", "x"), server.state(kernel)["pid"]
    server.kill()
    assert psutil.pid_exists(pid)

    server.start()
    # The very first request already sees the old ids.
    assert sessions_of(server) == [(session, kernel, "sub dir ü.ipynb")]
    assert [k["id"] for k in server.get("api/kernels")] == [kernel]
    assert server.state(kernel)["adopted"] == [[kernel, True, None]]
    assert server.state(kernel)["pid"] == pid
    assert server.run(kernel, "", "x") == value
    assert server.process is not None
    told = json.loads((server.runtime / f"jupyter-pause-{kernel}.json").read_text())
    assert told["server"]["pid"] == server.process.pid
    assert told["session"]["path"] == "sub dir ü.ipynb"
    server.run(kernel, "for i in range(2000): os.write(1, b'still writing\\n')")


def test_adopted_live_kernel_can_be_interrupted_restarted_paused_and_shut_down(
    start: Callable[..., BareServer],
) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.run(kernel, "x = 1")
    server.kill()
    server.start()
    pid = server.state(kernel)["pid"]
    with server.client(kernel) as client:
        client.execute("import time\nprint('go', flush=True)\ntime.sleep(600)")
        until(lambda: client.get_iopub_msg(timeout=60)["msg_type"] == "stream", "the cell runs")
        server.request("POST", f"api/kernels/{kernel}/interrupt")
        assert client.get_shell_msg(timeout=60)["content"]["ename"] == "KeyboardInterrupt"
    server.bare("release", kernel)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    server.bare("reclaim", kernel)
    assert server.run(kernel, "y = 2", "y") == "2"
    server.request("POST", f"api/kernels/{kernel}/restart")
    assert server.run(kernel, "", "'y' in dir()") == "False"
    last = server.state(kernel)["pid"]
    server.request("DELETE", f"api/kernels/{kernel}")
    until(lambda: not psutil.pid_exists(last), "the process is gone")
    assert server.record(kernel) is None


def test_adopted_live_kernel_that_dies_is_restarted_as_ever(start: Callable[..., BareServer]) -> None:
    server = start(options=["--KernelRestarter.time_to_dead=0.2"])
    kernel, _ = server.open_notebook()
    server.kill()
    server.start()
    pid = server.state(kernel)["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: server.state(kernel)["pid"] not in (None, pid), "restarted")
    assert server.run(kernel, "", "1 + 1") == "2"


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_kernel_outlives_the_server_and_whatever_read_its_output(tmp_path: Path, kind: str) -> None:
    """The kernel goes on writing to its standard output after server, pipe and terminal are gone."""
    server = BareServer(tmp_path)
    reader, writer = os.pipe() if kind == "pipe" else os.openpty()
    server.output = writer
    threading.Thread(target=_drain, args=(reader,), daemon=True).start()
    try:
        server.start()
        os.close(writer)
        kernel, _ = server.open_notebook()
        pid = server.state(kernel)["pid"]
        server.kill()
        os.close(reader)
        with server.client(kernel) as client:
            client.execute("import os, sys\nfor i in range(3000): os.write(2, b'x' * 100); sys.__stdout__.write('y')")
            assert client.get_shell_msg(timeout=60)["content"]["status"] == "ok"
        assert psutil.Process(pid).is_running()
        server.output = None
        server.start()
        assert server.run(kernel, "z = 3", "z") == "3"
    finally:
        server.clean_up()


def _drain(reader: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(reader, 65536):
            pass


def test_what_a_kernel_prints_by_itself_still_reaches_the_servers_log(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.run(kernel, "import os; os.write(2, b'written by ' + b'C code')")
    until(lambda: "written by C code" in (server.base / "server.log").read_text(), "in the log")


# --- paused sessions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_paused_session_survives_the_server(start: Callable[..., BareServer], how: str) -> None:
    server = start()
    kernel, session = server.open_notebook()
    server.bare("release", kernel)
    record = server.recorded(kernel, state="paused", pid=None, checkpoint=CHECKPOINT)
    getattr(server, how)()
    assert server.recorded(kernel, state="paused")["connection_info"] == record["connection_info"]
    assert server.kernels_alive() == []

    server.start()
    assert sessions_of(server) == [(session, kernel, "a.ipynb")]
    assert server.state(kernel)["adopted"] == [[kernel, False, CHECKPOINT]]
    assert server.state(kernel)["paused"]
    assert server.kernels_alive() == []
    ports = [record["connection_info"][f"{name}_port"] for name in ("shell", "iopub", "stdin", "hb", "control")]
    for port in ports:
        with socket.socket() as thief, pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", port))
    server.bare("reclaim", kernel)
    assert server.run(kernel, "", "6 * 7") == "42"
    on_disk = json.loads((server.runtime / f"kernel-{kernel}.json").read_text())
    assert {k: on_disk[k] for k in record["connection_info"]} == record["connection_info"]
    assert server.recorded(kernel, state="running", resuming=False)["pid"] == server.state(kernel)["pid"]


def test_paused_session_survives_a_reboot(start: Callable[..., BareServer]) -> None:
    """After a boot the runtime folder is empty, and somebody else has one of the ports."""
    server = start()
    kernel, session = server.open_notebook()
    server.bare("release", kernel)
    record = server.recorded(kernel, state="paused", pid=None)
    server.kill()
    for path in server.runtime.iterdir():
        path.unlink()
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", record["connection_info"]["shell_port"]))
        squatter.listen()
        server.start()
        assert sessions_of(server) == [(session, kernel, "a.ipynb")]
        server.bare("reclaim", kernel)
        assert server.run(kernel, "", "6 * 7") == "42"


def test_shut_down_by_a_person_while_paused_ends_the_session(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, session = server.open_notebook()
    server.bare("release", kernel)
    server.request("DELETE", f"api/sessions/{session}")
    record = server.record(kernel)
    assert record is not None
    assert record["state"] == "ended"
    assert record["checkpoint"] == CHECKPOINT
    assert server.state(kernel)["listed"] == []
    assert server.state(kernel)["told"] == [["ended"]]
    server.kill()
    server.start()
    assert server.get("api/kernels") == []


def test_restart_while_paused_is_told(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.bare("release", kernel)
    server.request("POST", f"api/kernels/{kernel}/restart")
    assert server.state(kernel)["told"] == [["restarted", True]]
    server.recorded(kernel, state="running", pid=server.state(kernel)["pid"])


def test_running_kernel_ends_with_a_clean_stop(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.terminate()
    assert server.record(kernel) is None
    assert server.kernels_alive() == []
    server.start()
    assert server.get("api/kernels") == []


def test_pause_cut_short_after_its_commit_gives_the_live_kernel(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.run(kernel, "x = 5")
    server.bare("commit", kernel)
    server.kill()
    server.start()
    assert server.state(kernel)["adopted"] == [[kernel, True, None]]
    assert server.run(kernel, "", "x") == "5"
    assert server.recorded(kernel, state="running")["checkpoint"] is None


def test_resume_cut_short_is_paused_again_with_one_process_at_most(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.bare("release", kernel)
    server.bare("reclaim", kernel)
    pid = server.state(kernel)["pid"]
    # As if the server had died before it could write anything about the new process.
    server.kill()
    record = server.record(kernel)
    assert record is not None
    record.update(state="paused", pid=None, pid_start_time=None, resuming=False, checkpoint=CHECKPOINT)
    (server.checkpoints / "sessions" / kernel / "session.json").write_text(json.dumps(record))
    assert psutil.pid_exists(pid)
    server.start()
    assert server.state(kernel)["adopted"] == [[kernel, False, CHECKPOINT]]
    assert server.kernels_alive() == []
    server.bare("reclaim", kernel)
    assert server.run(kernel, "", "6 * 7") == "42"
    assert len(server.kernels_alive()) == 1


def test_kernel_that_died_with_its_server(start: Callable[..., BareServer]) -> None:
    """A power cut: neither process nor record of a pause; only a checkpoint made meanwhile can help."""
    server = start()
    kernel, _ = server.open_notebook("a.ipynb")
    other, _ = server.open_notebook("b.ipynb")
    pids = [server.state(k)["pid"] for k in (kernel, other)]
    server.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        until(lambda pid=pid: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", "dead")
    record = server.record(other)
    server.start()
    assert server.get("api/kernels") == []
    assert server.record(other) is None
    (server.checkpoints / "sessions" / other).mkdir()
    (server.checkpoints / "sessions" / other / "session.json").write_text(json.dumps(record))
    server.kill()
    server.extra_env["BARE_CHECKPOINT"] = "d" * 32
    server.start()
    assert server.state(other)["adopted"] == [[other, False, "d" * 32]]
    assert server.state(other)["listed"] == [other]


def test_rename_and_second_root_dir(start: Callable[..., BareServer], tmp_path: Path) -> None:
    server = start()
    kernel, session = server.open_notebook()
    server.request("PATCH", f"api/sessions/{session}", {"path": "new.ipynb", "name": "new.ipynb"})
    server.recorded(kernel, path="new.ipynb", name="new.ipynb")
    server.bare("release", kernel)
    server.kill()
    server.root = tmp_path / "another"
    server.root.mkdir()
    server.start()
    assert server.get("api/kernels") == []
    assert server.state(kernel)["listed"] == []
    server.kill()
    server.root = tmp_path / "root"
    server.start()
    assert sessions_of(server) == [(session, kernel, "new.ipynb")]


def test_records_are_owner_only_and_odd_ones_do_no_harm(start: Callable[..., BareServer], tmp_path: Path) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    folder = server.checkpoints / "sessions"
    for path in (server.checkpoints, folder, folder / kernel):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (folder / kernel).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server.kill()
    for name, content in {"empty": "", "list": "[]", "other": '{"kernel_id": "../../x", "state": "paused"}'}.items():
        (folder / name).mkdir()
        (folder / name / "session.json").write_text(content)
    (folder / "link").symlink_to(tmp_path)
    (folder / "..x").mkdir()
    server.start()
    assert server.state(kernel)["adopted"] == [[kernel, True, None]]


def test_a_kernel_whose_specification_is_gone_stays_on_disk(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.bare("release", kernel)
    server.recorded(kernel, state="paused", pid=None)
    server.kill()
    record = server.record(kernel)
    assert record is not None
    record["kernel_name"] = "no-such-kernel"
    (server.checkpoints / "sessions" / kernel / "session.json").write_text(json.dumps(record))
    server.start()
    assert server.get("api/kernels") == []
    assert server.state(kernel)["listed"] == [kernel]
    assert not (server.checkpoints / "sessions" / kernel / "lease").exists()


# --- the kernel's watchdog --------------------------------------------------------------------------------------------


def test_kernel_that_its_watchdog_saved_becomes_paused_not_restarted(start: Callable[..., BareServer]) -> None:
    server = start(options=["--KernelRestarter.time_to_dead=0.2"])
    kernel, _ = server.open_notebook()
    record = server.record(kernel)
    assert record is not None
    # What the watchdog does last; it believed its server gone and was adopted in the meantime.
    record.update(state="paused", cause="orphaned", checkpoint="e" * 32, pid=None, pid_start_time=None)
    path = server.checkpoints / "sessions" / kernel / "session.json"
    path.write_text(json.dumps(record))
    os.kill(server.state(kernel)["pid"], signal.SIGKILL)
    until(lambda: server.state(kernel)["paused"], "paused")
    until(lambda: [kernel, False, "e" * 32] in server.state(kernel)["adopted"], "told")
    assert server.recorded(kernel, state="paused", pid=None)["checkpoint"] == "e" * 32


# --- two servers ----------------------------------------------------------------------------------------------------


def test_two_servers_never_hold_one_session(start: Callable[..., BareServer]) -> None:
    first = start()
    kernel, session = first.open_notebook()
    first.bare("release", kernel)
    second = start()
    assert second.get("api/kernels") == []
    assert second.state(kernel)["listed"] == [kernel]
    with pytest.raises(HttpError) as caught:
        second.bare("adopt", kernel)
    assert caught.value.status == 409
    first.terminate()
    second.bare("adopt", kernel)
    assert sessions_of(second) == [(session, kernel, "a.ipynb")]
    second.bare("reclaim", kernel)
    assert second.run(kernel, "", "6 * 7") == "42"
    first.start()
    assert first.get("api/kernels") == []
    assert len(first.kernels_alive()) == 1


def test_two_servers_started_at_once_after_a_crash(start: Callable[..., BareServer], tmp_path: Path) -> None:
    first = start()
    kernels = [first.open_notebook(f"{i}.ipynb")[0] for i in range(3)]
    for kernel in kernels:
        first.bare("release", kernel)
        first.recorded(kernel, state="paused", pid=None)
    first.kill()
    racers = [BareServer(tmp_path) for _ in range(3)]
    try:
        threads = [threading.Thread(target=racer.start) for racer in racers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = [kernel["id"] for racer in racers for kernel in racer.get("api/kernels")]
        assert sorted(held) == sorted(kernels)
        outcomes = []
        for racer in racers:
            for kernel in kernels:
                with contextlib.suppress(HttpError):
                    racer.bare("reclaim", kernel)
                    outcomes.append(kernel)
        assert sorted(outcomes) == sorted(kernels)
        until(lambda: len(first.kernels_alive()) == len(kernels), "one process each")
    finally:
        for racer in racers:
            racer.clean_up()


def test_a_server_that_lost_its_lease_does_not_resume(start: Callable[..., BareServer]) -> None:
    server = start()
    kernel, _ = server.open_notebook()
    server.bare("release", kernel)
    server.recorded(kernel, state="paused", pid=None)
    lease = server.checkpoints / "sessions" / kernel / "lease"
    content = json.loads(lease.read_text())
    lease.write_text(json.dumps({**content, "id": "f" * 32, "host": "elsewhere"}))
    with pytest.raises(HttpError) as caught:
        server.bare("reclaim", kernel)
    assert "session_held" in str(caught.value.body)
    assert server.kernels_alive() == []


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_requests_about_kernels_are_held_until_adoption_is_done(tmp_path: Path) -> None:
    server = BareServer(tmp_path, base_url="/user/jo/", extra_env={"BARE_DELAY": "0"})
    try:
        server.start()
        kernel, session = server.open_notebook()
        server.bare("release", kernel)
        server.recorded(kernel, state="paused", pid=None)
        server.kill()
        server.extra_env["BARE_DELAY"] = "1.5"
        server.start()  # answers api/status while the gate is closed
        assert sessions_of(server) == [(session, kernel, "a.ipynb")]
        assert [k["id"] for k in server.get("api/kernels")] == [kernel]
    finally:
        server.clean_up()


def test_a_held_request_is_answered_503_after_a_while(tmp_path: Path) -> None:
    server = BareServer(tmp_path, extra_env={"BARE_DELAY": "5", "BARE_GATE_LIMIT": "0.3"})
    try:
        server.start()
        for method in ("GET", "POST"):
            with pytest.raises(HttpError) as caught:
                server.request(method, "api/sessions")
            assert caught.value.status == 503
        until(lambda: _answers(server), "open at last")
    finally:
        server.clean_up()


def _answers(server: ServerProcess) -> bool:
    try:
        server.get("api/kernels")
    except HttpError:
        return False
    return True
