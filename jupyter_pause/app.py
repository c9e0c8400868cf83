# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""PauseApp: configuration and wiring. What happens next is decided in `pauser.py`."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jupyter_core.paths import jupyter_data_dir, jupyter_runtime_dir
from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Enum, Float, Integer, List, Unicode, default

from .clock import SystemClock
from .documents import DocumentSaver
from .gate import AdoptionGate
from .handlers import extension_handlers
from .kernel_link import KernelLink
from .launch import launch_settings
from .machine import image_here
from .missed_output import OutputWatch
from .provisioner import configure_default_provisioner

if TYPE_CHECKING:
    from datetime import datetime

    from .checkpoint.store import CheckpointStore
    from .pauser import Pauser
    from .snapshot.availability import Mode
    from .snapshot.engine import SnapshotEngine
    from .states import OnExit
    from .stopping import Stopper
    from .workspace.start import WorkspaceStarter

EVENTS = {name: f"https://events.jupyter.org/jupyter_pause/{name}/v1" for name in ("state", "operation", "documents")}

#: Seconds between two looks at what changed by itself.
TICK = 2.0
SECONDS_A_DAY = 86400.0


class PauseApp(ExtensionApp):
    """The jupyter-pause server extension."""

    name = "jupyter_pause"
    description = "Pause notebooks: their state goes to disk, RAM and VRAM are free, and they come back in place."
    load_other_extensions = True

    checkpoint_dir = Unicode(
        help="""Folder for checkpoints and session records. Owner-only (0700). Default: `jupyter_pause` below
        Jupyter's data folder (`jupyter --data-dir`)."""
    ).tag(config=True)

    orphan_timeout = Float(
        300.0,
        help="""Seconds after which a kernel whose server is gone, and that no new server adopted, saves itself to a
        checkpoint and ends.""",
    ).tag(config=True)

    on_exit = Enum(
        ["discard", "checkpoint", "ask"],
        default_value="discard",
        help="""What happens to running kernels when a person stops the server by Ctrl-C or its REST interface:
        `discard` (Jupyter's own behaviour: they end), `checkpoint` (they are paused first, so that the next server
        offers them) or `ask` (at the terminal; where nobody can be asked they are paused).""",
    ).tag(config=True)

    on_exit_timeout = Float(60.0, help="Seconds that `on_exit = checkpoint` may take.").tag(config=True)

    grace_period = Float(
        25.0,
        help="""Seconds from the signal by which others stop the server (SIGTERM: a culler, a drain, a scale-down)
        until all kernels that can be are saved. A few seconds less than what is given there; 0: nothing is saved.""",
    ).tag(config=True)

    interrupt_on_stop = Bool(
        True,
        help="""Whether a cell that still runs shortly before the grace period ends is interrupted, so that its kernel
        can be saved. It would be killed with its server otherwise.""",
    ).tag(config=True)

    verify = Enum(
        ["after", "before"],
        default_value="after",
        help="""When the raw buffers of a checkpoint are hashed on resume: `after` the kernel is ready (in the
        background; a mismatch is said) or `before` anything is loaded. Signature, sizes and pickle frames are always
        verified before.""",
    ).tag(config=True)

    skip_env = List(
        Unicode(),
        ["*TOKEN*", "*SECRET*", "*PASSW*", "*_PWD", "*KEY", "*_KEY_*", "*CREDENTIAL*", "*_PAT", "*_AUTH"],
        help="""Environment variables whose names match one of these patterns are never stored; they are listed as such.
        Nor is one whose value is an address with a password in it.""",
    ).tag(config=True)

    image = Unicode(
        help="""The image of this container, noted in checkpoints and compared before a resume. Empty: the environment
        says it (JUPYTER_PAUSE_IMAGE, or what KubeSpawner sets), else it is not known."""
    ).tag(config=True)

    save_timeout = Float(
        10.0, help="Seconds that open frontends get to save their documents before a pause goes on."
    ).tag(config=True)

    decision_timeout = Float(
        600.0,
        help="Seconds that a question (things would be lost) stays open; then the pause is off and the kernel goes on.",
    ).tag(config=True)

    stall_timeout = Float(120.0, help="Seconds without any progress after which saving counts as failed.").tag(
        config=True
    )

    shadow_load = Bool(
        True,
        help="""Whether a checkpoint is loaded once, in a process that is thrown away, before the kernel's process ends,
        so that objects whose own rules for saving do not tell the truth are named in time. What is not checked is
        said.""",
    ).tag(config=True)

    shadow_load_timeout = Float(
        60.0,
        help="""Seconds that this may take once the state is on disk. Then the pause goes on and says that it was not
        checked.""",
    ).tag(config=True)

    shadow_load_memory = Integer(
        0,
        help="""Bytes of memory that this may take (mapped arrays are not counted); 0: half of what the machine, or the
        container, has free.""",
    ).tag(config=True)

    resume_timeout = Float(1800.0, help="Seconds after which a resume counts as failed.").tag(config=True)

    keep_checkpoints = Integer(
        3,
        min=0,
        help="""How many complete checkpoints of one kernel are kept; after a pause, older ones are deleted that nothing
        will come back from. 0: all.""",
    ).tag(config=True)

    keep_days = Float(
        0.0,
        min=0.0,
        help="""Days after which a checkpoint is deleted that no paused notebook will come back from, also the newest of
        its kernel. 0: never.""",
    ).tag(config=True)

    max_bytes = Integer(
        0,
        min=0,
        help="""Bytes that all checkpoints may take together; above, the oldest go that are neither the newest of their
        kernel nor what a paused notebook will come back from. 0: no limit.""",
    ).tag(config=True)

    snapshots = Enum(
        ["auto", "on", "off"],
        default_value="auto",
        help="""Whether a pause also takes an exact snapshot of the whole process, by CRIU: where that works (`auto`; a
        self-test in the background finds it out), always (`on`: a pause without one is refused), or never (`off`).""",
    ).tag(config=True)

    criu = Unicode("", help="The program criu, 4.2 or newer. Default: the first one on PATH.").tag(config=True)

    owner = Enum(
        ["auto", "local", "kubeflow", "notebook_v1", "jupyterhub", "sandbox", "statefulset"],
        default_value="auto",
        help="""Who starts and stops this server's pod: found out by itself (`auto`), one kind only, or `local`: kernels
        are paused one by one, whatever is here.""",
    ).tag(config=True)

    workspaces_path = Unicode(
        "/workspaces/",
        help="""Where the gateway serves Kubeflow's page of Workspaces, on the origin of this server's tab; its backend
        is at `api/v1` below it. A browser resumes a workspace through it.""",
    ).tag(config=True)

    checkpoint_budget = Float(
        60.0,
        help="""Seconds that kernel checkpoints may take before the pod is snapshotted, biggest kernel first. They are
        the second net, for a snapshot that cannot be used; 0: none are written.""",
    ).tag(config=True)

    snapshot_timeout = Float(
        1200.0,
        help="""Seconds until a snapshot of the pod counts as failed; then the pause is taken back. A large GPU pod may
        take a quarter of an hour.""",
    ).tag(config=True)

    apply_checkpoints = Enum(
        ["ask", "always"],
        default_value="ask",
        help="""What happens to kernel checkpoints when the pod comes back without its memory: they are offered (`ask`),
        or the kernels are resumed from them as the server starts (`always`).""",
    ).tag(config=True)

    @default("checkpoint_dir")
    def _default_checkpoint_dir(self) -> str:
        return str(Path(jupyter_data_dir()) / "jupyter_pause")

    @property
    def _server(self) -> Any:
        """The server that loaded us (ExtensionApp allows for none; then nothing here is called)."""
        return self.serverapp

    def _link_jupyter_server_extension(self, serverapp: Any) -> None:
        """Before the managers exist: our provisioner becomes the default, unless somebody chose another."""
        super()._link_jupyter_server_extension(serverapp)
        configure_default_provisioner(serverapp)

    def initialize_handlers(self) -> None:
        """Routes of `openapi.yaml`."""
        self.handlers.extend(extension_handlers())

    def initialize_settings(self) -> None:
        """Build the parts and join them. No kernel is touched and nothing heavy is imported here."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._gate = AdoptionGate(self._server)
        self._register_events()
        self._pauser = self._build()
        self._stopper = self._build_stopper()
        self.settings["jupyter_pause_pauser"] = self._pauser

    def _build(self) -> Pauser:
        from .checkpoint.store import CheckpointStore
        from .journal import Journal
        from .owners.local import LocalOwner
        from .pauser import Pauser, PauserSettings
        from .retention import RetentionPolicy

        server = self._server
        self._clock = SystemClock()
        self._workspace = self._build_workspace()
        environment = self._workspace.surroundings.reason
        if environment is not None:
            self.log.info("jupyter-pause: %s", environment.message)
        root = Path(self.checkpoint_dir).expanduser().absolute()
        store = CheckpointStore(root)
        self._journal = Journal(root / "journal.sqlite", log=self.log)
        self._owner = LocalOwner(
            root=root,
            kernel_manager=server.kernel_manager,
            session_manager=server.session_manager,
            root_dir=server.root_dir,
            clock=self._clock,
            log=self.log,
            find_checkpoint=partial(newest_checkpoint, store),
            describe=lambda kernel_id: self._pauser.session_notes(kernel_id),
        )
        self._snapshots = self._build_snapshots(root, store)
        pauser = Pauser(
            kernel_manager=server.kernel_manager,
            session_manager=server.session_manager,
            store=store,
            owner=self._owner,
            journal=self._journal,
            clock=self._clock,
            settings=PauserSettings(
                checkpoint_dir=root,
                skip_env=list(self.skip_env),
                verify=self.verify,
                save_timeout=self.save_timeout,
                decision_timeout=self.decision_timeout,
                stall_timeout=self.stall_timeout,
                resume_timeout=self.resume_timeout,
                shadow_load=self.shadow_load,
                shadow_load_timeout=self.shadow_load_timeout,
                shadow_load_memory=self.shadow_load_memory,
                on_exit=cast("OnExit", self.on_exit),
                image=self.image or image_here(),
                environment=environment,
                retention=RetentionPolicy(self.keep_checkpoints, self.keep_days * SECONDS_A_DAY, self.max_bytes),
            ),
            documents=DocumentSaver(self._emit_documents, self._count_frontends),
            outputs=OutputWatch(server.kernel_manager, self._clock, lambda: self._pauser.kernels.announce()),
            emit=self._emit,
            log=self.log,
            runtime_dir=Path(jupyter_runtime_dir()),
            idle_clock_anew=self._idle_clock_anew,
            snapshots=self._snapshots,
        )
        self._link = KernelLink(pauser, self.log)
        if pauser.snapshots is not None:
            pauser.snapshots.link = self._link.path
        self._owner.publish_launch_settings(
            socket=self._link.path,
            secret_file=store.secret_file,
            orphan_timeout=self.orphan_timeout,
            skip_env=list(self.skip_env),
        )
        settings = launch_settings()
        assert settings is not None
        settings.exact = self._snapshots.availability.promising
        self._owner.listen(pauser)
        return pauser

    def _build_snapshots(self, root: Path, store: CheckpointStore) -> SnapshotEngine:
        """Nothing is looked for yet: the first pause or panel asks."""
        from .snapshot.availability import Availability
        from .snapshot.engine import SnapshotEngine

        availability = Availability(
            mode=cast("Mode", self.snapshots),
            configured=self.criu,
            cache=root / "criu.json",
            now=lambda: self._clock.now().timestamp(),
            log=self.log,
        )
        return SnapshotEngine(root, store.secret_file, availability, self._clock, self.log)

    def _build_workspace(self) -> WorkspaceStarter:
        from .workspace.start import WorkspaceOptions, WorkspaceStarter

        return WorkspaceStarter(
            WorkspaceOptions(
                owner=self.owner,
                workspaces_path=self.workspaces_path,
                checkpoint_budget=self.checkpoint_budget,
                snapshot_timeout=self.snapshot_timeout,
                apply_checkpoints=self.apply_checkpoints,
            )
        )

    def _build_stopper(self) -> Stopper:
        from .stopping import Stopper, StopRecord, StopSettings, StopSignals
        from .stopping.terminal import ask

        self._signals = StopSignals(self._clock, stop=partial(self._server.stop, from_signal=True))
        self._signals.install()
        settings = StopSettings(
            on_exit=cast("OnExit", self.on_exit),
            on_exit_timeout=self.on_exit_timeout,
            grace_period=self.grace_period,
            interrupt_on_stop=self.interrupt_on_stop,
        )
        return Stopper(
            self._pauser,
            self._signals,
            StopRecord(self._pauser.settings.checkpoint_dir, self._owner.root_dir),
            settings,
            ask=ask,
            log=self.log,
        )

    def _idle_clock_anew(self) -> None:
        """S10: cullers believe `GET /api/status`, and a restored server would still name the day of its pause there.

        Jupyter Server counts every setting whose name ends like this one. Looking at us never comes here.
        """
        self._server.web_app.settings["jupyter_pause_last_activity"] = self._clock.now()

    # --- events -------------------------------------------------------------------------------------------------

    def _register_events(self) -> None:
        folder = Path(__file__).parent / "events"
        for name in EVENTS:
            self._server.event_logger.register_event_schema(folder / f"{name}.yaml")

    def _emit(self, name: str, data: dict[str, Any]) -> None:
        self._server.event_logger.emit(schema_id=EVENTS[name], data=data)

    def _emit_documents(self, data: dict[str, Any]) -> None:
        self._emit("documents", self._pauser.kernels.with_revision(data))

    def _count_frontends(self) -> int:
        """Subscribers of the event stream; jupyter_events has no public way to count them."""
        logger = self._server.event_logger
        tables = [getattr(logger, name, {}) for name in ("_modified_listeners", "_unmodified_listeners")]
        return len({listener for table in tables for listener in table.get(EVENTS["documents"], ())})

    # --- life ---------------------------------------------------------------------------------------------------

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        """HTTP is up, requests for kernels and sessions are held: take over what an earlier server left."""
        try:
            await self._prepare_store()
            await self._link.start()
            taken_over = await self._owner.adopt_all()
            for adopted in taken_over:
                await self._pauser.take_over(adopted)
            self._pauser.last_stop = await self._stopper.last_stop(taken_over)
            await asyncio.to_thread(lambda: self._snapshots.store.clean(self._owner.snapshots()))
        except Exception:
            self.log.exception("jupyter-pause: taking over paused sessions failed; they stay on disk")
        finally:
            self._pauser.taken_over.set()
            self._gate.open()
        self._spawn(self._pauser.checkpoints.clean_up())
        self._owner.start()
        self._workspace.start(self._pauser)
        self._spawn(self._tick_for_ever())

    async def _prepare_store(self) -> None:
        """A folder that cannot be written keeps nobody from working; pausing says so when it is asked for."""
        from .checkpoint.store import CheckpointError

        try:
            await asyncio.to_thread(self._pauser.store.prepare)
            await asyncio.to_thread(self._pauser.store.clean)
        except (CheckpointError, OSError) as error:
            self.log.warning("jupyter-pause: the checkpoint folder is not usable: %s", error)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            try:
                await self._pauser.tick()
                self._stop_when_unused()
            except Exception:
                self.log.exception("jupyter-pause: a periodic check failed")

    def _stop_when_unused(self) -> None:
        """`shutdown_no_activity_timeout` counts kernels; paused ones keep nothing alive and survive the stop."""
        server = self._server
        timeout = server.shutdown_no_activity_timeout
        if not timeout or self._pauser.operations.working or not self._pauser.kernels.only_paused():
            return
        terminals = server.web_app.settings.get("terminal_manager")
        if terminals is not None and terminals.list():
            return
        idle = (self._clock.now() - server.web_app.last_activity()).total_seconds()
        if idle > timeout:
            self.log.info("jupyter-pause: only paused kernels and no activity for %d s; stopping the server.", idle)
            server.stop()

    def current_activity(self) -> bool | None:
        """Truthy while an operation runs, so that the server does not stop itself in the middle."""
        return True if self._pauser.operations.working else None

    async def stop_extension(self) -> None:
        """The last safe moment before Jupyter ends the kernels. Called again when a second signal comes meanwhile."""
        if not hasattr(self, "_stopper"):
            return
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        await self._workspace.before_stop()
        # `stop()` sets this; the REST interface cleans up without it.
        await self._stopper.run(stop_called=bool(getattr(self._server, "_stopping", False)))
        self._signals.uninstall()
        self._owner.stopping = True
        for task in list(self._tasks):
            task.cancel()
        await self._pauser.stop()
        await self._snapshots.availability.stop()
        await self._workspace.stop()
        await self._owner.stop()
        await self._link.stop()
        await asyncio.to_thread(self._journal.close)


def newest_checkpoint(store: CheckpointStore, kernel_id: str, since: datetime) -> str | None:
    """The kernel's newest committed checkpoint made after `since` (UTC), by itself or an earlier server. Blocks."""
    return next((m.id for m in store.list() if m.kernel_id == kernel_id and m.created >= since), None)


main = launch_new_instance = PauseApp.launch_instance

__all__ = ["PauseApp", "main"]
