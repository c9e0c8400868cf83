# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Requests to JupyterHub's REST API, one connection each: none stays open (Tornado's simple client keeps none)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tornado.httpclient import HTTPClientError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import HTTPStreamClosedError, HTTPTimeoutError, SimpleAsyncHTTPClient

from jupyter_pause.errors import PauseError

#: Seconds for one request. The Hub itself answers a stop after its `slow_stop_timeout` (10 s) at the latest.
LIMIT = 15.0
#: Characters of the Hub's own message that are kept.
MESSAGE = 300


class HubError(PauseError):
    """hub_forbidden {scope}, hub_unauthorized, hub_not_found, hub_refused {status, message}, hub_unreachable {why}."""


class HubApi:
    """Asks as the server that we are: with the token of its environment, read at every request."""

    def __init__(self, api_url: str, environ: Mapping[str, str] = os.environ) -> None:
        self._url = api_url.rstrip("/")
        self._environ = environ

    async def whoami(self) -> dict[str, Any]:
        """The token's owner with `scopes`, in expanded form. Raises HubError."""
        return await self._json("GET", "user", scope="")

    async def user(self, name: str) -> dict[str, Any]:
        """The user's model with `servers`, also stopped ones. Raises HubError."""
        path = f"users/{quote(name, safe='')}?include_stopped_servers=1"
        return await self._json("GET", path, scope="read:servers")

    async def stop(self, user: str, server: str) -> int:
        """Stop a server: 204 when it has stopped, 202 while it is being stopped. Raises HubError."""
        response = await self._send("DELETE", server_path(user, server), scope="delete:servers")
        return int(response.code)

    async def start(self, user: str, server: str) -> int:
        """Start a server: 201 when it runs, 202 while it is being started. Raises HubError."""
        response = await self._send("POST", server_path(user, server), scope="start:servers")
        return int(response.code)

    async def _json(self, method: str, path: str, *, scope: str) -> dict[str, Any]:
        response = await self._send(method, path, scope=scope)
        try:
            found = json.loads(response.body)
        except ValueError:
            found = None
        if not isinstance(found, dict):  # somebody between us and the Hub answered
            raise HubError("hub_unreachable", why="garbled")
        return found

    async def _send(self, method: str, path: str, *, scope: str) -> HTTPResponse:
        client = SimpleAsyncHTTPClient(force_instance=True)
        try:
            return await client.fetch(self._request(method, path))
        except (HTTPTimeoutError, HTTPStreamClosedError) as error:
            why = "timeout" if isinstance(error, HTTPTimeoutError) else "closed"
            raise HubError("hub_unreachable", why=why) from error
        except HTTPClientError as error:
            raise _error_of(error, scope) from error
        except (OSError, ValueError) as error:
            raise HubError("hub_unreachable", why="refused") from error
        finally:
            client.close()

    def _request(self, method: str, path: str) -> HTTPRequest:
        get = self._environ.get
        return HTTPRequest(
            f"{self._url}/{path}",
            method=method,
            headers={"Authorization": f"token {get('JUPYTERHUB_API_TOKEN', '')}", "Accept": "application/json"},
            body=b"" if method == "POST" else None,
            request_timeout=LIMIT,
            connect_timeout=LIMIT,
            follow_redirects=False,
            # With `internal_ssl` the Hub wants to see our certificate.
            client_key=get("JUPYTERHUB_SSL_KEYFILE") or None,
            client_cert=get("JUPYTERHUB_SSL_CERTFILE") or None,
            ca_certs=get("JUPYTERHUB_SSL_CLIENT_CA") or None,
        )


def server_path(user: str, server: str) -> str:
    """The path of a server below the API; "" is the default one."""
    quoted = quote(user, safe="")
    return f"users/{quoted}/servers/{quote(server, safe='')}" if server else f"users/{quoted}/server"


def _error_of(error: HTTPClientError, scope: str) -> HubError:
    if error.code == 403:
        return HubError("hub_forbidden", scope=scope)
    if error.code == 401:
        return HubError("hub_unauthorized")
    if error.code == 404:
        # The Hub also says so of what a token may not see.
        return HubError("hub_not_found", scope=scope)
    if error.code >= 500:
        return HubError("hub_unreachable", why=f"status {error.code}")
    return HubError("hub_refused", status=error.code, message=_message(error.response))


def _message(response: HTTPResponse | None) -> str:
    """The Hub's own sentence, without anything else of its answer."""
    try:
        found = json.loads(response.body)["message"] if response is not None else ""
    except (ValueError, KeyError, TypeError):
        return ""
    return str(found)[:MESSAGE]
