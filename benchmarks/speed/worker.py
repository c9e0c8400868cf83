# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""One measurement in a process of its own: ``python worker.py JSON`` writes a JSON object to the file it is told.

The process's `__main__` holds nothing but the workload, so that code of a notebook is saved as such. Imports are made
before the clock starts: every kernel pays for them.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import sys
import time
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import limits
import methods
import workloads


def memory(field: str) -> float:
    """A line of /proc/self/status in MB; 0 where there is none."""
    try:
        found = re.search(field + r":\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return 0.0
    return int(found.group(1)) / 1024 if found else 0.0


def forget_peak() -> None:
    """Let the system begin a new peak."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def cell(namespace: dict[str, Any], text: str) -> None:
    """Run one cell as IPython would keep it."""
    import linecache

    inputs = namespace.setdefault("In", [""])
    name = f"<cell-{os.getpid()}-{len(inputs)}>"
    inputs.append(text)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)


def build(tool: str, cells: list[str], namespace: dict[str, Any], folder: Path) -> None:
    """Run the cells; under the eyes of the tools that want to see every one."""
    if tool == "ElasticNotebook":
        from elastic_notebook import ElasticNotebook

        shell = methods._shell(folder)
        recorder = ElasticNotebook(shell=shell, log_file_dir=str(folder))
        for text in cells:
            before, began = set(shell.user_ns), time.time()
            shell.run_cell(text, store_history=True).raise_error()
            recorder.record_event(shell.transform_cell(text), before, began, time.time() - began)
        namespace["__elastic__"] = recorder
    elif tool == "Kishu":
        namespace["__kishu__"] = _build_for_kishu(cells, folder)
    else:
        for text in cells:
            cell(namespace, text)
    gc.collect()


def _build_for_kishu(cells: list[str], folder: Path) -> float:
    import nbformat

    os.environ.update(KISHU_PATH_ROOT=str(folder), ENV_KISHU_TEST_MODE="true")
    nbformat.write(nbformat.v4.new_notebook(), folder / "n.ipynb")
    shell = methods._shell(folder)
    from kishu.jupyterint import KishuForJupyter
    from kishu.notebook_id import NotebookId

    kishu = KishuForJupyter(NotebookId("bench", folder / "n.ipynb", "k0"), shell)
    spent = 0.0

    def timed(hook: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal spent
            began = time.perf_counter()
            try:
                return hook(*arguments)
            finally:
                spent += time.perf_counter() - began

        return call

    shell.user_ns["_kishu"] = kishu
    shell.events.register("pre_run_cell", timed(kishu.pre_run_cell))
    shell.events.register("post_run_cell", timed(kishu.post_run_cell))
    for text in cells:
        shell.run_cell(text, store_history=True).raise_error()
    (folder / "commit.json").write_text(json.dumps({"commit": f"0:0:{kishu._last_execution_count}"}))
    return spent


def fsync_tree(folder: Path) -> None:
    """Make durable what a tool only handed to the system."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def bytes_in(folder: Path) -> int:
    """Bytes on disk; a file with several names counts once."""
    sizes = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if path.is_file():
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def save(job: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """Build, save, sync."""
    folder, workload = Path(job["folder"]), workloads.WORKLOADS[job["workload"]]
    module, function, _ = methods.METHODS[job["tool"]]
    build(job["tool"], workload.cells(job["size"]), namespace, folder)
    importlib.import_module(module)
    if job["tool"] == "jupyter-pause":
        methods.engine()
    before = memory("VmRSS")
    forget_peak()
    began = time.perf_counter()
    said = function(folder, namespace) or {}
    saved = time.perf_counter()
    fsync_tree(folder)
    ended = time.perf_counter()
    return {
        "save": said.get("seconds", saved - began),
        "fsync": ended - saved,
        "peak": memory("VmHWM") - before,
        "bytes": bytes_in(folder),
        "lost": said.get("lost"),
    }


def load(job: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """Load, use everything once, check; for ours then change one per cent and save again."""
    folder, workload = Path(job["folder"]), workloads.WORKLOADS[job["workload"]]
    for name in job["imports"]:
        importlib.import_module(name)
    module, _, function = methods.METHODS[job["tool"]]
    importlib.import_module(module)
    if job["tool"] == "jupyter-pause":
        methods.engine()
    before = memory("VmRSS")
    forget_peak()
    began = time.perf_counter()
    function(folder, namespace)
    loaded = time.perf_counter()
    answer = {"load": loaded - began, "peak": memory("VmHWM") - before}
    if "big" in namespace:
        touched = time.perf_counter()
        limits.touch(memoryview(namespace["big"]).cast("B"))
        answer["touch"] = time.perf_counter() - touched
    answer["wrong"] = workloads.check(workload, namespace)
    if job["tool"] == "jupyter-pause" and workload.change:
        for text in workload.change:
            cell(namespace, text)
        held = bytes_in(folder)
        began = time.perf_counter()
        methods.capture(folder, namespace, methods.SECOND)
        answer["second"] = time.perf_counter() - began
        answer["second_bytes"] = bytes_in(folder) - held
    return answer


def read_back(job: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """The server's part of a pause: everything from the disk again, hashed."""
    methods.engine()
    began = time.perf_counter()
    methods.commit(Path(job["folder"]), job["id"])
    return {"read_back": time.perf_counter() - began}


def measure_limits(job: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """The machine itself, with as many bytes as the largest workload."""
    return limits.measure(Path(job["folder"]), job["bytes"])


def main() -> None:
    """Do one job."""
    job = json.loads(sys.argv[1])
    work = {"save": save, "load": load, "read_back": read_back, "limits": measure_limits}[job["work"]]
    person = types.ModuleType("__main__")
    sys.modules["__main__"] = person
    try:
        answer = work(job, person.__dict__)
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:300]}
    Path(job["out"]).write_text(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # nobody waits for the tidying of millions of objects


main()
