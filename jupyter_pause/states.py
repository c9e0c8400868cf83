# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The words everybody shares: states, phases, outcomes and the records of REST, journal and command line.

Sizes are bytes, durations seconds, times RFC 3339 UTC. The shapes are those of ``openapi.yaml``; a test compares both.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

State = Literal["running", "pausing", "paused", "waiting", "resuming", "ready", "failed", "unknown"]
Phase = Literal[
    "checking",
    "saving",
    "rehearsing",
    "draining",
    "snapshotting",
    "releasing",
    "starting",
    "restoring",
    "proving",
]
Outcome = Literal["restored", "partial", "fresh"]
Via = Literal["snapshot", "checkpoint"]
Fate = Literal["kept", "in snapshot", "in checkpoint", "rebuilt", "lost", "outside", "unknown"]
OperationKind = Literal["pause", "resume"]
OperationState = Literal["running", "needs_decision", "done", "failed", "cancelled"]
Scope = Literal["kernel", "workspace"]
OwnerKind = Literal["local", "kubeflow", "notebook_v1", "jupyterhub", "sandbox", "statefulset"]
OnLoss = Literal["refuse", "accept"]
WhenBusy = Literal["wait", "refuse", "interrupt"]
Cause = Literal["user", "magic", "idle", "orphaned", "exit", "stop"]
#: Who stopped the server: somebody else (`ordered`: a culler, a drain, a scale-down), Ctrl-C, the server's REST
#: interface (File > Shut Down), or the server itself for lack of activity.
StopCause = Literal["ordered", "terminal", "request", "itself"]
#: What becomes of running kernels when a person stops the server.
OnExit = Literal["discard", "checkpoint", "ask"]

#: The order in which kernel states win when they are summed up into one (design.md section 8).
AGGREGATION_ORDER: tuple[State, ...] = (
    "failed",
    "pausing",
    "resuming",
    "waiting",
    "unknown",
    "running",
    "ready",
    "paused",
)


def _rfc3339(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


UTCTime = Annotated[datetime, PlainSerializer(_rfc3339, return_type=str, when_used="json")]


class Record(BaseModel):
    """Base of all records: unknown fields of a newer version are ignored, not refused."""

    model_config = ConfigDict(extra="ignore")


class Reason(Record):
    """Why something cannot be done: a stable code and its parameters; the frontend composes the sentence."""

    code: str
    message: str = ""
    params: dict[str, Any] = Field(default_factory=dict)


class Loss(Record):
    """Something that will not come back. `path` points inside the variable: ``cfg["lock"]``."""

    name: str
    path: str
    type: str = ""
    reason: str = ""
    cell: int | None = None


class InventoryItem(Record):
    """One line of the panel. `bytes` is None where it is not known; `complete` False means "at least"."""

    name: str
    kind: str
    bytes: int | None = None
    complete: bool = True
    fate: Fate
    reason: str | None = None
    type: str | None = None
    details: dict[str, Any] = Field(default_factory=dict)
    #: Its fate where the kernel comes back by a process snapshot; None: no snapshot can be had here.
    with_snapshot: Fate | None = None


class SnapshotOutlook(Record):
    """Whether a pause of this kernel would take an exact snapshot. `usable` None: it is being found out."""

    usable: bool | None = None
    reasons: list[Reason] = Field(default_factory=list)


class Estimate(Record):
    """What a pause and a resume will cost. `basis`: "measured" (earlier pauses here) or "assumed"."""

    bytes: int | None = None
    pause_seconds: float | None = None
    resume_seconds: float | None = None
    basis: str = "assumed"


class CheckpointPlace(Record):
    """Where the checkpoint goes and the room on that disk, both in bytes."""

    directory: str
    free: int | None = None
    total: int | None = None
    writable: bool = True


class Inventory(Record):
    """What will be restored, for one kernel."""

    kernel: str
    taken_at: UTCTime
    age: float = 0.0
    complete: bool = True
    busy: bool = False
    files: list[InventoryItem] = Field(default_factory=list)
    documents: list[InventoryItem] = Field(default_factory=list)
    ram: list[InventoryItem] = Field(default_factory=list)
    vram: list[InventoryItem] = Field(default_factory=list)
    processes: list[InventoryItem] = Field(default_factory=list)
    connections: list[InventoryItem] = Field(default_factory=list)
    losses: list[Loss] = Field(default_factory=list)
    estimate: Estimate = Field(default_factory=Estimate)
    checkpoint_place: CheckpointPlace | None = None
    snapshot: SnapshotOutlook | None = None


class CheckpointSummary(Record):
    """A kernel's checkpoint in one line (`GET state`, kernel rows)."""

    id: str
    created: UTCTime
    bytes: int
    via: Via = "checkpoint"


class ApiError(Record):
    """Every error body: `message` for logs and curl, `code` and `params` for programs."""

    message: str
    reason: str | None = None
    code: str
    params: dict[str, Any] = Field(default_factory=dict)
    losses: list[Loss] | None = None
    differences: list[dict[str, Any]] | None = None
    operation: str | None = None


class Question(Record):
    """What an operation waits for: `code` says what is asked, `decisions` what may be answered."""

    code: Literal["would_lose", "environment_differs"]
    decisions: list[str]
    losses: list[Loss] = Field(default_factory=list)
    differences: list[dict[str, Any]] = Field(default_factory=list)


class ShadowReport(Record):
    """Whether a checkpoint was loaded and compared, in a process of its own, before the one that made it ended.

    `code` and `params`: why not, or not to its end. `compared`: variables; `objects`: those with rules of their own;
    `unseen`: more of them, too many to be looked at. `unchecked`: what could not be loaded there without an effect.
    """

    state: Literal["checked", "not_checked"]
    code: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    seconds: float | None = None
    compared: int = 0
    objects: int = 0
    unseen: int = 0
    unchecked: list[Loss] = Field(default_factory=list)


class Operation(Record):
    """A pause or a resume under way, or one that ended."""

    id: str
    kind: OperationKind
    scope: Scope = "kernel"
    kernels: list[str]
    state: OperationState = "running"
    phase: Phase | None = None
    started: UTCTime
    elapsed: float = 0.0
    bytes_done: int = 0
    bytes_total: int | None = None
    cancellable: bool = True
    question: Question | None = None
    error: ApiError | None = None
    cause: Cause = "user"
    checkpoint: str | None = None
    outcome: Outcome | None = None
    shadow: ShadowReport | None = None


class BufferProof(Record):
    """Raw buffers are hashed in the background after `ready`."""

    state: Literal["checking", "ok", "mismatch", "skipped"] = "checking"
    bytes_done: int = 0
    bytes_total: int = 0
    variables: list[str] = Field(default_factory=list)


class Proof(Record):
    """What was compared before anything was called restored."""

    signature: bool = False
    frames: int = 0
    compared: int = 0
    mismatched: list[str] = Field(default_factory=list)
    buffers: BufferProof | None = None
    mark: bool | None = None


class ResumeReport(Record):
    """How the last resume of a kernel ended."""

    kernel: str
    at: UTCTime
    outcome: Outcome
    via: Via | None = None
    checkpoint: str | None = None
    checkpoint_created: UTCTime | None = None
    seconds: float | None = None
    losses: list[Loss] = Field(default_factory=list)
    rebuilt: list[str] = Field(default_factory=list)
    proof: Proof = Field(default_factory=Proof)
    ports_changed: bool = False
    snapshot: str | None = None
    #: Why the snapshot was not used; None: it was, or there was none.
    fallback: Reason | None = None
    #: How GPUs and image of the machine differ from those that it was saved on.
    differences: list[dict[str, Any]] = Field(default_factory=list)


class DeviceMemory(Record):
    """Memory in use on one GPU by all processes together (bytes), measured before the process ended and after."""

    device: str
    before: int
    after: int | None


class PauseReport(Record):
    """What a pause gave back, as measured (bytes, seconds)."""

    kernel: str
    at: UTCTime
    #: None: a kernel of another language, which only its snapshot keeps.
    checkpoint: str | None
    bytes: int
    #: What this pause wrote and read back; it shares the rest with earlier checkpoints.
    written: int | None = None
    seconds: float
    rss_before: int | None = None
    process_gone: bool = False
    #: Of every GPU that could be read; whether it dropped is for the reader to see, not assumed.
    vram: list[DeviceMemory] = Field(default_factory=list)
    shadow: ShadowReport | None = None
    snapshot: str | None = None
    snapshot_bytes: int | None = None
    #: Why there is no snapshot.
    snapshot_reasons: list[Reason] = Field(default_factory=list)


class MissedOutput(Record):
    """Output that no page received. `messages`: how many outputs; None where nobody could count.

    `cause`: "no_page" (no page was connected; a page that comes back with its old connection may still get it) or
    "no_server" (the kernel went on while its server was away).
    """

    messages: int | None = None
    since: UTCTime
    until: UTCTime
    cause: Literal["no_page", "no_server"] = "no_page"


class KernelRow(Record):
    """One kernel (or one paused session without a server-side kernel) in `GET state`."""

    id: str
    name: str | None = None
    path: str | None = None
    state: State
    phase: Phase | None = None
    since: UTCTime
    checkpoint: CheckpointSummary | None = None
    outcome: Outcome | None = None
    pausable: bool = True
    reason: Reason | None = None
    operation: str | None = None
    last_resume: ResumeReport | None = None
    last_pause: PauseReport | None = None
    #: Requests (message ids) and, where the page named them, notebook cells that were answered `aborted`.
    aborted_cells: list[str] = Field(default_factory=list)
    aborted_notebook_cells: list[str] = Field(default_factory=list)
    missed_output: MissedOutput | None = None


class ResumeDoor(Record):
    """How a workspace is brought back once its server is gone. Never holds a token."""

    kind: Literal["kubeflow", "jupyterhub", "none"]
    api: str | None = None
    page: str | None = None
    command: str


class KernelProof(Record):
    """What was compared inside one kernel after the workspace came back."""

    kernel: str
    path: str | None = None
    mark: bool | None = None
    compared: int = 0
    mismatched: list[str] = Field(default_factory=list)
    checkpoint: str | None = None


class WorkspaceResumeReport(Record):
    """How the last resume of the whole workspace ended."""

    at: UTCTime
    outcome: Outcome
    via: Via | None = None
    snapshot: str | None = None
    server_mark: bool
    confirmed: bool | None = None
    kernels: list[KernelProof] = Field(default_factory=list)
    paused_seconds: float | None = None
    clock_drift_seconds: float | None = None
    renewed: list[str] = Field(default_factory=list)
    warnings: list[Reason] = Field(default_factory=list)


class WorkspaceRow(Record):
    """The whole pod, as its owner has it. `observed_at`: when the API server last confirmed it."""

    namespace: str | None = None
    name: str
    state: State
    phase: Phase | None = None
    since: UTCTime
    observed_at: UTCTime | None = None
    stateful: bool | None = None
    pod: str | None = None
    snapshot: str | None = None
    waiting: Reason | None = None
    reason: Reason | None = None
    warnings: list[Reason] = Field(default_factory=list)
    operation: str | None = None
    outcome: Outcome | None = None
    last_resume: WorkspaceResumeReport | None = None
    timeline: dict[str, UTCTime] = Field(default_factory=dict)
    door: ResumeDoor


class PodSnapshotRow(Record):
    """One pod snapshot of this workspace (bytes where known)."""

    id: str
    created: UTCTime
    ready: bool | None = None
    bytes: int | None = None
    next: bool = False
    deleting_since: UTCTime | None = None
    reason: Reason | None = None


class StoppedKernel(Record):
    """What became of one kernel when its server was stopped. `losses`: how many things its checkpoint does not have.

    `saved`: its state is there, from `checkpoint` where that is given. `code`: why it was not saved. Of a kernel that
    was not saved, `checkpoint` is an older one. `interrupted`: its cell was interrupted so that it could be saved.
    """

    kernel: str
    path: str | None = None
    name: str | None = None
    saved: bool
    checkpoint: str | None = None
    code: str | None = None
    losses: int = 0
    interrupted: bool = False


class StopReport(Record):
    """What the last stop of the server kept. `limit`: seconds that there were; `seconds`: used; None: cut short."""

    at: UTCTime
    cause: StopCause
    limit: float
    seconds: float | None = None
    kernels: list[StoppedKernel] = Field(default_factory=list)


class ProcessSnapshots(Record):
    """Whether this server can take exact snapshots. `usable` None: nobody asked yet, or it is being found out."""

    mode: Literal["auto", "on", "off"] = "auto"
    usable: bool | None = None
    reason: Reason | None = None


class ServerState(Record):
    """The answer of `GET state`."""

    revision: int
    state: State
    phase: Phase | None = None
    since: UTCTime
    mode: Literal["local", "cluster"] = "local"
    scope: Scope = "kernel"
    reason: Reason | None = None
    owner: OwnerKind = "local"
    workspace: WorkspaceRow | None = None
    can_pause: bool
    blocked_by: list[Reason] = Field(default_factory=list)
    counts: dict[str, int] = Field(default_factory=dict)
    kernels: list[KernelRow] = Field(default_factory=list)
    operation: Operation | None = None
    last_resume: ResumeReport | None = None
    last_stop: StopReport | None = None
    process_snapshots: ProcessSnapshots | None = None
    on_exit: OnExit = "discard"


class PauseRequest(BaseModel):
    """Body of `POST pause`. Unknown fields are refused: a typo must not change what is lost."""

    model_config = ConfigDict(extra="forbid")

    kernels: list[str] | None = None
    scope: Scope = "kernel"
    on_loss: OnLoss = "refuse"
    when_busy: WhenBusy = "wait"
    cause: Literal["user"] = "user"


class ResumeRequest(BaseModel):
    """Body of `POST resume`: a kernel, or a checkpoint with an optional notebook path."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kernel: str | None = None
    checkpoint: str | None = None
    path: str | None = None
    from_: Literal["auto", "snapshot", "checkpoint"] = Field(default="auto", alias="from")
    on_difference: Literal["refuse", "accept"] = "refuse"


class Decision(BaseModel):
    """Body of `POST operations/ID`."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["accept", "refuse"]


class SessionRecord(BaseModel):
    """`sessions/<kernel id>/session.json`: the truth about one session, running or paused.

    Newer versions and the kernel's watchdog may add fields: they are kept.
    """

    model_config = ConfigDict(extra="allow")

    schema_version: int = 1
    kernel_id: str
    session_id: str | None = None
    root_dir: str
    path: str | None = None
    name: str | None = None
    type: str | None = None
    kernel_name: str
    state: Literal["running", "paused", "ended"]
    since: UTCTime
    cwd: str | None = None
    connection_info: dict[str, Any] = Field(default_factory=dict)
    connection_file: str | None = None
    argv: list[str] = Field(default_factory=list)
    checkpoint: str | None = None
    snapshot: str | None = None
    pid: int | None = None
    pid_start_time: float | None = None
    cause: str | None = None
    #: The process `pid` was only loading the checkpoint: nothing was proven, nothing of it is worth keeping.
    resuming: bool = False
    aborted_cells: list[str] = Field(default_factory=list)
    aborted_notebook_cells: list[str] = Field(default_factory=list)
    missed_output: MissedOutput | None = None
