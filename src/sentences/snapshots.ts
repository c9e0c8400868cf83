/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Reason } from '../api/records';
import type { Params, Sentences } from './table';
import { sentenceIn } from './table';

/**
 * A sentence for a code that is about exact snapshots of kernels, or null for a code that is not. The server's are in
 * `snapshot/sentences.py`; a test compares both lists.
 */
export function snapshotSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  return sentenceIn(
    [REFUSED, NOT_HERE, NOT_TAKEN, NOT_USED],
    code,
    params,
    trans
  );
}

/**
 * The sentence of a reason; the server's own English where the code is a newer one.
 */
export function snapshotReason(
  reason: Reason,
  trans: TranslationBundle
): string {
  return snapshotSentence(reason.code, reason.params, trans) ?? reason.message;
}

/** What is asked for needs a snapshot; `why` is one of the other codes. */
const REFUSED: Sentences = {
  snapshot_not_usable: (trans, params) =>
    trans.__(
      'The exact snapshot cannot be used; it is kept, and the kernel is still paused. %1 Resume from the checkpoint, or try again.',
      inner(params, trans)
    ),
  snapshot_required: (trans, params) =>
    trans
      .__(
        '%1 Pausing needs an exact snapshot here, so nothing was changed.',
        inner(params, trans)
      )
      .trim()
};

/** Why exact snapshots cannot be had here. */
const NOT_HERE: Sentences = {
  snapshots_off: trans =>
    trans.__(
      'Process snapshots are switched off (PauseApp.snapshots); pausing keeps variables, by checkpoint.'
    ),
  snapshots_not_linux: trans =>
    trans.__(
      'Process snapshots need Linux; pausing keeps variables, by checkpoint.'
    ),
  snapshots_testing: trans =>
    trans.__('It is being found out whether process snapshots work here.'),
  criu_absent: trans =>
    trans.__(
      'Process snapshots need the program criu 4.2 or newer, which is not installed; pausing keeps variables, by checkpoint.'
    ),
  criu_not_there: trans =>
    trans.__('The program that PauseApp.criu names is not there.'),
  criu_too_old: (trans, params) =>
    trans.__(
      'The criu here is version %1; process snapshots need 4.2 or newer.',
      shown(params.version, trans)
    ),
  criu_not_runnable: (trans, params) =>
    trans.__(
      'The program criu cannot be run by this user (%1).',
      shown(params.detail, trans)
    ),
  criu_missing_capabilities: (trans, params) =>
    trans.__(
      'The program criu lacks %1. An administrator can give them, once: setcap %2 %3',
      shown(params.capabilities, trans),
      shown(params.setcap, trans),
      shown(params.program, trans)
    ),
  criu_no_new_privileges: trans =>
    trans.__(
      'This server was started so that no program may gain rights (no_new_privs), so criu cannot work as a plain user.'
    ),
  criu_dump_failed: (trans, params) =>
    trans.__(
      'The self-test of criu failed: it could not dump a small process (%1).',
      shown(params.detail, trans)
    ),
  criu_dump_hung: (trans, params) =>
    trans.__(
      'The self-test of criu failed: dumping a small process took more than %1 seconds.',
      shown(params.seconds, trans)
    ),
  criu_restore_failed: (trans, params) =>
    trans.__(
      'The self-test of criu failed: it could not restore a small process (%1).',
      shown(params.detail, trans)
    ),
  criu_restore_hung: (trans, params) =>
    trans.__(
      'The self-test of criu failed: restoring a small process took more than %1 seconds.',
      shown(params.seconds, trans)
    ),
  criu_wrong_memory: trans =>
    trans.__(
      'The self-test of criu failed: the restored process had another memory.'
    ),
  criu_test_failed: (trans, params) =>
    trans.__(
      'The self-test of criu could not be run (%1).',
      shown(params.detail, trans)
    )
};

/** Why none can be taken of a kernel now. */
const NOT_TAKEN: Sentences = {
  unix_socket_outside: (trans, params) =>
    trans.__(
      'A connection to %1 over a Unix socket cannot be kept in a snapshot; close it first.',
      shown(params.program, trans)
    ),
  ipc_transport: trans =>
    trans.__(
      'The kernel speaks over ipc sockets, whose open connections cannot be kept in a snapshot.'
    ),
  terminal_outside: (trans, params) =>
    trans.__(
      'The kernel uses the terminal %1, which belongs to another program.',
      shown(params.name, trans)
    ),
  deleted_file_too_large: trans =>
    trans.__(
      'A deleted file that is still open is larger than 1 GiB; close it first.'
    ),
  gpu_without_plugin: trans =>
    trans.__(
      "The kernel uses a GPU, and criu's CUDA plugin or cuda-checkpoint is not here."
    ),
  other_users_process: trans =>
    trans.__(
      'A process that the kernel started runs as another user, so it cannot be dumped.'
    ),
  being_traced: trans =>
    trans.__(
      'A debugger is attached to a process of the kernel; detach it first.'
    ),
  no_room_for_snapshot: trans =>
    trans.__(
      'There is not enough room on the checkpoint disk for the whole process.'
    ),
  process_gone: trans => trans.__('The process ended while it was looked at.'),
  snapshot_dump_failed: (trans, params) =>
    trans.__(
      'The process could not be dumped (%1).',
      shown(params.detail, trans)
    ),
  snapshot_dump_hung: (trans, params) =>
    trans.__(
      'Dumping the process took more than %1 seconds.',
      shown(params.seconds, trans)
    ),
  snapshot_not_written: (trans, params) =>
    trans.__(
      'The snapshot could not be written (%1).',
      shown(params.detail, trans)
    ),
  no_checkpoint_possible: trans =>
    trans.__(
      'Only a snapshot can keep this kernel: it has no variables that a checkpoint could hold.'
    )
};

/** Why one that was taken is not used. */
const NOT_USED: Sentences = {
  no_snapshot: trans => trans.__('This pause made no snapshot.'),
  snapshot_missing: trans => trans.__('The snapshot is not there any more.'),
  snapshot_damaged: trans =>
    trans.__('The snapshot is damaged, so it was not used.'),
  snapshot_signature_mismatch: trans =>
    trans.__(
      'The snapshot was changed after it was signed, so it was not used.'
    ),
  snapshot_unsupported_format: trans =>
    trans.__('The snapshot was written by a newer version.'),
  machine_changed: trans =>
    trans.__('The snapshot was made on another machine.'),
  kernel_changed: (trans, params) =>
    trans.__(
      'The snapshot was made under another Linux kernel (%1, now %2).',
      shown(params.saved, trans),
      shown(params.current, trans)
    ),
  criu_changed: (trans, params) =>
    trans.__(
      'The snapshot was made by criu %1, which is newer than the one here (%2).',
      shown(params.saved, trans),
      shown(params.current, trans)
    ),
  user_changed: trans => trans.__('The snapshot was made by another user.'),
  pid_taken: (trans, params) =>
    trans.__(
      'The process number %1 is in use by another program now.',
      shown(params.pid, trans)
    ),
  files_gone: (trans, params) =>
    trans.__(
      'Files that the process had open are gone: %1.',
      shown(params.names, trans)
    ),
  files_changed: (trans, params) =>
    trans.__(
      'Files that the process had open were changed: %1.',
      shown(params.names, trans)
    ),
  libraries_changed: (trans, params) =>
    trans.__(
      'Programs or libraries that the process had loaded were changed: %1.',
      shown(params.names, trans)
    ),
  port_taken: trans =>
    trans.__('A network port of the process is in use by another program now.'),
  snapshot_restore_failed: (trans, params) =>
    trans.__(
      'The process could not be restored (%1).',
      shown(params.detail, trans)
    ),
  snapshot_restore_hung: (trans, params) =>
    trans.__(
      'Restoring the process took more than %1 seconds.',
      shown(params.seconds, trans)
    ),
  snapshot_not_proven: trans =>
    trans.__(
      'The restored process could not prove that it is the one that was paused.'
    ),
  snapshot_process_ended: trans =>
    trans.__('The restored process ended at once.')
};

function inner(params: Params, trans: TranslationBundle): string {
  return snapshotSentence(String(params.why), params, trans) ?? '';
}

/** A parameter as text; lists with commas, and in words where it was not given. */
function shown(value: unknown, trans: TranslationBundle): string {
  if (value === undefined || value === null) {
    return trans.__('unknown');
  }
  return Array.isArray(value) ? value.join(', ') : String(value);
}
