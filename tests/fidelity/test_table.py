# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Every object of the table ends as the table says: equal, rebuilt, or lost and named before the pause."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel import pythons

from . import environment
from .judge import Table, differences
from .objects import FAMILIES

#: What the test requirements hold anyway; the other libraries are tested with `scripts/test --full` only.
OTHERS = ("Other libraries", "PyTorch, without a GPU")
HERE = [family for family in FAMILIES if family not in OTHERS]


@pytest.mark.parametrize("family", HERE)
def test_each_object_ends_as_the_table_says(family: str, tmp_path: Path) -> None:
    table = Table(FAMILIES[family], tmp_path, pythons.own())
    assert differences(table.verdicts()) == []


@pytest.mark.parametrize("family", HERE)
def test_the_checks_hold_for_objects_that_were_never_paused(family: str, tmp_path: Path) -> None:
    assert Table(FAMILIES[family], tmp_path, pythons.own()).control() == []


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("family", OTHERS)
def test_objects_of_other_libraries(family: str, tmp_path: Path) -> None:
    table = Table(FAMILIES[family], tmp_path, str(environment.python_for(family)))
    assert table.control() == []
    assert differences(table.verdicts()) == []


def test_the_published_page_has_every_object_with_what_became_of_it() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "fidelity.md").read_text(encoding="utf-8")
    rows = {tuple(part.strip() for part in line.split("|")[1:3]) for line in page.splitlines() if line.startswith("| ")}
    wanted = {(case.name, f"**{case.fate}**") for cases in FAMILIES.values() for case in cases}
    assert wanted - rows == set(), "run python -m benchmarks.fidelity"


def test_the_table_is_large_and_names_nothing_twice() -> None:
    names = [case.name for cases in FAMILIES.values() for case in cases]
    assert len(names) == len(set(names)) >= 300
