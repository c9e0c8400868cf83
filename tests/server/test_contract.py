# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""openapi.yaml is the contract: the records, the routes and the error codes must fit it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_spec_validator import validate

import jupyter_pause
from jupyter_pause import errors, states
from jupyter_pause.handlers import ROUTES, UnknownCallHandler

CONTRACT: dict[str, Any] = yaml.safe_load((Path(jupyter_pause.__file__).parent / "openapi.yaml").read_text())
SCHEMAS = CONTRACT["components"]["schemas"]
RECORDS = sorted(name for name in SCHEMAS if hasattr(states, name) and hasattr(getattr(states, name), "model_fields"))


def test_contract_is_valid_openapi() -> None:
    validate(CONTRACT)


def test_records_are_compared() -> None:
    assert {"ServerState", "KernelRow", "Operation", "Inventory", "ResumeReport", "PauseRequest"} <= set(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_record_has_the_fields_of_the_contract(name: str) -> None:
    model = getattr(states, name)
    fields = {field.alias or key for key, field in model.model_fields.items()}
    assert fields == set(SCHEMAS[name]["properties"])


@pytest.mark.parametrize("name", ["State", "Phase", "Outcome", "Fate"])
def test_words_are_those_of_the_contract(name: str) -> None:
    assert list(getattr(states, name).__args__) == SCHEMAS[name]["enum"]


def test_every_route_is_in_the_contract_and_back() -> None:
    ours = {re.sub(r"\([^)]*\)", "{}", path) for path, handler in ROUTES if handler is not UnknownCallHandler}
    theirs = {re.sub(r"\{[^}]*\}", "{}", path.lstrip("/")) for path in CONTRACT["paths"]}
    assert ours == theirs


def test_every_verb_of_the_contract_is_there() -> None:
    handlers = {re.sub(r"\([^)]*\)", "{}", path): handler for path, handler in ROUTES}
    for path, calls in CONTRACT["paths"].items():
        handler = handlers[re.sub(r"\{[^}]*\}", "{}", path.lstrip("/"))]
        for verb in calls:
            if verb in ("get", "post", "delete"):
                assert verb in handler.__dict__, f"{verb} {path}"


@pytest.mark.parametrize("code", sorted(errors.SENTENCES))
def test_every_error_is_one_clear_sentence_with_a_fitting_status(code: str) -> None:
    error = errors.PauseError(code)
    assert 400 <= error.status <= 503
    assert error.sentence.endswith(".") and "{" not in error.sentence
