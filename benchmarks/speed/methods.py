# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""How each tool saves and loads a namespace. Everything here runs in the worker's process."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Namespace = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
KEY = bytes(64)
ID, SECOND = "0" * 31 + "1", "0" * 31 + "2"


def of_person(namespace: Namespace) -> Namespace:
    """What a person put into the namespace."""
    return {name: value for name, value in namespace.items() if not name.startswith("__") and name != "In"}


# --- ours -------------------------------------------------------------------------------------------------------


def engine() -> Any:
    """The engine's modules, registered as the bootstrap of a kernel registers them."""
    if "jupyter_pause_kernel" not in sys.modules:
        folder = ROOT / "jupyter_pause" / "kernel"
        spec = importlib.util.spec_from_file_location("register", folder / "register.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = importlib.util.find_spec("cloudpickle")
        assert found is not None
        assert found.origin is not None
        module.register(str(Path(found.origin).parent))
    from jupyter_pause_kernel import capture, layout, revive, scan  # type: ignore[import-not-found]

    return types.SimpleNamespace(capture=capture, layout=layout, revive=revive, scan=scan)


def capture(folder: Path, namespace: Namespace, identifier: str = ID) -> dict[str, Any]:
    """Our capture: written and synced, not yet read back."""
    ours = engine()
    staging = folder / "staging" / identifier
    ours.layout.make_private_dir(str(folder / "checkpoints"))
    ours.layout.make_private_dir(str(staging))
    result: dict[str, Any] = ours.capture.capture(
        namespace,
        str(staging),
        {"checkpoint_id": identifier, "kernel_id": "bench"},
        interpreter={},
        hidden={name for name in namespace if name.startswith("__") or name == "In"},
        on_progress=lambda progress: None,
        cancelled=lambda: False,
    )
    assert result["status"] == "ok", result
    return {"lost": sorted({loss["name"] for loss in result["losses"]})}


def commit(folder: Path, identifier: str = ID) -> None:
    """Read back, compare, sign, rename: what the server does before anything is released."""
    engine().layout.commit(str(folder / "staging" / identifier), str(folder / "checkpoints" / identifier), KEY)


def revive(folder: Path, namespace: Namespace) -> None:
    """Our load into the live namespace."""
    result = engine().revive.load(str(folder / "checkpoints" / ID), namespace, secret=KEY)
    assert result["status"] == "ok", result


# --- the others -------------------------------------------------------------------------------------------------


def save_dill(folder: Path, namespace: Namespace) -> None:
    """`dill.dump_module`."""
    import dill

    dill.dump_module(str(folder / "s.pkl"))


def load_dill(folder: Path, namespace: Namespace) -> None:
    """`dill.load_module`."""
    import dill

    dill.load_module(str(folder / "s.pkl"))


def save_cloudpickle(folder: Path, namespace: Namespace) -> None:
    """The whole namespace in one dump."""
    import cloudpickle

    with (folder / "s.pkl").open("wb") as stream:
        cloudpickle.dump(of_person(namespace), stream, protocol=5)


def load_cloudpickle(folder: Path, namespace: Namespace) -> None:
    """One load."""
    with (folder / "s.pkl").open("rb") as stream:
        namespace.update(pickle.load(stream))


def save_joblib(folder: Path, namespace: Namespace) -> None:
    """One dump; joblib cannot save modules."""
    import joblib

    values = {k: v for k, v in of_person(namespace).items() if not isinstance(v, types.ModuleType)}
    joblib.dump(values, folder / "s.jl")


def load_joblib(folder: Path, namespace: Namespace) -> None:
    """One load."""
    import joblib

    namespace.update(joblib.load(folder / "s.jl"))


def _shell(folder: Path) -> Any:
    os.environ["IPYTHONDIR"] = str(folder)
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    shell.run_line_magic("load_ext", "storemagic")
    return shell


def save_store(folder: Path, namespace: Namespace) -> None:
    """`%store name` for every variable; it prints what it cannot save."""
    shell = _shell(folder)
    values = of_person(namespace)
    shell.user_ns.update(values)
    for name in values:
        with redirect_stdout(io.StringIO()):
            try:
                shell.run_line_magic("store", name)
            except Exception:
                continue


def load_store(folder: Path, namespace: Namespace) -> None:
    """`%store -r`."""
    shell = _shell(folder)
    with redirect_stdout(io.StringIO()):
        shell.run_line_magic("store", "-r")
    namespace.update(of_person(shell.user_ns))


def save_elastic(folder: Path, namespace: Namespace) -> None:
    """ElasticNotebook's checkpoint; the cells were run under its eyes (see `worker.build`)."""
    recorder = namespace.pop("__elastic__")
    recorder.checkpoint(str(folder / "c.pickle"))


def load_elastic(folder: Path, namespace: Namespace) -> None:
    """ElasticNotebook's load: reads, and runs cells again."""
    from elastic_notebook import ElasticNotebook

    shell = _shell(folder)
    ElasticNotebook(shell=shell, log_file_dir=str(folder)).load_checkpoint(str(folder / "c.pickle"))
    namespace.update(of_person(shell.user_ns))


def save_kishu(folder: Path, namespace: Namespace) -> dict[str, Any]:
    """Kishu saves after every cell (see `worker.build`): its time is the sum of its hooks."""
    return {"seconds": namespace.pop("__kishu__")}


def load_kishu(folder: Path, namespace: Namespace) -> None:
    """Kishu's checkout of the last commit."""
    import json

    os.environ.update(KISHU_PATH_ROOT=str(folder), ENV_KISHU_TEST_MODE="true")
    shell = _shell(folder)
    from kishu.jupyterint import KishuForJupyter
    from kishu.notebook_id import NotebookId

    kishu = KishuForJupyter(NotebookId("bench", folder / "n.ipynb", "k1"), shell)
    kishu.set_session_id(2)
    kishu.checkout(json.loads((folder / "commit.json").read_text())["commit"], skip_notebook=True)
    namespace.update(of_person(shell.user_ns))


#: name -> (module that must be there, save, load)
METHODS: dict[str, tuple[str, Any, Any]] = {
    "jupyter-pause": ("cloudpickle", capture, revive),
    "cloudpickle": ("cloudpickle", save_cloudpickle, load_cloudpickle),
    "dill": ("dill", save_dill, load_dill),
    "joblib": ("joblib", save_joblib, load_joblib),
    "%store": ("IPython", save_store, load_store),
    "Kishu": ("kishu", save_kishu, load_kishu),
    "ElasticNotebook": ("elastic_notebook", save_elastic, load_elastic),
}
