# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A server extension with the gate, the provisioner and the owner alone: pausing without any state machine."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web

from jupyter_pause.clock import SystemClock
from jupyter_pause.gate import AdoptionGate
from jupyter_pause.owners.local import Adopted, LocalOwner
from jupyter_pause.provisioner import ProvisionerError, configure_default_provisioner

CHECKPOINT = "c" * 32


class BareHandler(ExtensionHandlerMixin, APIHandler):
    """POST bare/release/ID, bare/reclaim/ID, bare/adopt/ID; GET bare/state/ID."""

    @web.authenticated
    async def get(self, action: str, kernel_id: str) -> None:
        owner, manager = self.extensionapp.owner, self.serverapp.kernel_manager
        provisioner = manager.get_kernel(kernel_id).provisioner if kernel_id in manager else None
        answer = {
            "here": provisioner is not None,
            "paused": getattr(provisioner, "paused", None),
            "pid": getattr(provisioner, "kernel_pid", None),
            "listed": [r.kernel_id for r in await asyncio.to_thread(owner.sessions)],
            "adopted": [[a.kernel_id, a.live, a.checkpoint] for a in self.extensionapp.adopted],
            "told": self.extensionapp.told,
        }
        self.finish(json.dumps(answer))

    @web.authenticated
    async def post(self, action: str, kernel_id: str) -> None:
        owner = self.extensionapp.owner
        if action == "adopt":
            adopted = await owner.adopt(kernel_id)
            if adopted is None:
                raise web.HTTPError(409, "held")
        provisioner = self.serverapp.kernel_manager.get_kernel(kernel_id).provisioner
        try:
            if action == "commit":
                await owner.record(kernel_id, state="paused", checkpoint=CHECKPOINT)
            elif action == "release":
                await owner.record(kernel_id, state="paused", checkpoint=CHECKPOINT)
                await provisioner.release()
            elif action == "reclaim":
                await provisioner.reclaim(None)
        except ProvisionerError as error:
            raise web.HTTPError(409, error.code) from error
        self.finish("{}")


class BareApp(ExtensionApp):
    """The extension."""

    name = "bare"

    def _link_jupyter_server_extension(self, serverapp: Any) -> None:
        super()._link_jupyter_server_extension(serverapp)
        configure_default_provisioner(serverapp)

    def initialize_handlers(self) -> None:
        self.handlers.append((r"/bare/(\w+)/([\w-]+)", BareHandler))

    def initialize_settings(self) -> None:
        server = self.serverapp
        self.gate = AdoptionGate(server, float(os.environ.get("BARE_GATE_LIMIT", "10")))
        root = Path(jupyter_data_dir()) / "jupyter_pause"
        self.adopted: list[Adopted] = []
        self.told: list[Any] = []
        self.owner = LocalOwner(
            root=root,
            kernel_manager=server.kernel_manager,
            session_manager=server.session_manager,
            root_dir=server.root_dir,
            clock=SystemClock(),
            log=self.log,
            find_checkpoint=lambda kernel_id, since: os.environ.get("BARE_CHECKPOINT"),
        )
        self.owner.publish_launch_settings(
            socket=None,
            secret_file=root / "secret",
            orphan_timeout=float(os.environ.get("BARE_ORPHAN", "300")),
            skip_env=["*TOKEN*"],
        )
        self.owner.listen(self)

    # What the state machine is told.
    def kernel_restarted(self, kernel_id: str, *, while_paused: bool) -> None:
        self.told.append(["restarted", while_paused])

    def kernel_ended(self, kernel_id: str) -> None:
        self.told.append(["ended"])

    async def take_over(self, adopted: Adopted) -> None:
        self.adopted.append(adopted)

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        await asyncio.sleep(float(os.environ.get("BARE_DELAY", "0")))
        self.adopted += await self.owner.adopt_all()
        self.gate.open()
        self.owner.start()

    async def stop_extension(self) -> None:
        self.owner.stopping = True
        await self.owner.stop()


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "tests.owner.bare_extension", "app": BareApp}]
