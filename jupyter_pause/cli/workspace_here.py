# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause status` and `now` on a server that runs in a workspace: asked of that server, not of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .output import age, duration, moment

if TYPE_CHECKING:
    from .output import Output

_OUTCOMES = {
    "restored": "it came back with its memory, proven by marks",
    "partial": "it came back, but not everything of it is proven",
    "fresh": "it is a fresh start: the same files, new processes",
}


def say_workspace(output: Output, state: dict[str, Any]) -> None:
    """The lines about the whole pod; nothing on a plain machine."""
    workspace = state.get("workspace")
    if not workspace:
        return
    name = f"{workspace['namespace']}/{workspace['name']}" if workspace["namespace"] else workspace["name"]
    now = workspace["state"] + (f" ({workspace['phase']})" if workspace["phase"] else "")
    seen = workspace["observed_at"]
    output.say(f"Workspace {name} ({state['owner']}): {now} since {moment(workspace['since'])}.")
    if workspace["reason"]:
        output.say(f"  {_text(workspace['reason'])} Last confirmed by the cluster: {age(seen) if seen else 'never'}.")
    output.say(f"  {_promise(workspace['stateful'])}")
    for warning in workspace["warnings"]:
        output.say(f"  {_text(warning)}")
    report = workspace["last_resume"]
    if report:
        say_resume(output, report)


def say_resume(output: Output, report: dict[str, Any]) -> None:
    """How the last resume of the workspace ended."""
    away = f" after {duration(report['paused_seconds'])}" if report["paused_seconds"] is not None else ""
    output.say(f"  Last resume, {moment(report['at'])}{away}: {_OUTCOMES[report['outcome']]}.")
    for kernel in report["kernels"]:
        label = kernel["path"] or kernel["kernel"][:8]
        if kernel["mark"] is False and report["outcome"] != "restored":
            kept = f"checkpoint {kernel['checkpoint'][:8]} is kept" if kernel["checkpoint"] else "nothing of it is kept"
            output.say(f"    {label}: a new process; {kept}.")
        elif kernel["mismatched"]:
            output.say(f"    {label}: these differ: {', '.join(kernel['mismatched'])}.")
    for warning in report["warnings"]:
        output.say(f"    {_text(warning)}")


def means_workspace(options: Any, state: dict[str, Any]) -> bool:
    """Whether `now` without a notebook means the whole pod, as the button does."""
    return state.get("scope") == "workspace" and not options.target and not options.all and not options.preview


def _promise(stateful: bool | None) -> str:
    if stateful:
        return "A pause takes a snapshot: memory, processes and terminals are kept."
    if stateful is None:
        return "Whether a pause takes a snapshot is not known; kernels are checkpointed first."
    return "A pause makes no snapshot: files and kernel checkpoints are kept, processes and terminals are not."


def _text(reason: dict[str, Any]) -> str:
    text = str(reason.get("message") or reason["code"].replace("_", " "))
    return text if text.endswith(".") else f"{text}."
