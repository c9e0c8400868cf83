# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The errors that reach a person: a stable code, parameters, an HTTP status, one English sentence for logs and curl."""

from __future__ import annotations

from typing import Any

from .cluster.sentences import CLUSTER_SENTENCES
from .states import ApiError, Loss

#: code -> (HTTP status, sentence). The frontend has its own, translated sentences for the same codes.
SENTENCES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not valid: {detail}. See the REST reference for the fields."),
    "bad_id": (400, "That is not a valid id. Ids are listed by GET state and GET checkpoints."),
    "kernel_not_found": (404, "There is no such kernel. It may have been shut down; look at the list of checkpoints."),
    "operation_not_found": (404, "There is no such operation. GET state shows the running one."),
    "request_not_found": (404, "Nobody asked for these documents, or the pause went on already."),
    "not_found": (404, "There is no such checkpoint. GET checkpoints lists those on disk."),
    "operation_in_progress": (409, "Another operation is at work on this kernel. Wait for it or cancel it."),
    "not_pausable": (409, "This kernel cannot be paused: {detail}."),
    "kernel_busy": (409, "The kernel is running a cell. Wait for it, or interrupt it first."),
    "kernel_dead": (409, "The kernel is not alive. Restart it, or resume its last checkpoint."),
    "not_paused": (409, "The kernel is running, so there is nothing to resume."),
    "session_held": (409, "Another Jupyter server holds this session. Resume it there, or stop that server first."),
    "checkpoint_in_use": (
        409,
        "A paused kernel will come back from this checkpoint. Resume it first, or force the deletion.",
    ),
    "nothing_to_pause": (409, "No kernel can be paused now."),
    "not_cancellable": (409, "It is too late to cancel: the process is being ended after its state was saved."),
    "no_question": (409, "This operation is not waiting for a decision."),
    "too_late": (409, "The operation has ended already."),
    "snapshot_unavailable": (409, "This kernel has no process snapshot. Resume from the checkpoint instead."),
    "snapshot_not_usable": (
        409,
        "The process snapshot cannot be used; it is kept, and the kernel is still paused. {detail} Resume from the "
        "checkpoint, or try again.",
    ),
    "snapshot_required": (
        409,
        "Pausing needs a process snapshot here (PauseApp.snapshots is `on`), and none can be taken. {detail}",
    ),
    "would_lose": (422, "Some things would not come back. Look at `losses`, then ask again with on_loss=accept."),
    "environment_differs": (
        422,
        "The environment is not the one the checkpoint was made in. Look at `differences`, then ask again with "
        "on_difference=accept.",
    ),
    "no_space": (
        409,
        "There is not enough room on the checkpoint disk. Free some, or set PauseApp.checkpoint_dir to another disk.",
    ),
    "unwritable": (
        409,
        "The checkpoint folder cannot be written. Check its owner, or set PauseApp.checkpoint_dir to another folder.",
    ),
    "signature_mismatch": (
        409,
        "The checkpoint was changed after it was signed, so nothing of it was loaded. Use an older checkpoint.",
    ),
    "damaged": (409, "The checkpoint is damaged, so nothing of it was loaded. Use an older checkpoint."),
    "incomplete": (409, "The checkpoint is not complete, so nothing of it was loaded. Use an older checkpoint."),
    "unsupported_format": (409, "The checkpoint was written by a newer version. Upgrade jupyter-pause to resume it."),
    "checkpoint_missing": (409, "The checkpoint of this paused kernel is gone. Restart the kernel for a fresh start."),
    "kernelspec_missing": (
        409,
        "The kernel specification {name} of this paused session is not there any more. Install its environment again, "
        "then resume; the session and its checkpoint are kept.",
    ),
    "interpreter_missing": (
        409,
        "The program that the kernel specification {name} starts is not there any more. Install its environment again, "
        "then resume; the session and its checkpoint are kept.",
    ),
    "capture_failed": (500, "The state could not be saved; the kernel goes on as before. {detail}"),
    "capture_stalled": (500, "Saving made no progress for {seconds} seconds; the kernel goes on as before."),
    "kernel_not_answering": (500, "The kernel did not answer for {seconds} seconds; nothing was changed."),
    "kernel_died": (500, "The kernel died while its state was being saved. Its last complete checkpoint is kept."),
    "resume_failed": (
        500,
        "The kernel could not be brought back; it is still paused and the checkpoint is kept. {detail}",
    ),
    "resume_timeout": (500, "The kernel did not come back within {seconds} seconds; it is still paused, try again."),
    "release_failed": (500, "The state was saved, but the process could not be ended. {detail}"),
    "workspace_unsupported": (409, "Nobody here can pause the whole workspace. Pause kernels one by one instead."),
    "workspace_blocked": (409, "This workspace cannot be paused now. Look at `blocked_by`, it names what to do."),
    "workspace_pausing": (409, "The workspace is being paused already, by somebody else."),
    "intent_unwritable": (
        409,
        "What was promised could not be written to the checkpoint folder ({detail}), so nothing was released.",
    ),
    "snapshot_overdue": (
        500,
        "The snapshot was not ready after {seconds} seconds, so the pause was taken back and everything goes on.",
    ),
    "snapshot_failed": (500, "The snapshot failed, so the pause was taken back and everything goes on. {detail}"),
    "release_overdue": (
        500,
        "The pod was not ended within {seconds} seconds, so the pause was taken back. Paused kernels can be resumed.",
    ),
    "take_back_failed": (
        500,
        "The snapshot did not come, and the pause could not be taken back: the cluster did not answer. The pod runs.",
    ),
    "hub_forbidden": (409, "JupyterHub does not allow this server's token to do that: it lacks the scope {scope}."),
    "hub_unauthorized": (503, "JupyterHub does not accept this server's token. Restart the server from the Hub."),
    "hub_not_found": (404, "JupyterHub knows no such server, or this server's token may not see it."),
    "hub_refused": (409, "JupyterHub refused: {message} (status {status})."),
    "hub_unreachable": (503, "JupyterHub could not be reached ({why}). Try again in a moment."),
    "server_stopping": (503, "The server is shutting down."),
    "internal": (500, "Something went wrong inside jupyter-pause ({detail}). The kernel was left as it was."),
}
SENTENCES.update(CLUSTER_SENTENCES)


class _OrUnknown(dict[str, str]):
    """Values of a sentence; one that nobody gave reads `?`."""

    def __missing__(self, key: str) -> str:
        return "?"


class PauseError(Exception):
    """An error with a stable `code`; `status` is its HTTP status."""

    def __init__(self, code: str, *, losses: list[Loss] | None = None, **params: Any) -> None:
        self.code = code
        self.params = params
        self.losses = losses
        super().__init__(self.sentence)

    @property
    def status(self) -> int:
        """The HTTP status that goes with the code (500 for an unknown one)."""
        return SENTENCES.get(self.code, (500, ""))[0]

    @property
    def sentence(self) -> str:
        """One English sentence for logs and curl."""
        template = SENTENCES.get(self.code, (500, "Something went wrong (" + self.code + ")."))[1]
        values = {"detail": ""} | {k: str(v) for k, v in self.params.items() if v is not None}
        return template.format_map(_OrUnknown(values)).strip()

    def to_model(self) -> ApiError:
        """The error as the body that REST and operations show."""
        operation = self.params.get("operation")
        differences = self.params.get("differences")
        return ApiError(
            message=self.sentence,
            code=self.code,
            reason=None,
            params={k: v for k, v in self.params.items() if k not in ("operation", "differences")},
            losses=self.losses,
            differences=differences,
            operation=operation,
        )


def as_pause_error(error: BaseException | None) -> PauseError | None:
    """A PauseError, or one made of another of our errors that has `code` and `params`; None for anything else."""
    if isinstance(error, PauseError):
        return error
    code, params = getattr(error, "code", None), getattr(error, "params", None)
    if isinstance(code, str) and isinstance(params, dict):
        return PauseError(code, **{str(k): v for k, v in params.items() if k not in ("code", "losses")})
    return None
