# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The documentation names every trait, every REST call and every command, and links to pages that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from jupyter_pause.app import PauseApp

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_trait_is_documented_with_its_name() -> None:
    page = (DOCS / "operators" / "configuration.md").read_text(encoding="utf-8")
    traits = PauseApp.class_own_traits(config=True)
    assert traits
    assert [name for name in traits if f"PauseApp.{name}" not in page] == []


def test_every_documented_trait_exists() -> None:
    pages = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    named = {name for page in pages for name in re.findall(r"PauseApp\.([a-z_]+)", page.read_text(encoding="utf-8"))}
    assert named - set(PauseApp.class_own_traits(config=True)) == set()


def test_every_rest_call_is_documented() -> None:
    contract = yaml.safe_load((ROOT / "jupyter_pause" / "openapi.yaml").read_text(encoding="utf-8"))
    page = (DOCS / "users" / "rest.md").read_text(encoding="utf-8")
    calls = [
        f"`{verb.upper()} {path}`"
        for path, verbs in contract["paths"].items()
        for verb in verbs
        if verb in ("get", "post", "put", "patch", "delete")
    ]
    assert calls
    assert [call for call in calls if call not in page] == []


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]), ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target
