# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A kernel's process ends and comes back while kernel, session, ports and WebSockets stay."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from tornado.httpclient import HTTPClientError

from jupyter_pause import launch
from jupyter_pause.launch import plan_launch
from jupyter_pause.provisioner import ProvisionerError

from .conftest import Bench, until

#: A pytest default of a minute is Jupyter's own limit for a kernel that does not answer; far below it is "at once".
AT_ONCE = 10.0


async def test_websocket_kernel_and_session_stay_and_a_cell_sent_meanwhile_is_answered(bench: Bench) -> None:
    kernel = await bench.notebook()
    frontend = await bench.socket(kernel)
    before = await frontend.run("import os; print(os.getpid())")
    ports, key = bench.manager(kernel).ports, bench.manager(kernel).session.key
    provisioner = bench.provisioner(kernel)
    assert provisioner.not_pausable is None

    released = await provisioner.release()
    assert released.gone
    assert released.rss_before > 10 << 20
    assert released.pid == int(before)
    assert not psutil.pid_exists(int(before))
    assert provisioner.paused
    assert provisioner.kernel_pid is None
    assert await provisioner.poll() is None
    assert provisioner.has_process

    waiting = frontend.send("print(os.getpid() if 'os' in dir() else __import__('os').getpid())")
    await provisioner.reclaim(None)
    content, after = await frontend.reply(waiting)
    assert content["status"] == "ok"
    assert after.strip() == str(provisioner.kernel_pid) != before
    assert (bench.manager(kernel).ports, bench.manager(kernel).session.key) == (ports, key)
    await until(lambda: not provisioner.resuming, "the kernel has answered")
    sessions = json.loads((await bench.fetch("api", "sessions")).body)
    assert [s["kernel"]["id"] for s in sessions] == [kernel]
    assert await frontend.run("print(1 + 1)") == "2"
    assert bench.kinds() == ["launched", "paused", "resuming", "resumed"]
    assert bench.manager(kernel).execution_state == "idle"


async def test_pausing_and_resuming_twice(bench: Bench) -> None:
    kernel = await bench.notebook()
    frontend = await bench.socket(kernel)
    for _ in range(3):
        await bench.provisioner(kernel).release()
        await bench.provisioner(kernel).reclaim(None)
        assert await frontend.run("print('here')") == "here"
        bench.provisioner(kernel).settle()
    assert not bench.provisioner(kernel).ports_changed


async def test_nobody_else_gets_a_port_before_during_and_after_a_pause(bench: Bench) -> None:
    kernel = await bench.notebook()
    frontend = await bench.socket(kernel)
    await frontend.run("1")
    stolen: list[int] = []
    stop = asyncio.Event()

    async def thief() -> int:
        tries = 0
        while not stop.is_set():
            for port in bench.manager(kernel).ports:
                with socket.socket() as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    with contextlib.suppress(OSError):
                        sock.bind(("127.0.0.1", port))
                        sock.listen()
                        stolen.append(port)
                    tries += 1
            await asyncio.sleep(0)
        return tries

    at_work = asyncio.create_task(thief())
    await bench.provisioner(kernel).release()
    waiting = frontend.send("print('for the kernel only')")
    await asyncio.sleep(0.1)
    await bench.provisioner(kernel).reclaim(None)
    _, printed = await frontend.reply(waiting)
    stop.set()
    assert await at_work > 100
    assert stolen == []
    assert printed.strip() == "for the kernel only"


async def test_a_new_websocket_to_a_paused_kernel_opens_at_once(bench: Bench) -> None:
    kernel = await bench.notebook()
    await bench.provisioner(kernel).release()  # nobody ever connected: no kernel_info is known
    frontend = await asyncio.wait_for(bench.socket(kernel), AT_ONCE)
    waiting = frontend.send("print('sent while paused')")
    await bench.provisioner(kernel).reclaim(None)
    _, printed = await frontend.reply(waiting)
    assert printed.strip() == "sent while paused"


async def test_late_messages_do_not_wake_the_server_nudge(bench: Bench) -> None:
    kernel = await bench.notebook()
    await bench.provisioner(kernel).release()
    bench.manager(kernel).execution_state = "idle"
    assert bench.manager(kernel).execution_state == "busy"


async def test_interrupt_while_paused_is_harmless(bench: Bench) -> None:
    kernel = await bench.notebook()
    await bench.provisioner(kernel).release()
    answer = await bench.fetch("api", "kernels", kernel, "interrupt", method="POST", allow_nonstandard_methods=True)
    assert answer.code == 204
    assert bench.provisioner(kernel).paused


async def test_restart_while_paused_gives_an_empty_process_and_says_so(bench: Bench) -> None:
    kernel = await bench.notebook()
    frontend = await bench.socket(kernel)
    await frontend.run("x = 1")
    provisioner = bench.provisioner(kernel)
    await provisioner.release()
    load = launch.load_file(bench.manager(kernel).connection_file, kernel)
    launch.write_private_json(load, {"version": 1})
    answer = await bench.fetch("api", "kernels", kernel, "restart", method="POST", allow_nonstandard_methods=True)
    assert answer.code == 200
    assert not provisioner.paused
    assert provisioner.restarted_while_paused
    assert not load.exists()
    assert await frontend.run("print('x' in dir())") == "False"
    assert bench.kinds() == ["launched", "paused", "restarted"]
    assert bench.events[-1].was_paused


@pytest.mark.parametrize("now", [False, True])
async def test_shutdown_while_paused_ends_the_session_at_once_and_frees_the_ports(bench: Bench, now: bool) -> None:
    kernel = await bench.notebook()
    await bench.provisioner(kernel).release()
    manager, ports = bench.manager(kernel), bench.manager(kernel).ports
    await asyncio.wait_for(bench.serverapp.kernel_manager.shutdown_kernel(kernel, now=now), 4.0)  # stock: 5 s
    assert kernel not in bench.serverapp.kernel_manager
    assert bench.kinds() == ["launched", "paused", "ended"]
    assert bench.events[-1].was_paused
    for port in ports:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", port))
    assert launch.read_private_json(Path(manager.connection_file)) is None
    assert list(Path(manager.connection_file).parent.glob("jupyter-pause-*")) == []


async def test_deleting_the_session_while_paused(bench: Bench) -> None:
    kernel = await bench.notebook()
    await bench.provisioner(kernel).release()
    session = json.loads((await bench.fetch("api", "sessions")).body)[0]["id"]
    assert (await bench.fetch("api", "sessions", session, method="DELETE")).code == 204
    assert json.loads((await bench.fetch("api", "kernels")).body) == []


async def test_the_culler_leaves_a_paused_kernel(bench: Bench) -> None:
    manager = bench.serverapp.kernel_manager
    manager.cull_idle_timeout, manager.cull_busy, manager.cull_connected = 1, True, True
    paused, idle = await bench.notebook("a.ipynb"), await bench.notebook("b.ipynb")
    await bench.provisioner(paused).release()
    for kernel in (paused, idle):
        bench.manager(kernel).last_activity -= timedelta(days=30)
    await manager.cull_kernels()
    assert manager.list_kernel_ids() == [paused]
    await bench.provisioner(paused).reclaim(None)
    bench.provisioner(paused).settle()
    await manager.cull_kernels()  # the time of the pause is no idle time
    assert manager.list_kernel_ids() == [paused]
    assert "cull_idle_timeout" not in bench.manager(paused).kernel_spec.metadata


async def test_a_running_kernel_that_dies_is_restarted_as_ever(bench: Bench) -> None:
    kernel = await bench.notebook()
    bench.manager(kernel)._restarter.time_to_dead = 0.2
    bench.manager(kernel).stop_restarter()
    bench.manager(kernel).start_restarter()
    frontend = await bench.socket(kernel)
    first = bench.provisioner(kernel).kernel_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: bench.provisioner(kernel).kernel_pid not in (None, first), "restarted")
    assert await frontend.run("print('again')") == "again"
    assert bench.kinds() == ["launched", "restarted"]


async def test_the_restarter_never_touches_a_paused_or_resuming_kernel(bench: Bench) -> None:
    kernel = await bench.notebook()
    restarter = bench.manager(kernel)._restarter
    provisioner = bench.provisioner(kernel)
    await provisioner.release()
    await restarter.poll()
    assert provisioner.paused
    assert provisioner.kernel_pid is None
    await provisioner.reclaim(None)
    assert provisioner.kernel_pid is not None
    os.kill(provisioner.kernel_pid, signal.SIGKILL)  # dies while it loads, before it ever answered
    await restarter.poll()
    await until(lambda: provisioner.paused, "paused again")
    await until(lambda: "resume_failed" in bench.kinds(), "told")
    await restarter.poll()
    assert provisioner.paused
    assert provisioner.kernel_pid is None
    await provisioner.reclaim(None)  # and it can be tried again
    frontend = await bench.socket(kernel)
    assert await frontend.run("print('back')") == "back"


async def test_children_of_the_kernel_end_with_it(bench: Bench) -> None:
    kernel = await bench.notebook()
    frontend = await bench.socket(kernel)
    code = (
        "import subprocess\n"
        "a = subprocess.Popen(['sleep', '600'])\n"
        "b = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(a.pid, b.pid)"
    )
    children = [int(pid) for pid in (await frontend.run(code)).split()]
    await bench.provisioner(kernel).release()
    for pid in children:
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_a_release_after_the_kernel_died_is_refused(bench: Bench) -> None:
    kernel = await bench.notebook()
    bench.manager(kernel).stop_restarter()
    pid = bench.provisioner(kernel).kernel_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not bench.provisioner(kernel).process_alive, "dead")
    with pytest.raises(ProvisionerError) as caught:
        await bench.provisioner(kernel).release()
    assert caught.value.code == "kernel_dead"
    assert not bench.provisioner(kernel).paused


async def test_a_failed_launch_leaves_the_kernel_paused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = await bench.notebook()
    provisioner = bench.provisioner(kernel)
    await provisioner.release()
    monkeypatch.setattr(bench.manager(kernel).kernel_spec, "argv", ["/nowhere/python", "-m", "ipykernel_launcher"])
    with pytest.raises(FileNotFoundError):
        await provisioner.reclaim({"version": 1})
    assert provisioner.paused
    assert not provisioner.process_alive
    assert not launch.load_file(bench.manager(kernel).connection_file, kernel).exists()
    for port in bench.manager(kernel).ports:
        with pytest.raises(OSError, match="in use"):
            socket.socket().bind(("127.0.0.1", port))


async def test_the_new_process_gets_todays_environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "old")
    kernel = await bench.notebook("sub.ipynb")
    await bench.provisioner(kernel).release()
    monkeypatch.setenv("SOME_TOKEN", "new")
    await bench.provisioner(kernel).reclaim(None)
    frontend = await bench.socket(kernel)
    printed = await frontend.run("import os; print(os.environ['SOME_TOKEN'], os.environ['JPY_SESSION_NAME'])")
    assert printed.startswith("new ")
    assert printed.endswith("sub.ipynb")
    assert await frontend.run("print('JUPYTER_PAUSE_LISTEN_FDS' in os.environ)") == "False"


async def test_files_beside_the_connection_file_are_owner_only(bench: Bench) -> None:
    kernel = await bench.notebook()
    folder = Path(bench.manager(kernel).connection_file).parent
    await bench.provisioner(kernel).release()
    await bench.provisioner(kernel).reclaim({"version": 1, "checkpoint": "/nowhere", "result": str(folder / "r")})
    files = [path for path in folder.iterdir() if path.name.startswith("jupyter-pause-")]
    assert launch.kernel_file(bench.manager(kernel).connection_file, kernel) in files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


async def test_a_port_that_cannot_be_had_gives_other_ports_and_reconnected_clients(bench: Bench) -> None:
    kernel = await bench.notebook()
    frontend = await bench.socket(kernel)
    await frontend.run("1")
    provisioner, manager = bench.provisioner(kernel), bench.manager(kernel)
    old = list(manager.ports)
    # As after an adoption: this server holds no socket, and a process that the kernel left behind has one.
    provisioner._free_ports()
    original = provisioner._hold_ports
    squatter = socket.socket()
    squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    async def seize_then_hold(processes: Any) -> None:
        await processes.wait_gone(30)
        squatter.bind(("127.0.0.1", old[0]))
        squatter.listen()
        await original(processes)

    provisioner._hold_ports = seize_then_hold  # type: ignore[method-assign]
    await provisioner.release()
    assert provisioner.ports_changed
    assert old[0] not in manager.ports
    on_disk = launch.read_private_json(Path(manager.connection_file))
    assert on_disk is not None
    assert sorted(on_disk[name] for name in ("shell_port", "iopub_port")) == sorted(
        [manager.shell_port, manager.iopub_port]
    )
    while await asyncio.wait_for(frontend.connection.read_message(), AT_ONCE) is not None:
        pass  # what was under way; then closed
    assert frontend.connection.close_code == 1012
    again = await asyncio.wait_for(bench.socket(kernel), AT_ONCE)
    waiting = again.send("print('new ports')")
    await provisioner.reclaim(None)
    _, printed = await again.reply(waiting)
    assert printed.strip() == "new ports"
    squatter.close()


async def test_holding_does_not_pile_up_connections(bench: Bench) -> None:
    kernel = await bench.notebook()
    await bench.provisioner(kernel).release()
    hold = bench.provisioner(kernel)._hold
    assert hold is not None
    port = bench.manager(kernel).shell_port
    before = hold.connections
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    await until(lambda: hold.connections == before + 20, "held")
    for client in clients:
        client.close()
    await until(lambda: hold.connections == before, "let go when the client left")
    with socket.create_connection(("127.0.0.1", port)) as talker:
        talker.sendall(b"x" * 10000)  # no ZeroMQ client sends that much unasked
        await until(lambda: hold.connections == before, "dropped")


async def test_without_our_extension_it_is_the_local_provisioner(bench: Bench) -> None:
    launch.set_launch_settings(None)
    kernel = await bench.notebook()
    manager = bench.manager(kernel)
    pid = bench.provisioner(kernel).kernel_pid
    assert "ipykernel_launcher" in psutil.Process(pid).cmdline()
    reason = bench.provisioner(kernel).not_pausable
    assert reason is not None
    assert reason.code == "extension_off"
    assert list(Path(manager.connection_file).parent.glob("jupyter-pause-*")) == []
    with pytest.raises(ProvisionerError):
        await bench.provisioner(kernel).release()
    await bench.serverapp.kernel_manager.shutdown_kernel(kernel)


async def test_a_kernel_id_that_is_no_file_name_is_not_pausable(bench: Bench) -> None:
    assert not launch.valid_kernel_id("../../etc/x")
    assert not launch.valid_kernel_id("")
    assert not launch.valid_kernel_id("a" * 200)
    assert launch.valid_kernel_id("0b7a3c1e-7d0f-4a2b-9a53-0d6b6c1f2e3d")
    with pytest.raises(HTTPClientError):
        await bench.fetch("api", "kernels", "nothing", method="GET")


BOOT = str(launch.BOOTSTRAP)


@pytest.mark.parametrize(
    ("command", "language", "expected"),
    [
        ("python -m ipykernel_launcher -f c", "python", f"python {BOOT} -f c"),
        (
            "/opt/x/bin/python3.9 -m ipykernel_launcher -f c --debug",
            "python",
            f"/opt/x/bin/python3.9 {BOOT} -f c --debug",
        ),
        (
            "python3 -Xfrozen_modules=off -m ipykernel_launcher -f c",
            "python",
            f"python3 -Xfrozen_modules=off {BOOT} -f c",
        ),
        ("python3 -X frozen_modules=off -m ipykernel -f c", "python", f"python3 -X frozen_modules=off {BOOT} -f c"),
        ("python -Im ipykernel_launcher -f c", "python", f"python -I {BOOT} -f c"),
        ("python -mipykernel_launcher -f c", "python", f"python {BOOT} -f c"),
        ("python -u -W ignore -s -m ipykernel_launcher -f c", "python", f"python -u -W ignore -s {BOOT} -f c"),
        ("python.exe -m ipykernel_launcher -f c", "Python", f"python.exe {BOOT} -f c"),
        ("python3.13t -m ipykernel_launcher -f c", "python", f"python3.13t {BOOT} -f c"),
        ("conda run -n e python -m ipykernel_launcher -f c", "python", "wrapped_command"),
        ("bash start.sh c", "python", "wrapped_command"),
        ("python run.py -m ipykernel_launcher", "python", "wrapped_command"),
        ("python -c pass -m ipykernel_launcher", "python", "wrapped_command"),
        ("python -m xpython -f c", "python", "not_ipykernel"),
        ("python -m", "python", "wrapped_command"),
        ("pypy3 -m ipykernel_launcher -f c", "python", "wrapped_command"),
        ("python -m bash_kernel -f c", "bash", "not_python"),
        ("ir --args c", "R", "not_python"),
    ],
)
def test_command_lines(command: str, language: str, expected: str) -> None:
    plan = plan_launch(command.split(), language)
    if plan.code is None:
        assert " ".join(plan.command) == expected
    else:
        assert plan.code == expected
        assert plan.command == command.split()
