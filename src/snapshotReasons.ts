/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Reason } from './api/records';

type Params = Record<string, unknown>;

/**
 * A sentence for a code that is about exact snapshots of kernels, or null for a code that is not. The server's are in
 * `snapshot/sentences.py`; a test compares both lists.
 */
export function snapshotSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'snapshot_not_usable':
      return trans.__(
        'The exact snapshot cannot be used; it is kept, and the kernel is still paused. %1 Resume from the checkpoint, or try again.',
        inner(params, trans)
      );
    case 'snapshot_required':
      return trans
        .__(
          '%1 Pausing needs an exact snapshot here, so nothing was changed.',
          inner(params, trans)
        )
        .trim();
    default:
      return (
        notHere(code, params, trans) ??
        notTaken(code, params, trans) ??
        notUsed(code, params, trans)
      );
  }
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

function inner(params: Params, trans: TranslationBundle): string {
  return snapshotSentence(String(params.why), params, trans) ?? '';
}

function text(value: unknown, trans: TranslationBundle): string {
  if (value === undefined || value === null) {
    return trans.__('unknown');
  }
  return Array.isArray(value) ? value.join(', ') : String(value);
}

/**
 * Why exact snapshots cannot be had here.
 */
function notHere(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'snapshots_off':
      return trans.__(
        'Process snapshots are switched off (PauseApp.snapshots); pausing keeps variables, by checkpoint.'
      );
    case 'snapshots_not_linux':
      return trans.__(
        'Process snapshots need Linux; pausing keeps variables, by checkpoint.'
      );
    case 'snapshots_testing':
      return trans.__(
        'It is being found out whether process snapshots work here.'
      );
    case 'criu_absent':
      return trans.__(
        'Process snapshots need the program criu 4.2 or newer, which is not installed; pausing keeps variables, by checkpoint.'
      );
    case 'criu_not_there':
      return trans.__('The program that PauseApp.criu names is not there.');
    case 'criu_too_old':
      return trans.__(
        'The criu here is version %1; process snapshots need 4.2 or newer.',
        text(params.version, trans)
      );
    case 'criu_not_runnable':
      return trans.__(
        'The program criu cannot be run by this user (%1).',
        text(params.detail, trans)
      );
    case 'criu_missing_capabilities':
      return trans.__(
        'The program criu lacks %1. An administrator can give them, once: setcap %2 %3',
        text(params.capabilities, trans),
        text(params.setcap, trans),
        text(params.program, trans)
      );
    case 'criu_no_new_privileges':
      return trans.__(
        'This server was started so that no program may gain rights (no_new_privs), so criu cannot work as a plain user.'
      );
    case 'criu_dump_failed':
      return trans.__(
        'The self-test of criu failed: it could not dump a small process (%1).',
        text(params.detail, trans)
      );
    case 'criu_dump_hung':
      return trans.__(
        'The self-test of criu failed: dumping a small process took more than %1 seconds.',
        text(params.seconds, trans)
      );
    case 'criu_restore_failed':
      return trans.__(
        'The self-test of criu failed: it could not restore a small process (%1).',
        text(params.detail, trans)
      );
    case 'criu_restore_hung':
      return trans.__(
        'The self-test of criu failed: restoring a small process took more than %1 seconds.',
        text(params.seconds, trans)
      );
    case 'criu_wrong_memory':
      return trans.__(
        'The self-test of criu failed: the restored process had another memory.'
      );
    case 'criu_test_failed':
      return trans.__(
        'The self-test of criu could not be run (%1).',
        text(params.detail, trans)
      );
    default:
      return null;
  }
}

/**
 * Why none can be taken of a kernel now.
 */
function notTaken(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'unix_socket_outside':
      return trans.__(
        'A connection to %1 over a Unix socket cannot be kept in a snapshot; close it first.',
        text(params.program, trans)
      );
    case 'ipc_transport':
      return trans.__(
        'The kernel speaks over ipc sockets, whose open connections cannot be kept in a snapshot.'
      );
    case 'terminal_outside':
      return trans.__(
        'The kernel uses the terminal %1, which belongs to another program.',
        text(params.name, trans)
      );
    case 'deleted_file_too_large':
      return trans.__(
        'A deleted file that is still open is larger than 1 GiB; close it first.'
      );
    case 'gpu_without_plugin':
      return trans.__(
        "The kernel uses a GPU, and criu's CUDA plugin or cuda-checkpoint is not here."
      );
    case 'other_users_process':
      return trans.__(
        'A process that the kernel started runs as another user, so it cannot be dumped.'
      );
    case 'being_traced':
      return trans.__(
        'A debugger is attached to a process of the kernel; detach it first.'
      );
    case 'no_room_for_snapshot':
      return trans.__(
        'There is not enough room on the checkpoint disk for the whole process.'
      );
    case 'process_gone':
      return trans.__('The process ended while it was looked at.');
    case 'snapshot_dump_failed':
      return trans.__(
        'The process could not be dumped (%1).',
        text(params.detail, trans)
      );
    case 'snapshot_dump_hung':
      return trans.__(
        'Dumping the process took more than %1 seconds.',
        text(params.seconds, trans)
      );
    case 'snapshot_not_written':
      return trans.__(
        'The snapshot could not be written (%1).',
        text(params.detail, trans)
      );
    case 'no_checkpoint_possible':
      return trans.__(
        'Only a snapshot can keep this kernel: it has no variables that a checkpoint could hold.'
      );
    default:
      return null;
  }
}

/**
 * Why one that was taken is not used.
 */
function notUsed(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'no_snapshot':
      return trans.__('This pause made no snapshot.');
    case 'snapshot_missing':
      return trans.__('The snapshot is not there any more.');
    case 'snapshot_damaged':
      return trans.__('The snapshot is damaged, so it was not used.');
    case 'snapshot_signature_mismatch':
      return trans.__(
        'The snapshot was changed after it was signed, so it was not used.'
      );
    case 'snapshot_unsupported_format':
      return trans.__('The snapshot was written by a newer version.');
    case 'machine_changed':
      return trans.__('The snapshot was made on another machine.');
    case 'kernel_changed':
      return trans.__(
        'The snapshot was made under another Linux kernel (%1, now %2).',
        text(params.saved, trans),
        text(params.current, trans)
      );
    case 'criu_changed':
      return trans.__(
        'The snapshot was made by criu %1, which is newer than the one here (%2).',
        text(params.saved, trans),
        text(params.current, trans)
      );
    case 'user_changed':
      return trans.__('The snapshot was made by another user.');
    case 'pid_taken':
      return trans.__(
        'The process number %1 is in use by another program now.',
        text(params.pid, trans)
      );
    case 'files_gone':
      return trans.__(
        'Files that the process had open are gone: %1.',
        text(params.names, trans)
      );
    case 'files_changed':
      return trans.__(
        'Files that the process had open were changed: %1.',
        text(params.names, trans)
      );
    case 'libraries_changed':
      return trans.__(
        'Programs or libraries that the process had loaded were changed: %1.',
        text(params.names, trans)
      );
    case 'port_taken':
      return trans.__(
        'A network port of the process is in use by another program now.'
      );
    case 'snapshot_restore_failed':
      return trans.__(
        'The process could not be restored (%1).',
        text(params.detail, trans)
      );
    case 'snapshot_restore_hung':
      return trans.__(
        'Restoring the process took more than %1 seconds.',
        text(params.seconds, trans)
      );
    case 'snapshot_not_proven':
      return trans.__(
        'The restored process could not prove that it is the one that was paused.'
      );
    case 'snapshot_process_ended':
      return trans.__('The restored process ended at once.');
    default:
      return null;
  }
}
