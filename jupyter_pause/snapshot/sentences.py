# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Why no process snapshot can be had, or why one cannot be used: stable codes, one English sentence each.

The frontend has its own, translated sentences for the same codes.
"""

from __future__ import annotations

from jupyter_pause.states import Reason

SNAPSHOT_SENTENCES: dict[str, str] = {
    # whether CRIU works here
    "snapshots_off": "Process snapshots are switched off (PauseApp.snapshots); pausing keeps variables, by checkpoint.",
    "snapshots_not_linux": "Process snapshots need Linux; pausing keeps variables, by checkpoint.",
    "snapshots_testing": "It is being found out whether process snapshots work here.",
    "criu_absent": "Process snapshots need the program criu 4.2 or newer, which is not installed; pausing keeps "
    "variables, by checkpoint.",
    "criu_not_there": "The program that PauseApp.criu names is not there.",
    "criu_too_old": "The criu here is version {version}; process snapshots need 4.2 or newer.",
    "criu_not_runnable": "The program criu cannot be run by this user ({detail}).",
    "criu_missing_capabilities": "The program criu lacks {capabilities}. An administrator can give them, once: "
    "setcap {setcap} {program}",
    "criu_no_new_privileges": "This server was started so that no program may gain rights (no_new_privs), so criu "
    "cannot work as a plain user.",
    "criu_dump_failed": "The self-test of criu failed: it could not dump a small process ({detail}).",
    "criu_dump_hung": "The self-test of criu failed: dumping a small process took more than {seconds} seconds.",
    "criu_restore_failed": "The self-test of criu failed: it could not restore a small process ({detail}).",
    "criu_restore_hung": "The self-test of criu failed: restoring a small process took more than {seconds} seconds.",
    "criu_wrong_memory": "The self-test of criu failed: the restored process had another memory.",
    "criu_test_failed": "The self-test of criu could not be run ({detail}).",
    # what stands in the way of taking one
    "unix_socket_outside": "A connection to {program} over a Unix socket cannot be kept in a snapshot; close it first.",
    "ipc_transport": "The kernel speaks over ipc sockets, whose open connections cannot be kept in a snapshot.",
    "terminal_outside": "The kernel uses the terminal {name}, which belongs to another program.",
    "deleted_file_too_large": "A deleted file that is still open is larger than 1 GiB; close it first.",
    "gpu_without_plugin": "The kernel uses a GPU, and criu's CUDA plugin or cuda-checkpoint is not here.",
    "other_users_process": "A process that the kernel started runs as another user, so it cannot be dumped.",
    "being_traced": "A debugger is attached to a process of the kernel; detach it first.",
    "no_room_for_snapshot": "There is not enough room on the checkpoint disk for the whole process.",
    "process_gone": "The process ended while it was looked at.",
    "snapshot_dump_failed": "The process could not be dumped ({detail}).",
    "snapshot_dump_hung": "Dumping the process took more than {seconds} seconds.",
    "snapshot_not_written": "The snapshot could not be written ({detail}).",
    "no_checkpoint_possible": "Only a snapshot can keep this kernel: it has no variables that a checkpoint could hold.",
    # what stands in the way of using one
    "no_snapshot": "This pause made no snapshot.",
    "snapshot_missing": "The snapshot is not there any more.",
    "snapshot_damaged": "The snapshot is damaged, so it was not used.",
    "snapshot_signature_mismatch": "The snapshot was changed after it was signed, so it was not used.",
    "snapshot_unsupported_format": "The snapshot was written by a newer version.",
    "machine_changed": "The snapshot was made on another machine.",
    "kernel_changed": "The snapshot was made under another Linux kernel ({saved}, now {current}).",
    "criu_changed": "The snapshot was made by criu {saved}, which is newer than the one here ({current}).",
    "user_changed": "The snapshot was made by another user.",
    "pid_taken": "The process number {pid} is in use by another program now.",
    "files_gone": "Files that the process had open are gone: {names}.",
    "files_changed": "Files that the process had open were changed: {names}.",
    "libraries_changed": "Programs or libraries that the process had loaded were changed: {names}.",
    "port_taken": "A network port of the process is in use by another program now.",
    "snapshot_restore_failed": "The process could not be restored ({detail}).",
    "snapshot_restore_hung": "Restoring the process took more than {seconds} seconds.",
    "snapshot_not_proven": "The restored process could not prove that it is the one that was paused.",
    "snapshot_process_ended": "The restored process ended at once.",
}


class _OrUnknown(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def reason(code: str, **params: object) -> Reason:
    """A reason with its sentence."""
    values = {name: _text(value) for name, value in params.items()}
    sentence = SNAPSHOT_SENTENCES[code].format_map(_OrUnknown(values))
    return Reason(code=code, message=sentence, params=dict(params))


def _text(value: object) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)
