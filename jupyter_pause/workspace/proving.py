# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What came back: the proof after a thaw, and the plain word after a cold start.

"Restored" needs proof from inside: every kernel shows the mark whose digest was noted before, and its largest variables
have the digests they had. The owner's word is compared with that, and where both disagree the worse one is said.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from jupyter_pause.kernel_channel import control_request
from jupyter_pause.owners.base import ResumedFrom
from jupyter_pause.states import KernelProof, Outcome, Reason, WorkspaceResumeReport

from .intent import Intent, KernelPromise, fits, mismatches
from .sentences import reason

if TYPE_CHECKING:
    from .pauser import WorkspacePauser
    from .pausing import Thawed
    from .thaw import Gap

#: Seconds between two questions to an owner that does not know yet.
ASK_AGAIN = 2.0
#: Tries to reach a kernel: right after a thaw its first answer may be late.
KERNEL_TRIES = 3
#: Seconds that a clock may differ from the cluster's without being worth a word.
DRIFT = 2.0


class ThawProof:
    """Proves one thaw. The kernels are let go before the owner is asked: a person need not wait for that."""

    def __init__(self, workspace: WorkspacePauser, thawed: Thawed) -> None:
        self._workspace = workspace
        self._pauser = workspace.pauser
        self._gap: Gap = thawed.gap
        self._intent = thawed.intent
        self._asked = thawed.asked

    async def run(self) -> WorkspaceResumeReport:
        """The report; never raises for what cannot be found out."""
        noted = await asyncio.to_thread(self._workspace.intents.read)
        mine = self._intent is not None and noted is not None and noted.id == self._intent.id
        server_mark = mine and noted is not None and noted.server_mark == self._workspace.mark.digest
        proofs = await asyncio.gather(*(self._prove(promise) for promise in self._promises()))
        renewed = await self._renew_tokens()
        await self._workspace.unhold([promise.kernel_id for promise in self._promises()])
        said = await self._ask_owner()
        outcome, warnings = judge(server_mark, list(proofs), said)
        warnings += await self._warn(said, renewed)
        return WorkspaceResumeReport(
            at=self._pauser.clock.now(),
            outcome=outcome,
            via="snapshot" if outcome != "fresh" else None,
            snapshot=said.snapshot if said is not None else None,
            server_mark=server_mark,
            confirmed=said.restored if said is not None else None,
            kernels=list(proofs),
            paused_seconds=self._paused_seconds(),
            clock_drift_seconds=said.clock_drift if said is not None else None,
            renewed=renewed,
            warnings=warnings,
        )

    def _promises(self) -> list[KernelPromise]:
        if self._intent is not None:
            return self._intent.kernels
        return [KernelPromise(kernel_id=kernel_id) for kernel_id in self._pauser.kernel_manager.list_kernel_ids()]

    # --- kernels ------------------------------------------------------------------------------------------------

    async def _prove(self, promise: KernelPromise) -> KernelProof:
        proof = KernelProof(kernel=promise.kernel_id, path=promise.path, checkpoint=promise.checkpoint)
        if promise.paused or promise.mark is None:
            return proof  # paused on its disk, or never asked: nothing is claimed
        nonce = secrets.token_hex(16)
        shown = await self._ask(promise.kernel_id, {"op": "prove", "nonce": nonce})
        proof.mark = shown is not None and shown.get("nonce") == nonce and fits(shown.get("mark"), promise.mark)
        if proof.mark and promise.samples:
            names = [sample.name for sample in promise.samples]
            reply = await self._ask(promise.kernel_id, {"op": "sample", "names": names})
            proof.compared = len(names)
            proof.mismatched = names if reply is None else mismatches(promise.samples, reply.get("samples") or [])
        return proof

    async def _ask(self, kernel_id: str, content: dict[str, Any]) -> dict[str, Any] | None:
        for _ in range(KERNEL_TRIES):
            if kernel_id not in self._pauser.kernel_manager:
                return None
            kernel = self._pauser.kernel_manager.get_kernel(kernel_id)
            reply = await control_request(kernel, content, self._workspace.settings.kernel_timeout)
            if reply is not None:
                return reply
        return None

    async def _renew_tokens(self) -> list[str]:
        """S25: the live server's own variables into the kernels. Names only leave this function."""
        live = self._workspace.live_environment()
        renewed: set[str] = set()
        for promise in self._promises():
            if not promise.paused:
                reply = await self._ask(promise.kernel_id, {"op": "renew_env", "env": live})
                renewed.update((reply or {}).get("renewed") or [])
        return sorted(renewed)

    # --- the owner's word -----------------------------------------------------------------------------------------

    async def _ask_owner(self) -> ResumedFrom | None:
        """What the owner says, within a limit: a word that comes late changes nothing for the person."""
        clock = self._pauser.clock
        end = clock.monotonic() + self._workspace.settings.confirm_timeout
        said: ResumedFrom | None = None
        await self._workspace.owner.wake()
        while True:
            try:
                said = await self._workspace.owner.resumed_from()
                if said.restored is not None:
                    return said
            except Exception as error:
                self._pauser.journal.record("note", code=getattr(error, "code", "internal"))
            if clock.monotonic() >= end:
                return said
            await clock.sleep(ASK_AGAIN)

    # --- what to know ---------------------------------------------------------------------------------------------

    def _paused_seconds(self) -> float | None:
        """By the wall clock where it moved; a clock that still shows the old time says nothing."""
        if self._asked is not None:
            passed = (self._pauser.clock.now() - self._asked).total_seconds()
            return round(max(passed, self._gap.frozen_seconds or 0.0), 3)
        return self._gap.frozen_seconds

    async def _warn(self, said: ResumedFrom | None, renewed: list[str]) -> list[Reason]:
        warnings = []
        if self._gap.frozen_seconds is not None:
            warnings.append(reason("clock_jumped", {"seconds": round(self._gap.frozen_seconds)}))
        if said is not None and said.clock_drift is not None and said.clock_drift < -DRIFT:
            warnings.append(reason("clock_behind", {"seconds": round(-said.clock_drift)}))
        warnings.append(reason("random_state_repeats"))
        if self._intent is not None and self._intent.connections:
            warnings.append(reason("connections_closed", {"count": self._intent.connections}))
        if renewed:
            warnings.append(reason("tokens_renewed", {"names": renewed}))
        stale = [name for name in self._workspace.token_names() if name not in renewed]
        if stale:
            warnings.append(reason("tokens_stale", {"names": stale}))
        before = (self._intent.environment if self._intent is not None else {}).get("gpus")
        now = (await self._workspace.environment()).get("gpus")
        if before != now and before is not None:
            warnings.append(reason("gpu_changed", {"before": before, "now": now}))
        return warnings


def judge(server_mark: bool, proofs: list[KernelProof], said: ResumedFrom | None) -> tuple[Outcome, list[Reason]]:
    """The outcome and what it rests on. `server_mark`: this very process wrote the promise that is on the disk.

    Only marks make it `restored`. An owner that says nothing makes it a warning; one that says something else (another
    snapshot, a restore that failed) makes it `partial` at best, because then one of the two is wrong (S20).
    """
    warnings: list[Reason] = []
    known = [proof for proof in proofs if proof.mark is not None]
    if not server_mark and not any(proof.mark for proof in known):
        return "fresh", [reason("mark_mismatch")]
    whole = server_mark and all(proof.mark for proof in known)
    if not whole:
        warnings.append(reason("mark_mismatch"))
    if len(known) < len(proofs):
        warnings.append(reason("marks_unknown"))
    if any(proof.mismatched for proof in proofs):
        whole = False
        warnings.append(reason("samples_differ"))
    if said is None or said.restored is None:
        warnings.append(reason("restore_not_confirmed"))
    elif said.restored is False:
        whole = False
        why = said.reason
        warnings.append(reason(why.code, why.params) if why is not None else reason("restore_not_confirmed"))
    return ("restored" if whole else "partial"), warnings


def cold_report(intent: Intent, at: Any, kept: set[str]) -> WorkspaceResumeReport:
    """A new process found a promise: the same files, nothing of what was in memory. `kept`: checkpoints on disk."""
    passed = (at - intent.requested).total_seconds()
    return WorkspaceResumeReport(
        at=at,
        outcome="fresh",
        server_mark=False,
        kernels=[
            KernelProof(
                kernel=promise.kernel_id,
                path=promise.path,
                mark=None if promise.paused else False,
                checkpoint=promise.checkpoint if promise.checkpoint in kept else None,
            )
            for promise in intent.kernels
        ],
        paused_seconds=round(passed, 3) if passed >= 0 else None,
        warnings=[reason("cold_start")] if intent.stateful else [],
    )
