# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The table of objects, by family, in the order of the documentation."""

from tests.fidelity.case import Case

from . import definitions, libraries, numpy_, pandas_, plain, system, torch_

FAMILIES: dict[str, list[Case]] = {
    "Values and containers": plain.CASES,
    "Functions, classes and instances": definitions.CASES,
    "Files, threads, processes, databases": system.CASES,
    "NumPy": numpy_.CASES,
    "pandas": pandas_.CASES,
    "Other libraries": libraries.CASES,
    "PyTorch, without a GPU": torch_.CASES,
}
