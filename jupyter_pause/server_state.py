# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`GET state`: every kernel with its state, sessions that other servers hold, and what all of it comes to."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from .errors import PauseError
from .states import AGGREGATION_ORDER, KernelRow, Reason, ServerState

if TYPE_CHECKING:
    from .pauser import Pauser
    from .states import State


async def server_state(pauser: Pauser) -> ServerState:
    """Everything of `GET state`."""
    sessions: dict[str, dict[str, Any]] = {}
    for model in await pauser.session_manager.list_sessions():
        sessions.setdefault(str((model.get("kernel") or {}).get("id")), model)
    rows = [_row(pauser, kernel_id, sessions.get(kernel_id)) for kernel_id in pauser.kernels]
    known = {row.id for row in rows}
    rows += [row for row in await _absent_rows(pauser) if row.id not in known]
    counts = Counter(row.state for row in rows)
    top: State = next((s for s in AGGREGATION_ORDER if counts[s]), "running")
    running = pauser.operations.under_way()
    blocked = _blocked_by(pauser, rows)
    state = ServerState(
        revision=pauser.kernels.revision,
        state=top,
        phase=next((row.phase for row in rows if row.state == top and row.phase), None),
        since=max((row.since for row in rows if row.state == top), default=pauser.started),
        can_pause=not blocked and any(row.pausable and row.state in ("running", "ready") for row in rows),
        blocked_by=blocked,
        reason=pauser.settings.environment,
        counts=dict(counts),
        kernels=rows,
        operation=running[0].snapshot() if running else None,
        last_resume=pauser.last_resume,
        last_stop=pauser.last_stop,
        process_snapshots=None if pauser.snapshots is None else pauser.snapshots.outlook(),
        on_exit=pauser.settings.on_exit,
    )
    if pauser.workspace is not None:
        pauser.workspace.complete(state)
    return state


def _row(pauser: Pauser, kernel_id: str, session: dict[str, Any] | None) -> KernelRow:
    entry = pauser.kernels.entry(kernel_id)
    reason = pauser.kernels.not_pausable(kernel_id)
    return KernelRow(
        id=kernel_id,
        name=pauser.kernel_manager.get_kernel(kernel_id).kernel_name,
        path=(session or {}).get("path"),
        state=entry.state,
        phase=entry.phase,
        since=entry.since,
        checkpoint=entry.checkpoint,
        outcome=entry.outcome,
        pausable=reason is None,
        reason=reason or entry.reason,
        operation=entry.operation,
        last_resume=entry.last_resume,
        last_pause=entry.last_pause,
        aborted_cells=entry.aborted_cells,
        aborted_notebook_cells=entry.aborted_notebook_cells,
        missed_output=pauser.outputs.of(kernel_id),
    )


async def _absent_rows(pauser: Pauser) -> list[KernelRow]:
    """Paused sessions of this root dir that are not kernels of this server (another server holds them)."""
    rows = []
    for record in await asyncio.to_thread(pauser.owner.sessions):
        if record.state != "paused" or record.kernel_id in pauser.kernels:
            continue
        rows.append(
            KernelRow(
                id=record.kernel_id,
                name=record.kernel_name,
                path=record.path,
                state="paused",
                since=record.since,
                checkpoint=await pauser.checkpoints.summary(record.checkpoint),
                pausable=False,
                reason=_why_absent(pauser, record.kernel_id),
            )
        )
    return rows


def _why_absent(pauser: Pauser, kernel_id: str) -> Reason:
    name = pauser.owner.without_specification.get(kernel_id)
    if name is None:
        return Reason(code="session_held")
    error = PauseError("kernelspec_missing", name=name)
    return Reason(code=error.code, message=error.sentence, params=error.params)


def _blocked_by(pauser: Pauser, rows: list[KernelRow]) -> list[Reason]:
    if not rows:
        return [Reason(code="no_kernel")]
    if not any(row.pausable for row in rows):
        return [row.reason for row in rows if row.reason is not None]
    try:
        pauser.settings.require_room()
    except PauseError as error:
        return [Reason(code=error.code)]
    return []
