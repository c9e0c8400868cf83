# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Calls to the API server: raw objects, JSON patches, and errors that name verb and resource.

One client per process and event loop. Every call has a limit. Importing this module is cheap; `kubernetes` is imported
by the first call, in a thread.
"""

from __future__ import annotations

import asyncio
import collections
import importlib
import json
import weakref
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .access import Right, is_allowed, review_of
from .errors import ClusterError, TransportFault, error_of
from .resources import ACCESS_REVIEWS
from .watch import Follower

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from jupyter_pause.clock import Clock

    from .config import ClusterConfig
    from .resources import Resource
    from .transport import Answer, Stream, Transport

Object = dict[str, Any]
Objects = list[Object]
Rights = list[Right]
Operations = list[dict[str, Any]]

#: As a namespace: all of them.
EVERYWHERE = "*"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
#: Objects per page of a list: parsing one page must not hold the event loop (no thread helps: json keeps the GIL).
PAGE = 100
#: Tries of `change` against others who write the same object.
TRIES = 8
#: Seconds before the second try, doubled each time: a controller writes a burst of status changes and is done.
FIRST_PAUSE = 0.05
#: Seconds until the client is loaded and logged in; a kubeconfig's plugin may ask a person.
OPEN_LIMIT = 150.0
#: Seconds that `disconnect` gives calls under way to notice that they were cut off.
_CUT_LIMIT = 5.0


@dataclass(frozen=True)
class ListResult:
    """Objects of one moment; `resource_version` is where a watch goes on."""

    items: Objects
    resource_version: str


class ClusterClient:
    """See docs/developers/cluster.md.

    Attributes:
        requests: how often each (verb, plural) was sent, watches included.
        request_timeout: seconds for one call.
    """

    def __init__(self, config: ClusterConfig, *, clock: Clock, request_timeout: float = 10.0) -> None:
        self.config = config
        self.request_timeout = request_timeout
        self.requests: collections.Counter[tuple[str, str]] = collections.Counter()
        self._clock = clock
        self._transport: Transport | None = None
        self._opening = asyncio.Lock()
        self._connected = asyncio.Event()
        self._connected.set()
        self._brief = 0
        self._cuts = 0
        self._scopes: set[asyncio.Timeout] = set()
        self._no_calls = asyncio.Event()
        self._no_calls.set()
        self._followers: weakref.WeakSet[Follower] = weakref.WeakSet()

    # --- calls --------------------------------------------------------------------------------------------------

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str = ""
    ) -> Object:
        """One object. Raises ClusterError."""
        asked = self._asked("get", resource, name, namespace, subresource)
        return await self._call("GET", asked)

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        """All objects, in pages. `namespace`: one, `EVERYWHERE`, or None for that of the configuration.

        Never from a cache of the API server. Raises ClusterError.
        """
        asked = self._asked("list", resource, None, namespace)
        return await self.read_all(asked, _selectors(label_selector, field_selector))

    async def read_all(self, asked: Right, query: Mapping[str, str]) -> ListResult:
        """`list`, for followers too. Raises ClusterError."""
        try:
            return await self._pages(asked, {**query, "limit": str(PAGE)})
        except ClusterError as error:
            if error.code != "cluster_expired":
                raise
        return await self._pages(asked, query)  # it changed while it was read page by page: in one go

    async def patch(
        self,
        resource: Resource,
        name: str,
        operations: Operations,
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> Object:
        """JSON patch (RFC 6902); a `test` that fails is cluster_invalid. Raises ClusterError."""
        asked = self._asked("patch", resource, name, namespace, subresource)
        return await self._call("PATCH", asked, body=operations, content_type=JSON_PATCH)

    async def merge(
        self, resource: Resource, name: str, body: Object, namespace: str | None = None, *, subresource: str = ""
    ) -> Object:
        """JSON merge patch (RFC 7386): None removes a field. Raises ClusterError."""
        asked = self._asked("patch", resource, name, namespace, subresource)
        return await self._call("PATCH", asked, body=body, content_type=MERGE_PATCH)

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        """A new object. Raises ClusterError."""
        return await self._call("POST", self._asked("create", resource, None, namespace), body=body)

    async def delete(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        """Ask for a deletion; finalizers may take their time. Raises ClusterError."""
        await self._call("DELETE", self._asked("delete", resource, name, namespace))

    async def change(
        self,
        resource: Resource,
        name: str,
        make: Callable[[Object], Operations | None],
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> Object:
        """Change what was read, and only that. When somebody else changed the object meanwhile, again on the fresh one.

        Args:
            make: gets the object and returns a JSON patch, or None when there is nothing to do.

        Raises:
            ClusterError: cluster_conflict after `TRIES` tries, or what else went wrong.
        """
        current = await self.get(resource, name, namespace, subresource=subresource)
        for attempt in range(TRIES):
            if attempt:
                await self._clock.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
                current = await self.get(resource, name, namespace, subresource=subresource)
            operations = make(current)
            if not operations:
                return current
            version = current["metadata"]["resourceVersion"]
            guarded = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *operations]
            try:
                return await self.patch(resource, name, guarded, namespace, subresource=subresource)
            except ClusterError as error:
                if error.code not in ("cluster_conflict", "cluster_invalid"):
                    raise
                refused = error
            if refused.code == "cluster_invalid":
                now = await self.get(resource, name, namespace, subresource=subresource)
                if now["metadata"]["resourceVersion"] == version:
                    raise refused  # nobody changed it, so the patch itself is not valid
        raise ClusterError("cluster_conflict", exists=False, **self._asked("patch", resource, name, namespace).params)

    async def may(self, rights: Sequence[Right]) -> Rights:
        """The rights that are missing, in the order asked. Raises ClusterError when that cannot be found out."""
        missing = []
        for right in rights:
            body = review_of(right, right.namespace or self.config.namespace)
            if not is_allowed(await self.create(ACCESS_REVIEWS, body)):
                missing.append(right)
        return missing

    def follow(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        name: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        read_timeout: float | None = None,
    ) -> Follower:
        """Follow a collection, or one object by name (for that a Role with `resourceNames` is enough). Not started yet.

        `read_timeout`: seconds of silence after which the stream counts as dead; None: fits the resource.
        """
        selected = f"metadata.name={name}" if name is not None else field_selector
        follower = Follower(
            self,
            self._asked("watch", resource, name, namespace),
            query=_selectors(label_selector, selected),
            clock=self._clock,
            read_timeout=read_timeout,
        )
        self._followers.add(follower)
        return follower

    # --- connections --------------------------------------------------------------------------------------------

    async def disconnect(self) -> None:
        """Close every connection, followers' too, and open none until `reconnect`. Calls under way fail.

        When it returns, the operating system has taken back all sockets.
        """
        self._connected.clear()
        await self._cut()

    async def reconnect(self) -> None:
        """Followers go on; calls are possible again."""
        self._connected.set()

    @asynccontextmanager
    async def briefly(self) -> AsyncIterator[None]:
        """Calls, but no followers, although disconnected. Every connection is closed when it ends."""
        self._brief += 1
        try:
            yield
        finally:
            self._brief -= 1
            if not self._may_call:
                await self._cut()

    async def close(self) -> None:
        """Stop all followers and close everything."""
        for follower in list(self._followers):
            await follower.stop()
        await self.disconnect()

    @property
    def is_connected(self) -> bool:
        """False between `disconnect` and `reconnect`."""
        return self._connected.is_set()

    async def wait_connected(self) -> None:
        """Return at once unless disconnected; then wait for `reconnect`."""
        await self._connected.wait()

    @property
    def _may_call(self) -> bool:
        return self._connected.is_set() or self._brief > 0

    async def _cut(self) -> None:
        self._cuts += 1
        for scope in list(self._scopes):
            if not scope.expired():
                scope.reschedule(0.0)
        if self._transport is not None:
            await self._transport.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CUT_LIMIT):
                await self._no_calls.wait()

    # --- how --------------------------------------------------------------------------------------------------------

    def _asked(
        self, verb: str, resource: Resource, name: str | None, namespace: str | None, subresource: str = ""
    ) -> Right:
        chosen = (namespace or self.config.namespace) if resource.namespaced else None
        return Right(verb, resource, None if chosen == EVERYWHERE else chosen, name, subresource)

    async def _pages(self, asked: Right, query: Mapping[str, str]) -> ListResult:
        items: Objects = []
        token = ""
        while True:
            page = await self._call("GET", asked, query={**query, "continue": token} if token else query)
            items += page.get("items") or []
            token = page["metadata"].get("continue", "")
            if not token:
                return ListResult(items, page["metadata"].get("resourceVersion", ""))

    async def _call(
        self,
        method: str,
        asked: Right,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> Object:
        async def send(transport: Transport) -> Answer:
            self._count(asked)
            return await transport.send(method, path_of(asked), query=query, body=body, content_type=content_type)

        async with self._within(OPEN_LIMIT, asked):
            transport = await self._open()
        async with self._within(self.request_timeout, asked):
            answer = await send(transport)
            if answer.status == 401 and await transport.renew():
                answer = await send(transport)
        if answer.status >= 300:
            raise error_of(answer.status, answer.body, asked)
        return _parsed(answer.body, asked)

    @asynccontextmanager
    async def stream(self, asked: Right, query: Mapping[str, str]) -> AsyncIterator[Stream]:
        """The open answer to a watch, for followers. No limit as a whole: the reader sets one for each line.

        Raises:
            ClusterError: it could not be opened.
        """
        async with self._within(OPEN_LIMIT, asked):
            transport = await self._open()
        async with self._within(None, asked):
            for last_try in (False, True):
                self._count(asked)
                async with transport.stream(path_of(asked), query, self.request_timeout) as stream:
                    if stream.status == 401 and not last_try and await transport.renew():
                        continue
                    if stream.status >= 300:
                        async with asyncio.timeout(self.request_timeout):
                            body = await stream.body()
                        raise error_of(stream.status, body, asked)
                    if not stream.is_json:  # somebody between us and the API server answered: nothing is confirmed
                        raise ClusterError("cluster_unreachable", why="garbled", **asked.params)
                    yield stream
                    return

    def _count(self, asked: Right) -> None:
        self.requests[asked.verb, asked.resource.plural] += 1

    async def _open(self) -> Transport:
        async with self._opening:
            if self._transport is None:
                module = await asyncio.to_thread(importlib.import_module, "jupyter_pause.cluster.transport")
                transport: Transport = module.Transport(self.config)
                await transport.load()
                self._transport = transport
            return self._transport

    @asynccontextmanager
    async def _within(self, seconds: float | None, asked: Right) -> AsyncIterator[None]:
        """Run with a limit that `disconnect` can bring forward; whatever fails becomes a ClusterError."""
        if not self._may_call:
            raise ClusterError("cluster_disconnected", **asked.params)
        cuts, began = self._cuts, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(seconds) as scope:
                with self._under_way(scope):
                    yield
        except (TimeoutError, TransportFault) as fault:
            if self._cuts != cuts:
                raise ClusterError("cluster_disconnected", **asked.params) from None
            waited = round(asyncio.get_running_loop().time() - began, 1)
            why = fault.why if isinstance(fault, TransportFault) else "timeout"
            raise ClusterError("cluster_unreachable", why=why, seconds=waited, **asked.params) from None

    @contextmanager
    def _under_way(self, scope: asyncio.Timeout) -> Iterator[None]:
        self._scopes.add(scope)
        self._no_calls.clear()
        try:
            yield
        finally:
            self._scopes.discard(scope)
            if not self._scopes:
                self._no_calls.set()


def path_of(asked: Right) -> str:
    """The path of a request. A collection is narrowed to one name by a selector, not by its path."""
    parts = [asked.resource.root]
    if asked.namespace is not None:
        parts.append(f"namespaces/{quote(asked.namespace, safe='')}")
    parts.append(asked.resource.plural)
    if asked.verb not in ("list", "watch", "create"):
        if not asked.name or asked.name in (".", ".."):  # the path of the collection, or of something else altogether
            raise ClusterError("cluster_invalid", message="an object needs a name", **asked.params)
        parts.append(quote(asked.name, safe=""))
        if asked.subresource:
            parts.append(asked.subresource)
    return "/".join(parts)


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}


def _parsed(body: bytes, asked: Right) -> Object:
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):  # somebody between us and the API server answered
        raise ClusterError("cluster_unreachable", why="garbled", **asked.params)
    return parsed
