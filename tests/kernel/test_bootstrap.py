# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A kernel started through our bootstrap is a stock one with more in it, and starts whatever is wrong with us."""

from __future__ import annotations

import ast
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .livekernel import KERNEL_FOLDER, LiveKernel

#: What a notebook can see of how its process was started.
LOOK = """{
    "argv0": sys.argv[0], "options": [a for a in sys.argv[1:] if not a.endswith(".json")],
    "path": sys.path, "name": __name__, "is_main": sys.modules["__main__"].__dict__ is globals(),
    "main_spec": getattr(sys.modules["__main__"], "__spec__", None),
    "main_file": hasattr(sys.modules["__main__"], "__file__"),
    "names": sorted(n for n in globals() if not n.startswith("_i") and n != "sys"),
    "cwd": os.getcwd(), "hook": sys.excepthook.__qualname__,
    "extensions": sorted(get_ipython().extension_manager.loaded),
    "started_up": globals().get("from_startup"), "exec_line": globals().get("from_exec_lines"),
    "env": sorted(n for n in os.environ if "PAUSE" in n),
    "magics": sorted(set(get_ipython().magics_manager.lsmagic()["line"]) - {"pause", "resume"}),
    "count": get_ipython().execution_count,
}"""


def _look(kernel: LiveKernel) -> dict[str, object]:
    kernel.execute("import sys, os")
    seen: dict[str, object] = ast.literal_eval(kernel.value(LOOK))
    return seen


def test_looks_like_a_stock_kernel(new_kernel: Callable[..., LiveKernel], any_python: str, tmp_path: Path) -> None:
    startup = tmp_path / "run" / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("from_startup = 'yes'\n")
    (startup.parent / "ipython_kernel_config.py").write_text(
        "c.InteractiveShellApp.exec_lines = ['from_exec_lines = 5']\n"
        "c.InteractiveShellApp.extensions = ['autoreload']\n"
    )
    ours = new_kernel(any_python)
    ours.write_kernel_file()
    stock = new_kernel(any_python, command=["-m", "ipykernel_launcher"])
    seen, wanted = _look(ours.start()), _look(stock.start())
    assert seen == wanted
    assert seen["started_up"] == "yes"
    assert seen["exec_line"] == 5
    assert str(seen["argv0"]).endswith("ipykernel_launcher.py")


def test_children_start_as_from_a_stock_kernel(kernel: LiveKernel) -> None:
    """multiprocessing's spawn looks at __main__: nothing of ours may be run again in a child."""
    kernel.execute("import multiprocessing, os, operator")
    code = "with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.apply(operator.add, (2, 3)))"
    assert kernel.execute(code).printed == "5\n"


def test_magics_are_there_in_every_python(kernel_of_any_python: LiveKernel) -> None:
    assert kernel_of_any_python.execute("%pause --help").text.startswith("Pause this kernel")
    assert "--accept-loss" in kernel_of_any_python.value("get_ipython().find_line_magic('pause').__doc__")
    assert "nothing to resume" in kernel_of_any_python.execute("%resume").text
    status = kernel_of_any_python.control(op="status")
    assert status["available"] is True, status
    assert status["pid"] == kernel_of_any_python.pid


def test_without_files_of_a_server_it_is_a_plain_kernel(new_kernel: Callable[..., LiveKernel]) -> None:
    kernel = new_kernel().start()
    assert kernel.execute("1 + 1").text == "2"
    answer = kernel.execute("%pause")
    assert answer.status == "ok"
    assert "not started by a Jupyter server with jupyter-pause" in answer.text
    assert kernel.execute("1 + 2").text == "3"


def _broken_copy(tmp_path: Path, name: str, text: str) -> Path:
    copy = tmp_path / "broken"
    shutil.copytree(KERNEL_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / name).write_text(text)
    return copy / "bootstrap.py"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agent.py", "this is not Python"),
        ("agent.py", "def install(app, file): raise RuntimeError('no')"),
        ("__init__.py", "raise SystemError('no')"),
        ("layout.py", "raise ImportError('no')"),
        ("files.py", "import a_module_that_does_not_exist"),
    ],
)
def test_whatever_is_wrong_with_us_the_kernel_starts_and_says_failed(
    new_kernel: Callable[..., LiveKernel], tmp_path: Path, name: str, text: str
) -> None:
    kernel = new_kernel(command=[str(_broken_copy(tmp_path, name, text))])
    kernel.write_kernel_file()
    path = kernel.write_load_file("0" * 32)
    kernel.start()
    answer = kernel.execute("print(6 * 7)")
    assert answer.printed == "42\n"
    result = json.loads(path.read_bytes())
    assert (result["status"], result["outcome"]) == ("failed", "fresh")
    assert result["message"]
    assert path.stat().st_mode & 0o077 == 0
    assert not kernel.load_file.exists()


def test_a_load_file_that_others_could_have_written_is_not_believed(new_kernel: Callable[..., LiveKernel]) -> None:
    kernel = new_kernel()
    kernel.write_kernel_file()
    path = kernel.write_load_file("0" * 32)
    os.chmod(kernel.load_file, 0o666)
    kernel.start()
    assert kernel.execute("1 + 1").text == "2"
    assert not path.exists()
    assert not kernel.load_file.exists()
    assert any("load" in problem for problem in kernel.control(op="status")["problems"])


def test_a_mark_is_known_to_its_own_process_only(kernel: LiveKernel) -> None:
    import hashlib

    noted = kernel.control(op="mark", renew=True)["digest"]
    assert kernel.control(op="mark")["digest"] == noted
    proof = kernel.control(op="prove", nonce="n")
    assert hashlib.sha256(bytes.fromhex(proof["mark"])).hexdigest() == noted
    assert proof["nonce"] == "n"
    kernel.end()
    kernel.start()
    proof = kernel.control(op="prove", nonce="n")
    assert hashlib.sha256(bytes.fromhex(proof["mark"])).hexdigest() != noted
