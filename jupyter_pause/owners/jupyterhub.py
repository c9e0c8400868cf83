# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The owner under JupyterHub: the Hub stops this server, and starts it again from its own page. No snapshot is made.

The token of a server may by default only report activity. To stop itself it needs `delete:servers!server`
(`c.Spawner.server_token_scopes`); what is missing is named before the click.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jupyter_pause.owners.base import Check, OwnerContext, OwnerView, ReleaseAnswer, ResumedFrom, WorkspaceOwner
from jupyter_pause.owners.jupyterhub_api import HubApi, HubError, server_path
from jupyter_pause.owners.jupyterhub_state import allows, derive, from_inside, server_of
from jupyter_pause.states import OwnerKind, PodSnapshotRow, Reason, ResumeDoor

if TYPE_CHECKING:
    from datetime import datetime

    from jupyter_pause.clock import Clock
    from jupyter_pause.owners.detection import HubServer

STOP_SCOPE = "delete:servers"
LOOK_SCOPE = "read:servers"
#: Seconds in which the Hub refuses what it refuses. A stop that it accepted is answered when this server has ended.
REFUSED_WITHIN = 3.0


class JupyterHubOwner:
    """See `WorkspaceOwner`. The Hub has no watch: it is asked at the start, before a pause, and by nobody else."""

    kind: OwnerKind = "jupyterhub"

    def __init__(
        self,
        hub: HubServer,
        *,
        clock: Clock,
        namespace: str | None = None,
        environ: Mapping[str, str] = os.environ,
        refused_within: float = REFUSED_WITHIN,
    ) -> None:
        self.namespace = namespace
        self.name = f"{hub.user}/{hub.server}" if hub.server else hub.user
        self._hub = hub
        self._clock = clock
        self._environ = environ
        self._api = HubApi(hub.api_url, environ)
        self._refused_within = refused_within
        names = environ.get("JUPYTERHUB_USER"), environ.get("JUPYTERHUB_SERVER_NAME")
        #: Whether this process is the server itself.
        self._inside = names == (hub.user, hub.server)
        self._view = OwnerView("unknown", stateful=False, error=Reason(code="not_looked_yet"))
        self._listeners: list[Callable[[], None]] = []
        self._stop: asyncio.Task[int] | None = None

    # --- looking ------------------------------------------------------------------------------------------------

    def door(self) -> ResumeDoor:
        """The Hub's own page, on the origin of the notebook's tab; it shows its form and how far the start is."""
        base = self._environ.get("JUPYTERHUB_BASE_URL") or self._hub.prefix.partition("/user/")[0] + "/"
        spawn = "/".join(quote(part, safe="") for part in ("spawn", self._hub.user, self._hub.server) if part)
        page = f"{base.rstrip('/')}/hub/{spawn}?{urlencode({'next': self._hub.prefix})}"
        api = f"$JUPYTERHUB_API_URL/{server_path(self._hub.user, self._hub.server)}"
        return ResumeDoor(
            kind="jupyterhub",
            api=None,
            page=page,
            command=f'curl -X POST -H "Authorization: token $JUPYTERHUB_API_TOKEN" "{api}"',
        )

    def view(self) -> OwnerView:
        """As last heard."""
        return self._view

    def listen(self, callback: Callable[[], None]) -> None:
        """After every look at the Hub."""
        self._listeners.append(callback)

    async def start(self) -> None:
        """Look once."""
        await self._look()

    async def stop(self) -> None:
        """Nothing is open. A stop that was asked for goes on at the Hub."""
        if self._stop is not None:
            self._stop.cancel()
            await asyncio.gather(self._stop, return_exceptions=True)

    async def _look(self) -> None:
        now = self._clock.now()
        try:
            model = await self._api.user(self._hub.user)
            server = server_of(model, self._hub.server)
        except HubError as error:
            if not self._inside or error.code not in ("hub_forbidden", "hub_not_found"):
                self._see(replace(self._view, error=_reason(error)))
                return
            server = None
        view = derive(server)
        self._see(replace(from_inside(view) if self._inside else view, observed_at=now))

    def _see(self, view: OwnerView) -> None:
        self._view = view
        for callback in list(self._listeners):
            callback()

    async def checks(self) -> list[Check]:
        """Whether our token may stop this server, and that no memory is kept."""
        found = [Check("no_snapshot", "warns")]
        try:
            scopes = [str(scope) for scope in (await self._api.whoami()).get("scopes") or []]
        except HubError as error:
            return [*found, Check(error.code, "blocks", error.params)]
        user, server = self._hub.user, self._hub.server
        allowed = allows(scopes, STOP_SCOPE, user=user, server=server)
        if not allowed:
            params = {"scope": f"{STOP_SCOPE}!server={user}/{server}", "setting": "Spawner.server_token_scopes"}
            found.append(Check("hub_scope_missing", "blocks" if allowed is False else "warns", params))
        await self._look()
        return found

    # --- asking -------------------------------------------------------------------------------------------------

    async def release(self) -> ReleaseAnswer:
        """Ask the Hub to stop this server. Raises HubError when it refuses.

        An accepted stop is answered when the server has ended, which we do not live to see: silence is consent.
        """
        if self._stop is None or (self._stop.done() and (self._stop.cancelled() or self._stop.exception())):
            work = self._api.stop(self._hub.user, self._hub.server)
            self._stop = asyncio.get_running_loop().create_task(work)
        await asyncio.wait({self._stop}, timeout=self._refused_within)
        if self._stop.done():
            self._stop.result()
        self._see(OwnerView("pausing", "releasing", since=self._now(), stateful=False, observed_at=self._now()))
        return ReleaseAnswer("released")

    async def take_back(self) -> bool:
        """A stop cannot be undone at the Hub; the server is started again when it has ended."""
        return False

    async def snapshot_failure(self) -> Reason | None:
        """There are none."""
        return None

    async def quiet(self) -> None:
        """No connection stays open between requests."""

    async def wake(self) -> None:
        """See `quiet`."""

    async def resumed_from(self) -> ResumedFrom:
        """The Hub only ever starts new processes."""
        await self._look()
        return ResumedFrom(restored=False, reason=Reason(code="cold_start"), timeline=self._view.timeline)

    async def reclaim(self) -> None:
        """Ask the Hub to start the server; one that runs or is being started is left alone. Raises HubError."""
        try:
            await self._api.start(self._hub.user, self._hub.server)
        except HubError as error:
            if error.code != "hub_refused":
                raise
            await self._look()  # 400 is also "already running"
            if self._view.state not in ("running", "resuming"):
                raise

    async def snapshots(self) -> list[PodSnapshotRow]:
        """There are none."""
        return []

    async def delete_snapshot(self, snapshot_id: str, *, force: bool = False) -> None:
        """There are none: raises HubError `snapshot_not_found`."""
        raise HubError("snapshot_not_found")

    def _now(self) -> datetime:
        return self._clock.now()


def open_owner(context: OwnerContext) -> WorkspaceOwner:
    """The owner of this server. Raises LookupError where the environment names no Hub."""
    if context.hub is None:
        raise LookupError("jupyterhub")
    return JupyterHubOwner(context.hub, clock=context.clock, namespace=context.namespace)


def _reason(error: HubError) -> Reason:
    params: dict[str, Any] = dict(error.params)
    return Reason(code=error.code, message=error.sentence, params=params)
