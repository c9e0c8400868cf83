# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Why an item has its fate: the codes the server uses in `InventoryItem.reason`, with one English sentence each.

The frontend has its own, translated sentences for the same codes; the command line prints these. A reason that is no
code here is the message of the object itself (that it cannot be pickled, for one) and is shown as it is.
"""

from __future__ import annotations

REASONS: dict[str, str] = {
    "temporary_storage": "lies in memory or in the container's own layer: gone once that is restarted",
    "environment_on_container_disk": "gone after a cold start, unless the image has it; kept in a pod snapshot",
    "network_storage": "lies on another machine: stays there, whatever happens to the kernel",
    "object_storage": "lies in a bucket: its content stays there; open files on it are not promised to go on",
    "storage_unknown": "what kind of storage this is cannot be told on this system",
    "saved_state_only": "kept as last saved; what was typed since is known to the browser only",
    "not_saved_yet": "there is no such file (yet)",
    "reopened": "opened again at the same position",
    "holder_unknown": "opened again if a variable holds it; a file that a library holds is not",
    "outside_connection": "a connection to another program does not survive the end of the process",
    "listening_socket": "nobody listens any more once the process has ended",
    "child_process": "ends together with the kernel",
    "helper_process": "a helper of Python itself; started again when it is needed",
    "kernel_process": "the process ends and its memory is free; a new one takes its place",
    "device_total": "used by all programs on this device together, not by this kernel alone",
    "device_process": "used by this kernel's processes, as the driver counts it",
    "gpu_unreadable": "the driver did not answer the question; there may be something on it",
    "gpu_no_permission": "the driver refuses to tell (permission); there may be something on it",
    "gpu_not_supported": "this driver or device does not tell; there may be something on it",
    "gpu_timeout": "the driver did not answer in time; there may be something on it",
    "gpu_other_vendor": "a GPU whose memory cannot be read here; there may be something on it",
    "kernel_not_answering": "the kernel did not answer; this is not known",
}


def sentence(reason: str | None) -> str:
    """The sentence of a code, or the reason itself when it is no code; empty for None."""
    return REASONS.get(reason, reason) if reason else ""
