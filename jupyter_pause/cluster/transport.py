# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""HTTP to the API server over the official client. Imports `kubernetes`: `client.py` imports it when it is needed, in a
thread.

The official client brings TLS, client certificates, proxies and kubeconfig; bodies stay plain JSON here.
"""

from __future__ import annotations

import asyncio
import socket
import weakref
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from jupyter_pause._version import __version__

from .errors import ClusterError, TransportFault
from .kubeconfig import KubeconfigLogin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from .config import ClusterConfig

#: Requests at the same time. Followers hold one each.
CONNECTIONS = 100
#: Looks, 10 ms apart, until the operating system must have taken back every socket.
_CLOSE_LOOKS = 100


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, read to its end."""

    status: int
    body: bytes


class Transport:
    """Requests to one API server. Connections are opened when they are needed; `close` leaves none."""

    def __init__(self, config: ClusterConfig) -> None:
        self._login: _TokenFileLogin | KubeconfigLogin
        self._login = KubeconfigLogin(config) if config.kubeconfig is not None else _TokenFileLogin(config)
        self._rest: Any = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._host = config.host

    async def load(self) -> None:
        """Read credentials and certificates. Opens no connection to the API server. Raises ClusterError."""
        await self._login.load()
        configuration = self._login.configuration
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.client_session_kwargs = {"trust_env": False, "cookie_jar": aiohttp.DummyCookieJar()}
        # Python 3.13 refuses certificates without an authority key identifier; kubectl does not, and many clusters'
        # own authorities lack it. Chain and host name are verified as ever.
        configuration.disable_strict_ssl_verification = True
        self._host = configuration.host
        try:
            self._rest = await asyncio.to_thread(_Rest, configuration, self._sockets)
        except (OSError, ValueError):
            raise ClusterError("cluster_config_invalid", message="a certificate or key cannot be read") from None

    async def renew(self) -> bool:
        """After a 401: read the credentials again. Returns whether a new try makes sense."""
        if isinstance(self._login, _TokenFileLogin):
            return self._login.read_again()
        # Certificates may have changed too, so everything is built again; followers open their streams anew.
        await self.close()
        await self.load()
        return True

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> Answer:
        """One request, its answer read to the end. The caller sets the limit. Raises TransportFault."""
        with _faults():
            response = await self._begin(method, path, query, body, content_type)
            try:
                return Answer(response.status, await response.read())
            finally:
                response.release()

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], begin: float) -> AsyncIterator[Stream]:
        """A GET whose answer is read line by line. `begin`: seconds until it must begin. Raises TransportFault."""
        with _faults():
            async with asyncio.timeout(begin):
                response = await self._begin("GET", path, query, None, "application/json")
        try:
            yield Stream(response)
        finally:
            response.close()  # not released: what is still to come is of no use to anybody

    async def _begin(
        self, method: str, path: str, query: Mapping[str, str] | None, body: object, content_type: str
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "User-Agent": f"jupyter-pause/{__version__}"}
        if body is not None:
            headers["Content-Type"] = content_type
        authorization = await self._login.authorization()
        if authorization:
            headers["Authorization"] = authorization
        url = self._host + path + ("?" + urlencode(query) if query else "")
        answer = await self._rest.request(
            method, url, headers=headers, body=body, _request_timeout=aiohttp.ClientTimeout(total=None)
        )
        response: aiohttp.ClientResponse = answer.response
        return response

    async def close(self) -> None:
        """Close every connection, and return when the operating system has taken back the sockets."""
        if self._rest is not None:
            await self._rest.close()
            self._rest.pool_manager = None  # the next request makes a new one
        for _ in range(_CLOSE_LOOKS):
            if not self._open_sockets():
                return
            await asyncio.sleep(0.01)
        for left in self._open_sockets():
            with suppress(OSError):
                left.shutdown(socket.SHUT_RDWR)

    def _open_sockets(self) -> list[socket.socket]:
        return [one for one in self._sockets if one.fileno() != -1]


class Stream:
    """The answer to a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.is_json = response.content_type == "application/json"

    async def body(self) -> bytes:
        """All of it, for an answer that is not a success. Raises TransportFault."""
        with _faults():
            return await self._response.read()

    async def line(self) -> bytes | None:
        """The next complete line; None when the other side closed the stream. Raises TransportFault."""
        with _faults():
            try:
                line = await self._response.content.readline()
            except aiohttp.ClientPayloadError:
                return None  # it was cut off in the middle: the same as closed
        return line if line.endswith(b"\n") else None


class _Rest(RESTClientObject):  # type: ignore[misc]
    """The official REST client, with a register of its sockets. Blocks: it reads certificates."""

    def __init__(self, configuration: Any, sockets: weakref.WeakSet[socket.socket]) -> None:
        super().__init__(configuration)
        self._sockets = sockets

    def _create_connector(self) -> aiohttp.TCPConnector:
        # The threaded resolver: the other one keeps sockets of its own, which nobody could close.
        return aiohttp.TCPConnector(
            limit=self.maxsize,
            ssl=self.ssl_context,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=self._make_socket,
        )

    def _make_socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made


class _TokenFileLogin:
    """A token in a file that others renew. It is read again when the file changed (a symbolic link in a pod)."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._seen: tuple[int, int, int] | None = None
        self._token: str | None = None
        self.configuration: Any = None

    async def load(self) -> None:
        """No proxy on purpose: the API server's service address is reached directly from a pod."""
        self.configuration = Configuration(host=self._config.host)
        self.configuration.ssl_ca_cert = str(self._config.ca_file) if self._config.ca_file is not None else None

    async def authorization(self) -> str | None:
        """The Authorization header with the newest token."""
        self._read_if_changed()
        return f"Bearer {self._token}" if self._token else None

    def read_again(self) -> bool:
        """Read the file whether it looks changed or not. Returns whether the token is another one."""
        before, self._seen = self._token, None
        self._read_if_changed()
        return self._token != before

    def _read_if_changed(self) -> None:
        path = self._config.token_file
        if path is None:
            return
        with suppress(OSError):  # it is being replaced: the last token will do until the next request
            stat = path.stat()
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen:
                self._token = path.read_text(encoding="utf-8").strip() or None
                self._seen = seen


@contextmanager
def _faults() -> Iterator[None]:
    """Turn what aiohttp raises into TransportFault. What it says may quote an address; it is left out."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        raise TransportFault(_why(error)) from None


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "name"
    if isinstance(error, aiohttp.ClientSSLError):
        return "tls"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "refused"
    return "closed"
