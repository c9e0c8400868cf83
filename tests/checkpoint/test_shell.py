# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.

"""What only a real kernel has: IPython's shell, its history, plotting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel import pythons
from tests.kernel.livekernel import LiveKernel


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[LiveKernel]:
    """A running kernel, started through our bootstrap."""
    made = LiveKernel(tmp_path, pythons.own())
    made.write_kernel_file()
    yield made.start()
    made.close()


def test_S03_the_shell_in_a_variable_is_the_live_one(kernel: LiveKernel) -> None:
    kernel.execute("ip = get_ipython(); again = get_ipython; box = {'shell': ip, 'kernel': ip.kernel}")
    kernel.execute("try:\n    get_ipython().run_line_magic('matplotlib', 'inline')\nexcept Exception: pass")
    kernel.execute("df = {'a': [1]}")
    kernel.execute("df")
    kernel.execute("import sys; out = sys.stdout; bound = ip.push")
    result = kernel.resume(kernel.save())
    assert result["outcome"] == "restored", result
    assert kernel.value("ip is get_ipython() and again() is ip and box['shell'] is ip") == "True"
    assert kernel.value("box['kernel'] is ip.kernel and bound.__self__ is ip") == "True"
    assert kernel.value("out is __import__('sys').stdout") == "True"
    assert kernel.value("df, Out[4] is df") == "({'a': [1]}, True)"
    kernel.execute("ip.push({'pushed': 3})")
    assert kernel.value("pushed") == "3"


def test_S04_lost_and_kept_after_a_resume_in_a_kernel(kernel: LiveKernel) -> None:
    kernel.execute("import socket\na = 1\nf = lambda x: x + a")
    kernel.execute("s = socket.socket()")
    kernel.execute("g = (i for i in range(3)); g")
    result = kernel.resume(kernel.save())
    assert {(loss["path"], loss["cell"]) for loss in result["losses"]} >= {("s", 2), ("g", 3)}
    assert kernel.value("a, f(2)") == "(1, 3)"
    answer = kernel.execute("next(g)")
    assert answer.status == "error"
    assert "g (generator), made in cell 3, did not come back" in answer.error
    shown = kernel.execute("g")
    assert shown.status == "ok" and "lost" in shown.text
    assert kernel.execute("f??").status == "ok"


def test_tracebacks_and_source_of_restored_functions(kernel: LiveKernel) -> None:
    kernel.execute("def broken(x):\n    y = x + 1\n    return y / 0  # here")
    kernel.resume(kernel.save())
    answer = kernel.execute(
        "import traceback\ntry: broken(1)\nexcept ZeroDivisionError: traceback.print_exc(file=__import__('sys').stdout)"
    )
    assert "return y / 0  # here" in answer.printed
    assert "return y / 0" in kernel.execute("import inspect; print(inspect.getsource(broken))").printed
