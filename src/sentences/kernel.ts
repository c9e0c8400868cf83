/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import { formatBytes, localeOf } from '../format';
import type { Params, Sentence, Sentences } from './table';
import { number, sentenceIn } from './table';

/**
 * A sentence for a code that is about a kernel, its checkpoint or the request, or null for another code.
 */
export function kernelSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  return sentenceIn(
    [TRANSPORT, REQUESTS, PAUSES, RESUMES],
    code,
    params,
    trans
  );
}

const serverUnreachable: Sentence = trans =>
  trans.__(
    'The Jupyter server does not answer. Nothing was changed; try again when it is back.'
  );

/** Whether the server can be asked at all. */
const TRANSPORT: Sentences = {
  server_part_missing: trans =>
    trans.__(
      'The server part of jupyter-pause is not running. Run "jupyter server extension enable jupyter_pause" and restart Jupyter.'
    ),
  server_unreachable: serverUnreachable,
  server_unavailable: serverUnreachable,
  server_stopping: trans =>
    trans.__('The Jupyter server is shutting down. Try again when it is back.'),
  forbidden: trans =>
    trans.__(
      'You may not do this on this server. Ask its administrator for the right to change kernels.'
    ),
  bad_answer: trans =>
    trans.__(
      'The answer did not come from the Jupyter server; you may have been signed out. Reload the page.'
    )
};

const badRequest: Sentence = trans =>
  trans.__(
    'Browser and server do not understand each other. Reload the page; if it persists, both need the same version of jupyter-pause.'
  );

const operationNotFound: Sentence = trans =>
  trans.__('This pause or resume has ended already.');

/** What was asked for, and cannot be done. */
const REQUESTS: Sentences = {
  bad_request: badRequest,
  bad_id: badRequest,
  method_not_allowed: badRequest,
  kernel_not_found: trans =>
    trans.__(
      'This kernel does not exist any more. If it was paused, its checkpoint is listed in the Pause panel.'
    ),
  operation_not_found: operationNotFound,
  too_late: operationNotFound,
  no_question: trans => trans.__('The question was answered already.'),
  request_not_found: trans =>
    trans.__('The pause went on before the documents were saved.'),
  not_found: trans =>
    trans.__(
      'This checkpoint does not exist any more. Refresh the Pause panel to see those on disk.'
    ),
  operation_in_progress: trans =>
    trans.__(
      'Another pause or resume is at work on this kernel. Wait for it, or cancel it.'
    ),
  operation_interrupted: trans =>
    trans.__(
      'The server ended before this was done. The running kernel or its last complete checkpoint is still there.'
    ),
  not_cancellable: trans =>
    trans.__(
      'It is too late to cancel: the state is saved and the process is ending. Resume it afterwards.'
    ),
  checkpoint_in_use: trans =>
    trans.__(
      'A paused kernel will come back from this checkpoint. Resume it first, or delete it all the same.'
    ),
  internal: trans =>
    trans.__(
      'Something went wrong inside jupyter-pause; the kernel was left as it was. The server log says more.'
    )
};

/** How a pause ended without one. */
const PAUSES: Sentences = {
  not_pausable: trans =>
    trans.__(
      'This kernel cannot be paused. Its files are kept; its variables are not.'
    ),
  nothing_to_pause: trans => trans.__('No kernel can be paused now.'),
  kernel_busy: trans =>
    trans.__(
      'The kernel runs a cell. Wait until it is idle, or interrupt it, then pause.'
    ),
  kernel_dead: trans =>
    trans.__(
      'The kernel is not alive. Restart it, or resume its last checkpoint.'
    ),
  would_lose: trans =>
    trans.__(
      'Some things would not come back. Look at the list in the Pause panel, then decide.'
    ),
  no_space: (trans, params) => noSpaceSentence(params, trans),
  unwritable: trans =>
    trans.__(
      'The checkpoint folder cannot be written. Check who owns it, or choose another with PauseApp.checkpoint_dir.'
    ),
  capture_failed: trans =>
    trans.__(
      'The state could not be saved; the kernel goes on as before. The server log says what stood in the way.'
    ),
  capture_stalled: trans =>
    trans.__(
      'Saving made no progress, so it was given up; the kernel goes on as before. Check the disk, then try again.'
    ),
  kernel_not_answering: trans =>
    trans.__(
      'The kernel did not answer; nothing was changed. Wait until it is idle, or interrupt it, then try again.'
    ),
  kernel_died: trans =>
    trans.__(
      'The kernel died while it was being saved. Its last complete checkpoint is in the Pause panel.'
    ),
  release_failed: trans =>
    trans.__(
      'The state was saved, but the process could not be ended. Shut the kernel down by hand to free its memory.'
    )
};

const damaged: Sentence = trans =>
  trans.__(
    'The checkpoint is damaged, so nothing of it was loaded. Use an older checkpoint.'
  );

const resumeFailed: Sentence = trans =>
  trans.__(
    'The kernel could not be brought back. It is still paused and its checkpoint is kept: try again.'
  );

/** How a resume ended without one. */
const RESUMES: Sentences = {
  kernelspec_missing: (trans, params) =>
    trans.__(
      'The kernel specification "%1" of this paused session is not there any more. Install its environment again, then resume; the session and its checkpoint are kept.',
      nameOf(params, trans)
    ),
  interpreter_missing: (trans, params) =>
    trans.__(
      'The program that the kernel specification "%1" starts is not there any more. Install its environment again, then resume; the session and its checkpoint are kept.',
      nameOf(params, trans)
    ),
  not_paused: trans =>
    trans.__('The kernel is running, so there is nothing to resume.'),
  session_held: trans =>
    trans.__(
      'Another Jupyter server holds this session. Resume it there, or stop that server first.'
    ),
  environment_differs: trans =>
    trans.__(
      'The environment is not the one that the checkpoint was made in. Look at the differences, then decide.'
    ),
  signature_mismatch: trans =>
    trans.__(
      'The checkpoint was changed after it was signed, so nothing of it was loaded. Use an older checkpoint.'
    ),
  damaged: damaged,
  incomplete: damaged,
  unsupported_format: trans =>
    trans.__(
      'A newer version wrote this checkpoint. Upgrade jupyter-pause to resume it.'
    ),
  checkpoint_missing: trans =>
    trans.__(
      'The checkpoint of this paused kernel is gone. Restart the kernel for a fresh start.'
    ),
  snapshot_unavailable: trans =>
    trans.__(
      'This kernel has no exact snapshot. Resume from the checkpoint instead.'
    ),
  resume_failed: resumeFailed,
  resume_timeout: resumeFailed
};

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

function nameOf(params: Params, trans: TranslationBundle): string {
  return typeof params.name === 'string' ? params.name : trans.__('unnamed');
}
