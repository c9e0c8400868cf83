# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Finds out whose pod this is and puts the workspace's part beside the kernels'. On a plain machine it does nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from jupyter_pause.cluster.config import SERVICE_ACCOUNT_FOLDER, ClusterConfig
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.owners.detection import Found, Surroundings, Wanted, detect, identify

if TYPE_CHECKING:
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.owners.base import WorkspaceOwner
    from jupyter_pause.pauser import Pauser

    from .pauser import WorkspacePauser

#: Seconds until the cluster is asked again who owns us; doubled each time up to the second number.
FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0


@dataclass(frozen=True)
class WorkspaceOptions:
    """What app.py reads from the configuration. Times are seconds."""

    owner: str
    workspaces_path: str
    checkpoint_budget: float
    snapshot_timeout: float
    apply_checkpoints: str


class WorkspaceStarter:
    """Lives as long as the server."""

    def __init__(self, options: WorkspaceOptions, folder: Path = SERVICE_ACCOUNT_FOLDER) -> None:
        self._options = options
        self._folder = folder
        self.surroundings: Surroundings = detect(folder=folder)
        self._client: ClusterClient | None = None
        self._work: asyncio.Task[None] | None = None
        self._pauser: Pauser | None = None

    @property
    def _has_owner(self) -> bool:
        return self._options.owner != "local" and (self.surroundings.in_cluster or self.surroundings.hub is not None)

    def start(self, pauser: Pauser) -> None:
        """Begin, after an earlier server's sessions were taken over."""
        self._pauser = pauser
        if self._has_owner:
            self._work = asyncio.get_running_loop().create_task(self._run(pauser))

    async def _run(self, pauser: Pauser) -> None:
        try:
            self._client = self._new_client(pauser)
            wait = FIRST_WAIT
            while True:
                found = await identify(self.surroundings, self._client, cast("Wanted", self._options.owner))
                self._say(pauser, found)
                if found.kind is not None:
                    await self._open(pauser, found)
                    return
                if not found.try_again:
                    return
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
        except Exception:
            pauser.log.exception(
                "jupyter-pause: who owns this pod could not be found out; kernels are paused one by one"
            )

    def _new_client(self, pauser: Pauser) -> ClusterClient | None:
        if not self.surroundings.in_cluster:
            return None
        from jupyter_pause.cluster.client import ClusterClient

        try:
            return ClusterClient(ClusterConfig.in_cluster(folder=self._folder), clock=pauser.clock)
        except ClusterError:
            return None

    def _say(self, pauser: Pauser, found: Found) -> None:
        for one in found.reasons:
            pauser.log.info("jupyter-pause: %s", one.message or one.code)
        pauser.settings.environment = found.reasons[0] if found.reasons else None
        pauser.kernels.announce()

    async def _open(self, pauser: Pauser, found: Found) -> None:
        owner = await asyncio.to_thread(self._owner_of, pauser, found)
        if owner is None:
            return
        pauser.workspace = self._workspace(pauser, owner)
        await pauser.workspace.start()
        pauser.kernels.announce()

    def _owner_of(self, pauser: Pauser, found: Found) -> WorkspaceOwner | None:
        from jupyter_pause.owners.base import OwnerContext
        from jupyter_pause.owners.opening import open_owner

        assert found.kind is not None
        context = OwnerContext(
            client=self._client,
            namespace=found.namespace,
            name=found.name,
            pod=found.pod or self.surroundings.pod,
            clock=pauser.clock,
            places=(Path.home(), pauser.settings.checkpoint_dir),
            hub=self.surroundings.hub,
            workspaces_path=self._options.workspaces_path,
        )
        try:
            return open_owner(found.kind, context)
        except LookupError:
            pauser.log.warning("jupyter-pause: %s owns this pod, and nothing here can ask it for a pause", found.kind)
            return None

    def _workspace(self, pauser: Pauser, owner: WorkspaceOwner) -> WorkspacePauser:
        from .intent import IntentFile
        from .pauser import WorkspacePauser, WorkspaceSettings
        from .thaw import PodIdentity

        token = self._folder / "token"
        return WorkspacePauser(
            pauser=pauser,
            owner=owner,
            intents=IntentFile(pauser.settings.checkpoint_dir),
            identity=PodIdentity(token if token.is_file() else None),
            settings=WorkspaceSettings(
                checkpoint_budget=self._options.checkpoint_budget,
                snapshot_timeout=self._options.snapshot_timeout,
                apply_checkpoints=cast("Literal['ask', 'always']", self._options.apply_checkpoints),
            ),
        )

    async def before_stop(self) -> None:
        """First of all when the server is being ended."""
        if self._pauser is not None and self._pauser.workspace is not None:
            await self._pauser.workspace.before_stop()

    async def stop(self) -> None:
        """Close everything."""
        work: Any = self._work
        if work is not None and not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if self._pauser is not None and self._pauser.workspace is not None:
            await self._pauser.workspace.stop()
        if self._client is not None:
            await self._client.close()
