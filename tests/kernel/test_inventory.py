# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kernel's own list of what it holds: at once, never in a cell's way, and honest about its age."""

from __future__ import annotations

import sys
from typing import Any

from .livekernel import LiveKernel, until


def _by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in items}


def test_names_types_and_sizes_at_once(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("import numpy as np; big = np.ones(1 << 20); small = [1, 2]; text = 'x' * 5000")
    answer = kernel.control(op="inventory")
    found = _by_name(answer["variables"])
    assert found["big"]["bytes"] == 8 << 20
    assert found["big"]["type"] == "numpy.ndarray"
    assert found["text"]["bytes"] >= 5000
    assert answer["busy"] is False
    if not answer["complete"]:
        assert {item["fate"] for item in answer["variables"]} == {"unknown"}


def test_a_scan_tells_fates_and_losses_with_their_cells(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("import threading, math")
    kernel.execute("values = [1, 2]\nlock = threading.Lock()")
    kernel.execute("gen = (n for n in range(3))")
    answer = kernel.control(op="inventory", wait=60)
    assert answer["complete"] is True, answer
    found = _by_name(answer["variables"])
    assert found["values"]["fate"] == "in checkpoint"
    assert found["math"]["fate"] == "rebuilt"
    assert found["gen"]["fate"] == "lost"
    assert [(loss["name"], loss["cell"]) for loss in answer["losses"]] == [("gen", 3)]
    assert kernel.control(op="inventory")["taken_at"] == answer["taken_at"], "nothing ran, so the scan is still true"


def test_memory_of_plain_bytes_counts_once_and_is_never_copied(kernel: LiveKernel) -> None:
    """The recipe of a bytearray holds a copy of it: looking at one must not make that."""
    size = 64 << 20
    kernel.execute(f"raw = bytearray({size}); frozen = bytes({size}); inside = {{'a': [bytearray({size})]}}")
    before = _peak(kernel)
    found = _by_name(kernel.control(op="inventory", wait=60)["variables"])
    for name in ("raw", "frozen", "inside"):
        assert size <= found[name]["bytes"] < 1.1 * size, name
    assert _peak(kernel) - before < size


def test_ten_thousand_variables_are_listed_with_names_types_and_sizes(kernel: LiveKernel) -> None:
    kernel.execute("for i in range(10_000): globals()[f'v{i}'] = [i, str(i)]")
    found = _by_name(kernel.control(op="inventory")["variables"])
    assert all(found[f"v{i}"]["type"] == "list" and found[f"v{i}"]["bytes"] > 0 for i in range(10_000))


def _peak(kernel: LiveKernel) -> int:
    """The most resident memory that the kernel's process ever had, in bytes (getrusage(2) counts in KiB on Linux)."""
    return int(kernel.value("__import__('resource').getrusage(0).ru_maxrss")) * (
        1 if sys.platform == "darwin" else 1024
    )


def test_a_cell_makes_an_earlier_scan_old(kernel: LiveKernel) -> None:
    kernel.execute("values = [1, 2]")
    first = kernel.control(op="inventory", wait=60)
    kernel.execute("more = 3")
    second = kernel.control(op="inventory", wait=60)
    assert second["complete"] is True
    assert "more" not in _by_name(first["variables"])
    assert "more" in _by_name(second["variables"])


def test_a_busy_kernel_answers_the_last_scan_with_its_age(kernel: LiveKernel) -> None:
    kernel.execute("values = [1, 2]")
    before = kernel.control(op="inventory", wait=60)
    cell = kernel.begin("import time\nvalues.append(3)\nwhile True: time.sleep(0.01)")
    answer = kernel.control(op="inventory", wait=60)
    assert answer["busy"] is True
    assert answer["taken_at"] == before["taken_at"]
    assert answer["age"] > 0
    kernel.interrupt(cell)


def test_a_kernel_that_was_busy_from_the_start_has_a_list_without_fates(kernel: LiveKernel) -> None:
    cell = kernel.begin("import time\nvalues = [1, 2]\nwhile True: time.sleep(0.01)")
    answer = until(
        lambda: (found := kernel.control(op="inventory")) and "values" in _by_name(found["variables"]) and found,
        "values",
    )
    assert answer["complete"] is False
    assert _by_name(answer["variables"])["values"]["fate"] == "unknown"
    kernel.interrupt(cell)


def test_no_slice_runs_while_a_cell_runs(kernel: LiveKernel) -> None:
    """Slices are recorded by the kernel itself, together with whether a cell ran at that moment."""
    kernel.execute("deep = [[{'n': n, 'm': str(n)} for n in range(2000)] for _ in range(300)]")
    kernel.execute(
        "import sys, time, threading\nscan = sys.modules['jupyter_pause_kernel'].scan if "
        "hasattr(sys.modules['jupyter_pause_kernel'], 'scan') else __import__('jupyter_pause_kernel.scan').scan\n"
        "log, running = [], []\noriginal = scan.Scanner.step\n"
        "def step(self, seconds):\n"
        "    log.append((bool(running), seconds, threading.current_thread() is threading.main_thread()))\n"
        "    return original(self, seconds)\nscan.Scanner.step = step"
    )
    message = kernel.client.session.msg("jupyter_pause_control", {"op": "inventory", "wait": 60})
    kernel.client.control_channel.send(message)
    cells = [kernel.send("running.append(1)\nfor _ in range(20): time.sleep(0.005)\nrunning.clear()") for _ in range(5)]
    awaiting = kernel.send(
        "import asyncio\nrunning.append(1)\nfor _ in range(20): await asyncio.sleep(0.005)\nrunning.clear()"
    )
    for cell in [*cells, awaiting]:
        assert kernel.answer(cell).status == "ok"
    reply = kernel.client.get_control_msg(timeout=60)
    while reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
        reply = kernel.client.get_control_msg(timeout=60)
    assert kernel.control(op="inventory", wait=60)["complete"] is True
    assert (
        kernel.value("any(entry[0] for entry in log), all(entry[2] for entry in log), len(log) > 0")
        == "(False, True, True)"
    )
    assert float(kernel.value("max(entry[1] for entry in log)")) <= 0.02


def test_control_answers_while_an_inventory_waits(kernel: LiveKernel) -> None:
    """The wait does not keep the control thread: an interrupt must always get through."""
    kernel.execute("deep = [[{'n': n, 'm': str(n)} for n in range(2000)] for _ in range(300)]")
    waiting = kernel.client.session.msg("jupyter_pause_control", {"op": "inventory", "wait": 60})
    kernel.client.control_channel.send(waiting)
    status = kernel.client.session.msg("jupyter_pause_control", {"op": "status"})
    kernel.client.control_channel.send(status)
    order = [kernel.client.get_control_msg(timeout=60)["parent_header"]["msg_id"] for _ in range(2)]
    assert set(order) == {waiting["header"]["msg_id"], status["header"]["msg_id"]}


def test_threads_tasks_children_connections_and_files(kernel: LiveKernel) -> None:
    kernel.execute(
        "import asyncio, socket, subprocess, sys, threading\n"
        "def work(): threading.Event().wait()\n"
        "threading.Thread(target=work, name='collector', daemon=True).start()\n"
        "event = asyncio.Event()\nasync def poll(): await event.wait()\n"
        "asyncio.get_running_loop().create_task(poll(), name='poller')\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(listener.getsockname())\n"
        "import io, os\nstream = open('/etc/hostname')\nbare = os.open('/etc/passwd', os.O_RDONLY)\n"
        "text = io.TextIOWrapper(io.BytesIO())\n"
        "None"
    )
    port = int(kernel.value("listener.getsockname()[1]"))
    answer = kernel.control(op="inventory", wait=60)
    assert [item["name"] for item in answer["threads"]] == ["collector"]
    assert [item["name"] for item in answer["tasks"]] == ["poller (poll)"]
    children = answer["processes"]
    assert [item["details"]["pid"] for item in children] == [int(kernel.value("child.pid"))]
    assert children[0]["bytes"] > 0
    names = {item["name"] for item in answer["connections"]}
    assert names == {f"listening on 127.0.0.1:{port}", f"127.0.0.1:{port}"}
    files = {item["name"]: (item["fate"], item["details"].get("variable")) for item in answer["files"]}
    assert files == {"/etc/hostname": ("rebuilt", "stream"), "/etc/passwd": ("unknown", None)}
    lost = {loss["name"] for loss in answer["losses"]}
    assert {"collector", "poller (poll)"} <= lost
    kernel.execute("child.kill(); child.wait()")


def test_a_stock_kernel_has_no_background_of_a_persons_own(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("x = 1")
    answer = kernel.control(op="inventory", wait=60)
    assert answer["losses"] == []
    for name in ("threads", "tasks", "processes", "connections", "files"):
        assert answer[name] == [], name


def test_odd_objects_do_not_disturb_the_quick_list(kernel: LiveKernel) -> None:
    kernel.execute(
        "class Odd:\n    def __sizeof__(self): raise RuntimeError('no')\n"
        "    def __getattr__(self, name): raise RuntimeError(name)\n"
        "    def __eq__(self, other): raise RuntimeError('no')\n    __hash__ = None\nodd = Odd(); keep = 1"
    )
    answer = kernel.control(op="inventory")
    assert {"odd", "keep", "Odd"} <= set(_by_name(answer["variables"]))
    assert kernel.control(op="inventory", wait=60)["complete"] is True


def test_a_setting_that_cannot_be_kept_is_named_in_the_inventory_as_in_the_capture(kernel: LiveKernel) -> None:
    kernel.execute(
        "import logging, socket, signal\nclass Remote(logging.Handler):\n    def __init__(self):\n"
        "        super().__init__()\n        self.line = socket.socket()\n"
        "logging.getLogger('far').addHandler(Remote())\n"
        "class Stop:\n    def __init__(self): self.rows = (n for n in [1])\n    def __call__(self, *_): pass\n"
        "signal.signal(signal.SIGUSR1, Stop())"
    )
    seen = kernel.control(op="inventory", wait=60)
    assert seen["complete"] is True, seen
    assert {loss["name"] for loss in seen["losses"]} == {"settings"}
    assert not [item for item in seen["variables"] if "settings" in item["name"]]
    staging, captured = kernel.capture()

    def named(losses: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return sorted((loss["path"], loss["type"]) for loss in losses)

    assert named(seen["losses"]) == named(captured["losses"])
    assert [kind for _, kind in named(seen["losses"])] == ["socket.socket", "generator"]
    kernel.commit(staging)
