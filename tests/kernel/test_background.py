# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Threads and scheduled calls that no variable holds are announced whoever wrote the code that they run."""

from __future__ import annotations

from .livekernel import LiveKernel


def _losses(kernel: LiveKernel) -> list[tuple[str, str]]:
    answer = kernel.control(op="inventory", wait=60)
    assert answer["complete"] is True, answer
    return [(loss["name"], loss["type"]) for loss in answer["losses"]]


def test_a_server_in_a_thread_is_a_loss(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute(
        "import http.server, threading\nthreading.Thread(target=http.server.HTTPServer(('127.0.0.1', 0), "
        "http.server.BaseHTTPRequestHandler).serve_forever, daemon=True).start()"
    )
    [(name, kind)] = _losses(kernel)
    assert name.startswith("Thread-")
    assert name.endswith("(serve_forever)")
    assert kind == "threading.Thread"
    _, result = kernel.capture()
    assert [loss["name"] for loss in result["losses"]] == [name]


def test_a_timer_is_a_loss_and_says_what_it_would_call(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute(
        "import threading\nhits = []\ntimer = threading.Timer(3600, hits.append, [1]); timer.daemon = True\n"
        "timer.start(); del timer"
    )
    [(name, kind)] = _losses(kernel)
    assert name.endswith("(append)")
    assert kind == "threading.Timer"


def test_a_thread_that_a_variable_or_a_list_holds_is_said_once(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute(
        "import threading\nkeep = threading.Thread(target=threading.Event().wait, daemon=True); keep.start()\n"
        "crew = [threading.Thread(target=threading.Event().wait, daemon=True)]; crew[0].start()"
    )
    answer = kernel.control(op="inventory", wait=60)
    assert sorted(loss["path"] for loss in answer["losses"]) == ["crew[0]", "keep"]


def test_work_in_a_pool_is_a_loss_and_an_idle_pool_is_none(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("import concurrent.futures, threading\npool = concurrent.futures.ThreadPoolExecutor(1)")
    kernel.execute("pool.submit(len, '').result()")
    assert kernel.value("len(pool._threads)") == "1"
    assert _losses(kernel) == []
    kernel.execute(
        "started, go = threading.Event(), threading.Event()\ndef work(): started.set(); go.wait()\n"
        "for _ in range(3): pool.submit(work)\nassert started.wait(30)"
    )
    answer = kernel.control(op="inventory", wait=60)
    [worker] = [loss for loss in answer["losses"] if loss["name"] != "pool"]
    assert worker["name"] == "ThreadPoolExecutor-0_0 (work)"
    assert worker["reason"].endswith("lost as well: 2.")
    kernel.execute("go.set(); pool.shutdown(wait=True)")
    assert _losses(kernel) == []


def test_work_in_a_pool_that_nothing_holds_is_a_loss(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute(
        "import concurrent.futures, threading\nstarted, go = threading.Event(), threading.Event()\n"
        "def work(): started.set(); go.wait()\n"
        "concurrent.futures.ThreadPoolExecutor(2).submit(work)"  # displayed: an output is no variable
    )
    kernel.execute("assert started.wait(30)")
    assert [name for name, _ in _losses(kernel)] == ["Out", "ThreadPoolExecutor-0_0 (work)"]
    kernel.execute("go.set()")


def test_scheduled_calls_are_losses(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute(
        "import asyncio, functools\nhits = []\ndef later(n): hits.append(n)\nloop = asyncio.get_running_loop()\n"
        "async def note(): pass"
    )
    kernel.execute(
        "loop.call_later(3600, hits.append, 1); loop.call_at(loop.time() + 3600, functools.partial(later, 2))\n"
        "loop.call_later(3600, print, 3)\nloop.call_later(3600, later, 4).cancel()\ndel loop; None"
    )
    assert sorted(_losses(kernel)) == [
        ("scheduled call (append)", "asyncio.TimerHandle"),
        ("scheduled call (later)", "asyncio.TimerHandle"),
        ("scheduled call (print)", "asyncio.TimerHandle"),
    ]


def test_a_thread_without_the_threading_module_is_a_loss(kernel: LiveKernel) -> None:
    kernel.execute(
        "import _thread, threading\nstarted, go = threading.Event(), threading.Event()\n"
        "def work(): started.set(); go.wait()\n_thread.start_new_thread(work, ())\nassert started.wait(30)"
    )
    assert [name for name, _ in _losses(kernel)] == ["thread (work)"]
    kernel.execute("go.set()")


def test_what_serves_the_kernel_or_a_library_is_no_loss(kernel_of_any_python: LiveKernel) -> None:
    """Sleeping cells, shell cells, an idle default executor and libraries of data leave nothing to announce."""
    kernel = kernel_of_any_python
    kernel.execute(
        "import asyncio, time, numpy as np\nx = np.ones((300, 300)) @ np.ones((300, 300))\nawait asyncio.sleep(0.01)\n"
        "await asyncio.wait_for(asyncio.sleep(0.01), 60)\nawait asyncio.to_thread(len, '')"
    )
    kernel.execute("%%bash\ntrue")
    kernel.execute("!true")
    assert _losses(kernel) == []
    _, result = kernel.capture()
    assert result["losses"] == []
    kernel.control(op="unhold")
    kernel.execute("y = 2")
    assert _losses(kernel) == []


def test_imports_of_plotting_and_tables_start_nothing_to_announce(kernel: LiveKernel) -> None:
    kernel.execute("import numpy, pandas\nframe = pandas.DataFrame({'a': [1, 2]}).rolling(2).sum()")
    assert _losses(kernel) == []
