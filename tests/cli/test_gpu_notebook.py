# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""examples/gpu_proof.ipynb is a valid notebook without outputs, and without a GPU it says so in its first cell."""

from __future__ import annotations

import ast
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "gpu_proof.ipynb"


def test_it_is_valid_and_empty() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    for cell in code:
        ast.parse(cell.source.replace("%pause", "pass"), feature_version=(3, 9))
    assert [cell.source for cell in code].count("%pause") == 1


def test_without_a_gpu_it_ends_in_one_sentence() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.raises(nbclient.exceptions.CellExecutionError) as ended:
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert "Neither PyTorch nor CuPy finds a GPU in this kernel." in ended.value.evalue
    ran = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.execution_count]
    assert len(ran) == 1
