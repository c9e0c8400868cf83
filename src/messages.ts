/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import { PauseApiError } from './api/client';
import type {
  ApiErrorBody,
  Fate,
  KernelRow,
  MissedOutput,
  Operation,
  Phase,
  Reason,
  State
} from './api/records';
import { formatBytes, formatTime, localeOf } from './format';
import type { Availability } from './tokens';
import { snapshotSentence } from './snapshotReasons';
import { workspaceSentence } from './workspaceReasons';

type Params = Record<string, unknown>;

/**
 * The server speaks in codes; this is where they become sentences: what happened, and what to do next.
 *
 * @param error - anything that was thrown, or an error body.
 */
export function errorSentence(
  error: unknown,
  trans: TranslationBundle
): string {
  if (error instanceof PauseApiError) {
    return codeSentence(error.code, error.body.params ?? {}, trans);
  }
  if (isBody(error)) {
    return codeSentence(error.code, error.params ?? {}, trans);
  }
  return trans.__(
    'Something went wrong in the browser. Reload the page and try again.'
  );
}

/**
 * One clear sentence, or two, for a stable code. An unknown code is shown as it is: it can be searched for.
 */
export function codeSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string {
  const sentence =
    transportSentence(code, trans) ??
    requestSentence(code, trans) ??
    pauseSentence(code, params, trans) ??
    resumeSentence(code, params, trans) ??
    snapshotSentence(code, params, trans) ??
    workspaceSentence(code, params, trans);
  if (sentence !== null) {
    return sentence;
  }
  return trans.__(
    'The request failed with the code "%1". Look at the server log for it, then try again.',
    code
  );
}

function transportSentence(
  code: string,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'server_part_missing':
      return trans.__(
        'The server part of jupyter-pause is not running. Run "jupyter server extension enable jupyter_pause" and restart Jupyter.'
      );
    case 'server_unreachable':
    case 'server_unavailable':
      return trans.__(
        'The Jupyter server does not answer. Nothing was changed; try again when it is back.'
      );
    case 'server_stopping':
      return trans.__(
        'The Jupyter server is shutting down. Try again when it is back.'
      );
    case 'forbidden':
      return trans.__(
        'You may not do this on this server. Ask its administrator for the right to change kernels.'
      );
    case 'bad_answer':
      return trans.__(
        'The answer did not come from the Jupyter server; you may have been signed out. Reload the page.'
      );
    default:
      return null;
  }
}

function requestSentence(
  code: string,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'bad_request':
    case 'bad_id':
    case 'method_not_allowed':
      return trans.__(
        'Browser and server do not understand each other. Reload the page; if it persists, both need the same version of jupyter-pause.'
      );
    case 'kernel_not_found':
      return trans.__(
        'This kernel does not exist any more. If it was paused, its checkpoint is listed in the Pause panel.'
      );
    case 'operation_not_found':
    case 'too_late':
      return trans.__('This pause or resume has ended already.');
    case 'no_question':
      return trans.__('The question was answered already.');
    case 'request_not_found':
      return trans.__('The pause went on before the documents were saved.');
    case 'not_found':
      return trans.__(
        'This checkpoint does not exist any more. Refresh the Pause panel to see those on disk.'
      );
    case 'operation_in_progress':
      return trans.__(
        'Another pause or resume is at work on this kernel. Wait for it, or cancel it.'
      );
    case 'operation_interrupted':
      return trans.__(
        'The server ended before this was done. The running kernel or its last complete checkpoint is still there.'
      );
    case 'not_cancellable':
      return trans.__(
        'It is too late to cancel: the state is saved and the process is ending. Resume it afterwards.'
      );
    case 'checkpoint_in_use':
      return trans.__(
        'A paused kernel will come back from this checkpoint. Resume it first, or delete it all the same.'
      );
    case 'internal':
      return trans.__(
        'Something went wrong inside jupyter-pause; the kernel was left as it was. The server log says more.'
      );
    default:
      return null;
  }
}

function pauseSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'not_pausable':
      return trans.__(
        'This kernel cannot be paused. Its files are kept; its variables are not.'
      );
    case 'nothing_to_pause':
      return trans.__('No kernel can be paused now.');
    case 'kernel_busy':
      return trans.__(
        'The kernel runs a cell. Wait until it is idle, or interrupt it, then pause.'
      );
    case 'kernel_dead':
      return trans.__(
        'The kernel is not alive. Restart it, or resume its last checkpoint.'
      );
    case 'would_lose':
      return trans.__(
        'Some things would not come back. Look at the list in the Pause panel, then decide.'
      );
    case 'no_space':
      return noSpaceSentence(params, trans);
    case 'unwritable':
      return trans.__(
        'The checkpoint folder cannot be written. Check who owns it, or choose another with PauseApp.checkpoint_dir.'
      );
    case 'capture_failed':
      return trans.__(
        'The state could not be saved; the kernel goes on as before. The server log says what stood in the way.'
      );
    case 'capture_stalled':
      return trans.__(
        'Saving made no progress, so it was given up; the kernel goes on as before. Check the disk, then try again.'
      );
    case 'kernel_not_answering':
      return trans.__(
        'The kernel did not answer; nothing was changed. Wait until it is idle, or interrupt it, then try again.'
      );
    case 'kernel_died':
      return trans.__(
        'The kernel died while it was being saved. Its last complete checkpoint is in the Pause panel.'
      );
    case 'release_failed':
      return trans.__(
        'The state was saved, but the process could not be ended. Shut the kernel down by hand to free its memory.'
      );
    default:
      return null;
  }
}

function noSpaceSentence(params: Params, trans: TranslationBundle): string {
  const need = number(params.needed ?? params.bytes);
  const free = number(params.free);
  if (need !== null && free !== null) {
    return trans.__(
      'The checkpoint needs %1, but its disk has only %2. Free some room, or choose another disk with PauseApp.checkpoint_dir.',
      formatBytes(need, localeOf(trans)),
      formatBytes(free, localeOf(trans))
    );
  }
  return trans.__(
    'There is not enough room on the checkpoint disk. Free some, or choose another disk with PauseApp.checkpoint_dir.'
  );
}

function resumeSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'kernelspec_missing':
      return trans.__(
        'The kernel specification "%1" of this paused session is not there any more. Install its environment again, then resume; the session and its checkpoint are kept.',
        nameOf(params, trans)
      );
    case 'interpreter_missing':
      return trans.__(
        'The program that the kernel specification "%1" starts is not there any more. Install its environment again, then resume; the session and its checkpoint are kept.',
        nameOf(params, trans)
      );
    case 'not_paused':
      return trans.__('The kernel is running, so there is nothing to resume.');
    case 'session_held':
      return trans.__(
        'Another Jupyter server holds this session. Resume it there, or stop that server first.'
      );
    case 'environment_differs':
      return trans.__(
        'The environment is not the one that the checkpoint was made in. Look at the differences, then decide.'
      );
    case 'signature_mismatch':
      return trans.__(
        'The checkpoint was changed after it was signed, so nothing of it was loaded. Use an older checkpoint.'
      );
    case 'damaged':
    case 'incomplete':
      return trans.__(
        'The checkpoint is damaged, so nothing of it was loaded. Use an older checkpoint.'
      );
    case 'unsupported_format':
      return trans.__(
        'A newer version wrote this checkpoint. Upgrade jupyter-pause to resume it.'
      );
    case 'checkpoint_missing':
      return trans.__(
        'The checkpoint of this paused kernel is gone. Restart the kernel for a fresh start.'
      );
    case 'snapshot_unavailable':
      return trans.__(
        'This kernel has no exact snapshot. Resume from the checkpoint instead.'
      );
    case 'resume_failed':
    case 'resume_timeout':
      return trans.__(
        'The kernel could not be brought back. It is still paused and its checkpoint is kept: try again.'
      );
    default:
      return null;
  }
}

/**
 * Why a kernel cannot be paused, in one sentence.
 */
export function blockedSentence(
  reason: Reason | null,
  trans: TranslationBundle
): string {
  if (reason === null) {
    return trans.__('This kernel cannot be paused.');
  }
  switch (reason.code) {
    case 'not_python':
      return trans.__(
        'Only Python kernels can be paused. Files of this kernel are kept; its variables are not.'
      );
    case 'wrapped_command':
      return trans.__(
        'This kernel is started through another command, so it cannot be paused.'
      );
    case 'foreign_provisioner':
      return trans.__(
        'Another provisioner starts this kernel, so it cannot be paused.'
      );
    case 'windows':
      return trans.__('Kernels cannot be paused on Windows yet.');
    case 'starting':
      return trans.__('The kernel is starting. It can be paused in a moment.');
    case 'not_ipykernel':
      return trans.__(
        'Only kernels that run ipykernel can be paused. Files of this kernel are kept; its variables are not.'
      );
    case 'extension_off':
      return codeSentence('server_part_missing', {}, trans);
    case 'no_kernel':
      return trans.__('No kernel is running.');
    default:
      return codeSentence(reason.code, reason.params, trans);
  }
}

/**
 * Something to know about a kernel that is not a reason against pausing it, or null.
 */
export function noteSentence(
  row: KernelRow,
  trans: TranslationBundle
): string | null {
  if (row.reason === null) {
    return null;
  }
  switch (row.reason.code) {
    case 'restarted_while_paused':
      return trans.__(
        'The kernel was restarted while it was paused, so it is empty. What it held is still in its checkpoint.'
      );
    case 'restarted':
    case '':
      return null;
    case 'buffers_mismatch':
      return trans.__(
        'Some data was damaged on disk. Do not trust the variables named below; an older checkpoint may have them.'
      );
    default:
      return row.state === 'failed' || row.state === 'paused'
        ? codeSentence(row.reason.code, row.reason.params, trans)
        : null;
  }
}

/**
 * That the notebook lacks output, since when and why.
 */
export function missedOutputSentence(
  missed: MissedOutput,
  trans: TranslationBundle
): string {
  const locale = localeOf(trans);
  const since = formatTime(missed.since, locale);
  const until = formatTime(missed.until, locale);
  if (missed.cause === 'no_server') {
    return trans.__(
      'The kernel went on while its server was away (%1 to %2). What it printed then is not in this notebook.',
      since,
      until
    );
  }
  if (missed.messages === null) {
    return trans.__(
      'The kernel printed while no page was connected (%1 to %2). That output is not in this notebook.',
      since,
      until
    );
  }
  return trans._n(
    '%1 output came while no page was connected (%2 to %3). It is not in this notebook.',
    '%1 outputs came while no page was connected (%2 to %3). They are not in this notebook.',
    missed.messages,
    since,
    until
  );
}

/**
 * Why nothing can be done at all, or null when the server part answers.
 */
export function availabilitySentence(
  availability: Availability,
  trans: TranslationBundle
): string | null {
  switch (availability) {
    case 'ready':
      return null;
    case 'starting':
      return trans.__('Asking the server what can be paused…');
    case 'missing':
      return codeSentence('server_part_missing', {}, trans);
    case 'forbidden':
      return codeSentence('forbidden', {}, trans);
    case 'unreachable':
      return trans.__('The Jupyter server does not answer. Waiting for it…');
  }
}

/**
 * The name of a state.
 */
export function stateName(state: State, trans: TranslationBundle): string {
  switch (state) {
    case 'running':
      return trans.__('Running');
    case 'pausing':
      return trans.__('Pausing');
    case 'paused':
      return trans.__('Paused');
    case 'waiting':
      return trans.__('Waiting');
    case 'resuming':
      return trans.__('Resuming');
    case 'ready':
      return trans.__('Ready');
    case 'failed':
      return trans.__('Failed');
    default:
      return trans.__('Unknown');
  }
}

/**
 * What is being done in a phase.
 */
export function phaseName(
  phase: Phase | null,
  trans: TranslationBundle
): string | null {
  switch (phase) {
    case 'checking':
      return trans.__('checking');
    case 'saving':
      return trans.__('saving');
    case 'rehearsing':
      return trans.__('trying the checkpoint out');
    case 'draining':
      return trans.__('waiting for the running cell');
    case 'snapshotting':
      return trans.__('taking the snapshot');
    case 'releasing':
      return trans.__('freeing memory');
    case 'starting':
      return trans.__('starting the process');
    case 'restoring':
      return trans.__('restoring');
    case 'proving':
      return trans.__('proving');
    default:
      return null;
  }
}

/**
 * The name of a fate.
 */
export function fateName(fate: Fate, trans: TranslationBundle): string {
  switch (fate) {
    case 'kept':
      return trans.__('kept');
    case 'in snapshot':
      return trans.__('in snapshot');
    case 'in checkpoint':
      return trans.__('in checkpoint');
    case 'rebuilt':
      return trans.__('rebuilt');
    case 'lost':
      return trans.__('lost');
    case 'outside':
      return trans.__('outside');
    default:
      return trans.__('unknown');
  }
}

/**
 * Why an operation ended without success, or null.
 */
export function operationError(
  operation: Operation,
  trans: TranslationBundle
): string | null {
  return operation.error ? errorSentence(operation.error, trans) : null;
}

function isBody(value: unknown): value is ApiErrorBody {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { code?: unknown }).code === 'string'
  );
}

function nameOf(params: Params, trans: TranslationBundle): string {
  return typeof params.name === 'string' ? params.name : trans.__('unnamed');
}

function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
