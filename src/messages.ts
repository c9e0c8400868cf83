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
import { formatTime, localeOf } from './format';
import { kernelSentence } from './sentences/kernel';
import type { Params } from './sentences/table';
import { workspaceSentence } from './sentences/workspace';
import { snapshotSentence } from './sentences/snapshots';
import type { Availability } from './tokens';

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
    kernelSentence(code, params, trans) ??
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
