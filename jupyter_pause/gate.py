# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Holds requests about kernels and sessions until the sessions of an earlier server have been taken over.

One `GET /api/sessions` too early deletes session rows, and one `GET /api/kernels` without the old kernels makes
JupyterLab give its open connections up. So such requests simply wait, which takes milliseconds; an error at once
(even 503) would open JupyterLab's "Server Connection Error".
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from tornado import httputil, web
from tornado.routing import Matcher, Router, Rule

if TYPE_CHECKING:
    from collections.abc import Awaitable

#: Seconds after which a held request is answered 503 ("come back later"; clients of Jupyter then try again).
LIMIT = 10.0


class AdoptionGate:
    """Closed from construction until `open()`; afterwards it is not in the way of any request."""

    def __init__(self, server_app: Any, limit: float = LIMIT) -> None:
        self._application: web.Application = server_app.web_app
        self._opened = asyncio.Event()
        self._limit = limit
        base = re.escape(server_app.web_app.settings["base_url"].rstrip("/"))
        self._pattern = re.compile(rf"{base}/api/(kernels|sessions)(/.*)?")
        # A rule before all others, not another handler class: other extensions replace those.
        self._rule = Rule(_Held(self), _GateRouter(self))
        self._application.default_router.rules.insert(0, self._rule)

    def holds(self, request: httputil.HTTPServerRequest) -> bool:
        """Whether a request has to wait."""
        return not self._opened.is_set() and self._pattern.fullmatch(request.path) is not None

    def open(self) -> None:
        """Let everything through, for good."""
        self._opened.set()
        if self._rule in self._application.default_router.rules:
            self._application.default_router.rules.remove(self._rule)

    async def delegate_for(self, request: httputil.HTTPServerRequest) -> httputil.HTTPMessageDelegate:
        """Who answers a held request: the real handler once the gate is open, 503 when that takes too long."""
        try:
            await asyncio.wait_for(self._opened.wait(), self._limit)
        except TimeoutError:
            return self._application.get_handler_delegate(request, _ComeBackLater)
        return self._application.find_handler(request)


class _Held(Matcher):
    def __init__(self, gate: AdoptionGate) -> None:
        self._gate = gate

    def match(self, request: httputil.HTTPServerRequest) -> dict[str, Any] | None:
        return {} if self._gate.holds(request) else None


class _GateRouter(Router):
    def __init__(self, gate: AdoptionGate) -> None:
        self._gate = gate

    def find_handler(self, request: httputil.HTTPServerRequest, **kwargs: Any) -> httputil.HTTPMessageDelegate | None:
        return _WaitingRequest(self._gate, request)


class _WaitingRequest(httputil.HTTPMessageDelegate):
    """Reads no body before the gate opens, then hands everything to the real handler."""

    def __init__(self, gate: AdoptionGate, request: httputil.HTTPServerRequest) -> None:
        self._gate = gate
        self._request = request
        self._delegate: httputil.HTTPMessageDelegate | None = None

    async def headers_received(  # type: ignore[override]
        self, start_line: httputil.RequestStartLine, headers: httputil.HTTPHeaders
    ) -> None:
        self._delegate = await self._gate.delegate_for(self._request)
        waiting = self._delegate.headers_received(start_line, headers)
        if waiting is not None:
            await waiting

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        assert self._delegate is not None
        return self._delegate.data_received(chunk)

    def finish(self) -> None:
        assert self._delegate is not None
        self._delegate.finish()

    def on_connection_close(self) -> None:
        if self._delegate is not None:
            self._delegate.on_connection_close()


class _ComeBackLater(web.RequestHandler):
    """503 with Jupyter's error body. It tells nothing, so it asks for no login."""

    def check_xsrf_cookie(self) -> None:
        """Nothing is done, so nothing can be forged; a 403 here would tell clients to give up."""

    def prepare(self) -> None:
        self.set_status(503)
        self.set_header("Retry-After", "1")
        message = "The server is taking over paused sessions. Try again in a moment."
        self.finish({"message": message, "reason": "starting", "code": "starting"})
