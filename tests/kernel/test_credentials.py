# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects that hold credentials by their kind come back whole, and it is said before the click that they are stored."""

from __future__ import annotations

import pytest

from .livekernel import LiveKernel

CASES = {
    "requests": (
        "import requests\nx = requests.Session()\nplain = requests.Session()\n"
        "x.headers['Authorization'] = 'Bearer hunter22'\nx.auth = ('me', 'hunter22')\nx.cookies['sid'] = 'hunter22'",
        "x.headers['Authorization'], x.auth, x.cookies['sid']",
        "('Bearer hunter22', ('me', 'hunter22'), 'hunter22')",
        "it comes back with its login and headers and cookies, so the checkpoint holds them",
    ),
    "httpx": (
        "import httpx\nplain = httpx.Client()\n"
        "x = httpx.Client(headers={'X-Api-Key': 'hunter22'}, cookies={'sid': 'hunter22'})",
        "x.headers['x-api-key'], x.cookies['sid']",
        "('hunter22', 'hunter22')",
        "it comes back with its headers and cookies, so the checkpoint holds them",
    ),
    "sqlalchemy": (
        # An engine for a server needs that server's driver; its address alone may be given to one without.
        "import sqlalchemy\nplain = sqlalchemy.create_engine('sqlite:///b')\nx = sqlalchemy.create_engine('sqlite:///a')\n"
        "x.url = address = sqlalchemy.make_url('postgresql://me:hunter22@db.example/a')",
        "x.url.password, address is x.url",
        "('hunter22', True)",
        "it comes back with its user name and password, so the checkpoint holds them",
    ),
}


@pytest.mark.parametrize("library", CASES)
def test_credentials_come_back_and_are_told_before(kernel: LiveKernel, library: str) -> None:
    pytest.importorskip(library)
    cell, check, value, reason = CASES[library]
    answer = kernel.execute(cell)
    assert answer.status == "ok", answer.error
    seen = {item["name"]: item for item in kernel.control(op="inventory", wait=60)["variables"]}
    assert (seen["x"]["fate"], seen["x"]["reason"]) == ("in checkpoint", reason)
    assert seen["plain"]["reason"] is None
    checkpoint = kernel.save()
    saved = {item["name"]: item for item in kernel.manifest(checkpoint)["variables"]}
    assert saved["x"]["reason"] == reason and "hunter22" not in str(saved)
    result = kernel.resume(checkpoint)
    assert result["outcome"] == "restored", result
    assert kernel.value(check) == value
