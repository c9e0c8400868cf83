# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The virtual environments with the libraries of the table: made once, in a cache outside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

#: Exact versions: the published table says what became of objects of these. The peers are among them.
REQUIREMENTS = """
ipykernel==7.4.0 cloudpickle==3.1.3 dill==0.4.1
numpy==2.4.6 pandas==3.1.1 scipy==1.17.1 scikit-learn==1.9.1 lightgbm==4.7.0 statsmodels==0.15.0 matplotlib==3.11.2
pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1 sqlalchemy==2.1.9 pillow==13.0.0 tqdm==4.70.1 requests==2.34.2 httpx==0.28.1
boto3==1.44.8 pydantic==2.14.4 attrs==26.1.0 ipywidgets==8.1.9 sympy==1.14.0 networkx==3.6.1 xarray==2026.9.0
plotly==7.1.0 jinja2==3.1.6 lxml==6.1.3 beautifulsoup4==4.15.0 h5py==3.16.0
""".split()

#: PyTorch has an environment of its own: it is larger than all the others together.
TORCH = "ipykernel==7.4.0 cloudpickle==3.1.3 dill==0.4.1 numpy==2.4.6 torch==2.15.0".split()

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jupyter-pause"


def python_for(family: str) -> Path:
    """The interpreter for one family of the table."""
    return python(TORCH if "PyTorch" in family else REQUIREMENTS)


def python(requirements: list[str] = REQUIREMENTS) -> Path:
    """Its interpreter; made and filled where it is not there yet. Raises CalledProcessError."""
    key = hashlib.sha256(repr((sys.version, sys.base_prefix, requirements)).encode()).hexdigest()[:16]
    folder = CACHE / f"fidelity-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        interpreter = folder / "bin" / "python"
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            install = [str(interpreter), "-m", "pip", "install", "--progress-bar", "off", "-q", *requirements]
            subprocess.run(install, check=True)
        (folder / "complete").touch()
    return interpreter
