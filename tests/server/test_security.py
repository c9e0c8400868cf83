# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Who may call what, and which ids are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_pause.handlers import AUTH_RESOURCE, extension_handlers

from .conftest import Driver

EXAMPLES = {
    r"operations/([^/]+)": "operations/0123456789abcdef0123456789abcdef",
    r"checkpoints/([^/]+)": "checkpoints/0123456789abcdef0123456789abcdef",
    r".*": "anything/else",
}
CALLS = [
    (verb, EXAMPLES.get(path.removeprefix("/jupyter-pause/api/"), path.removeprefix("/jupyter-pause/api/")))
    for path, handler in extension_handlers()
    for verb in ("GET", "POST", "DELETE")
    if verb.lower() in handler.__dict__
]


@pytest.mark.parametrize(("verb", "path"), CALLS)
async def test_S51_every_route_refuses_people_who_did_not_log_in(
    verb: str, path: str, driver: Driver, http_server_client: Any, jp_base_url: str
) -> None:
    for headers in ({}, {"Authorization": "token wrong"}, {"Cookie": "username-localhost=other-user"}):
        response = await http_server_client.fetch(
            f"{jp_base_url}jupyter-pause/api/{path}",
            method=verb,
            headers=headers,
            body="{}" if verb == "POST" else None,
            raise_error=False,
            follow_redirects=False,
        )
        assert response.code == 403, (verb, path, response.code)


@pytest.mark.parametrize(("verb", "path"), CALLS)
async def test_S51_every_route_asks_the_authorizer(verb: str, path: str, driver: Driver, jp_serverapp: Any) -> None:
    asked: list[tuple[str, str]] = []

    def refuse(handler: Any, user: Any, action: str, resource: str) -> bool:
        asked.append((action, resource))
        return False

    jp_serverapp.authorizer.is_authorized = refuse
    call = driver._fetch("jupyter-pause", "api", *path.split("/"), method=verb, body="{}" if verb == "POST" else None)
    with pytest.raises(HTTPClientError) as caught:
        await call
    assert caught.value.code == 403
    assert asked == [({"GET": "read"}.get(verb, "write"), AUTH_RESOURCE)]


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("pause", ("write", "kernels")),
        ("resume", ("write", "kernels")),
        ("resume", ("execute", "kernels")),
        ("resume", ("write", "sessions")),
    ],
)
async def test_pause_and_resume_need_rights_on_kernels_too(
    path: str, missing: tuple[str, str], driver: Driver, jp_serverapp: Any
) -> None:
    jp_serverapp.authorizer.is_authorized = lambda handler, user, action, resource: (action, resource) != missing
    status, _ = await driver.error(driver.post(path, kernel="x") if path == "resume" else driver.post(path))
    assert status == 403


async def test_S52_a_cookie_without_the_cross_site_token_is_refused(
    driver: Driver, http_server_client: Any, jp_base_url: str, jp_serverapp: Any
) -> None:
    url = f"{jp_base_url}jupyter-pause/api/pause"
    login = await http_server_client.fetch(
        f"{jp_base_url}tree?token={jp_serverapp.identity_provider.token}", raise_error=False, follow_redirects=False
    )
    cookies = [value.split(";")[0] for value in login.headers.get_list("Set-Cookie")]
    assert any("username" in cookie for cookie in cookies)
    xsrf = next((c.split("=", 1)[1] for c in cookies if c.startswith("_xsrf=")), None)
    if xsrf is None:
        page = await http_server_client.fetch(
            f"{jp_base_url}api/me", headers={"Cookie": "; ".join(cookies)}, raise_error=False
        )
        cookies += [value.split(";")[0] for value in page.headers.get_list("Set-Cookie") if value.startswith("_xsrf")]
        xsrf = next(c.split("=", 1)[1] for c in cookies if c.startswith("_xsrf="))
    headers = {"Cookie": "; ".join(cookies), "Content-Type": "application/json"}
    refused = await http_server_client.fetch(url, method="POST", headers=headers, body="{}", raise_error=False)
    assert refused.code == 403
    allowed = await http_server_client.fetch(
        url, method="POST", headers={**headers, "X-XSRFToken": xsrf}, body="{}", raise_error=False
    )
    assert allowed.code == 409 and json.loads(allowed.body)["code"] == "nothing_to_pause"


HOSTILE = [
    "..",
    "..%2F..%2Fsecret",
    "%2e%2e%2fsecret",
    "%2Fetc%2Fpasswd",
    "a%00b",
    "x" * 300,
    "0" * 31,
    "G" * 32,
    "%20",
]


@pytest.mark.parametrize("bad", HOSTILE)
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_S50_hostile_ids_are_refused_and_touch_nothing(verb: str, bad: str, driver: Driver) -> None:
    before = sorted(str(p) for p in driver.store.parent.rglob("*"))
    call = driver._fetch(f"jupyter-pause/api/checkpoints/{bad}", method=verb)
    with pytest.raises(HTTPClientError) as caught:
        await call
    assert caught.value.code in (400, 404), bad
    assert sorted(str(p) for p in driver.store.parent.rglob("*")) == before


async def test_S50_a_symlink_in_the_store_is_not_followed(driver: Driver, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "manifest.json").write_text("{}")
    (driver.store / "checkpoints").mkdir(parents=True, exist_ok=True)
    (driver.store / "checkpoints" / ("a" * 32)).symlink_to(victim)
    status, error = await driver.error(driver.delete("checkpoints", "a" * 32, force="true"))
    assert status in (400, 404) and error["code"] in ("bad_id", "not_found")
    assert (victim / "manifest.json").exists()


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"kernels": "x"}', b'{"unknown": 1}', b'{"on_loss": "maybe"}', b'{"kernels": [1]}', b"\xff"],
)
async def test_bad_bodies_get_a_4xx_with_a_stable_code(body: bytes, driver: Driver) -> None:
    for path in ("pause", "resume", "documents"):
        with pytest.raises(HTTPClientError) as caught:
            await driver._fetch("jupyter-pause", "api", path, method="POST", body=body)
        assert caught.value.response is not None
        assert 400 <= caught.value.code < 500
        assert json.loads(caught.value.response.body)["code"] in ("bad_request", "nothing_to_pause")


async def test_everything_on_disk_is_owner_only(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, "x = 1")
    await driver.pause(kernel)
    files = [driver.store, *driver.store.rglob("*")]
    assert len(files) > 5
    for path in files:
        assert path.stat().st_mode & 0o077 == 0, path
