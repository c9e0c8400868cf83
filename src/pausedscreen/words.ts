/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Phase, Reason } from '../api/records';
import type { WorkspaceRow } from '../api/workspace';
import { formatTime, localeOf } from '../format';
import { pathName } from '../names';
import { workspaceSentence } from '../sentences/workspace';
import type { ColdStep } from './coldstart';
import type { IFarewell, IFarewellKernel } from './farewell';
import type { PausedScreenModel, ScreenState } from './model';

/**
 * The heading: the state in a few words.
 */
export function titleOf(state: ScreenState, trans: TranslationBundle): string {
  switch (state) {
    case 'preparing':
    case 'leaving':
      return trans.__('Pausing this workspace');
    case 'paused':
      return trans.__('This workspace is paused');
    case 'asking':
      return trans.__('Asking for this workspace');
    case 'cold':
      return trans.__('Starting on another machine');
    case 'waiting':
      return trans.__('Waiting for capacity');
    case 'starting':
      return trans.__('This workspace is starting');
    case 'restoring':
      return trans.__('Restoring this workspace');
    case 'proving':
      return trans.__('Proving that everything is back');
    case 'failed':
      return trans.__('This workspace did not come back');
    case 'fresh':
      return trans.__('This workspace is fresh');
    case 'unknown':
      return trans.__('The state of this workspace is not known');
    case 'hidden':
      return '';
  }
}

/**
 * What is going on, in one or two sentences.
 */
export function sentenceOf(
  model: Pick<
    PausedScreenModel,
    'state' | 'phase' | 'canLook' | 'cold' | 'elsewhere' | 'farewell'
  >,
  trans: TranslationBundle
): string {
  const stateful = model.farewell?.workspace.stateful === true;
  switch (model.state) {
    case 'leaving':
      return leavingSentence(model.phase, stateful, trans);
    case 'paused':
      return trans.__(
        'Its compute is given back. Nothing is lost here: what is open can be read, and goes on where it was.'
      );
    case 'asking':
      return trans.__(
        'The request is on its way. If the pause has not ended yet, it is asked again by itself.'
      );
    case 'cold':
      return coldSentence(model.cold?.step ?? 'pausing', trans);
    case 'waiting':
      return trans.__(
        'It was asked for and gets the next machine that fits. You can leave this page open.'
      );
    case 'starting':
      return model.elsewhere
        ? trans.__(
            'Go on in the window of JupyterHub. It closes by itself once the server is there.'
          )
        : trans.__('It has been asked for, and its server comes up.');
    case 'restoring':
      return trans.__('Its memory is being brought back.');
    case 'proving':
      return trans.__(
        'The server answers. What is in memory is compared with what was noted before the pause.'
      );
    case 'failed':
      return trans.__('What was kept is still kept. Try again.');
    case 'fresh':
      return trans.__(
        'The same files, but new processes: what was in memory did not come back.'
      );
    case 'unknown':
      return model.canLook
        ? trans.__(
            'Neither its server nor the platform answers. It is tried again by itself.'
          )
        : trans.__(
            'Its server has gone, as was asked. This browser cannot see what became of the pod; it waits for the server.'
          );
    case 'preparing':
    case 'hidden':
      return '';
  }
}

/** The steps of a start on another machine. */
function coldSentence(step: ColdStep, trans: TranslationBundle): string {
  switch (step) {
    case 'pausing':
      return trans.__(
        'Step 1 of 3: the resume that waits is taken back. Nothing runs yet, so nothing is lost by that.'
      );
    case 'waiting':
      return trans.__(
        'Step 2 of 3: waiting until the platform calls it paused again.'
      );
    case 'choosing':
      return trans.__(
        'Step 3 of 3: the other machine is chosen, then the workspace is asked for.'
      );
  }
}

function leavingSentence(
  phase: Phase | null,
  stateful: boolean,
  trans: TranslationBundle
): string {
  switch (phase) {
    case 'snapshotting':
      return trans.__(
        'Its memory is being written to a snapshot. Cells cannot run meanwhile, and the connection drops.'
      );
    case 'releasing':
      return trans.__('What was promised is kept; the pod is being released.');
    default:
      return stateful
        ? trans.__(
            'Documents are saved. Next its memory is written to a snapshot, and the connection drops.'
          )
        : trans.__(
            'Documents and kernel checkpoints are saved. Next the pod is released, and the connection drops.'
          );
  }
}

/**
 * What was kept, one line each, from the last that the server said.
 */
export function keptLines(
  farewell: IFarewell,
  trans: TranslationBundle
): string[] {
  const { workspace, kernels } = farewell;
  const lines = [snapshotLine(workspace, trans)];
  const saved = kernels.filter(
    kernel => kernel.checkpoint !== null || kernel.paused
  );
  const without = kernels.length - saved.length;
  if (saved.length > 0) {
    lines.push(checkpointLine(saved, trans));
  }
  if (without > 0) {
    lines.push(
      workspace.stateful === true
        ? trans._n(
            '%1 kernel in the snapshot only: no checkpoint of it is known here',
            '%1 kernels in the snapshot only: no checkpoint of them is known here',
            without
          )
        : trans._n(
            '%1 kernel of which no checkpoint is known here',
            '%1 kernels of which no checkpoint is known here',
            without
          )
    );
  }
  lines.push(trans.__('Files on volumes stay where they are'));
  return lines;
}

/** Whose variables are on disk; since when, where that is known of all. */
function checkpointLine(
  saved: readonly IFarewellKernel[],
  trans: TranslationBundle
): string {
  const names = saved
    .map(kernel =>
      kernel.path ? pathName(kernel.path, trans) : (kernel.name ?? '?')
    )
    .join(', ');
  const times = saved.map(kernel => kernel.checkpoint).sort();
  const newest = times.includes(null) ? null : times[times.length - 1];
  return newest === null
    ? trans._n(
        'Kernel checkpoint of %2',
        'Kernel checkpoints of %1 notebooks (%2)',
        saved.length,
        names
      )
    : trans._n(
        'Kernel checkpoint of %2, from %3',
        'Kernel checkpoints of %1 notebooks (%2), newest from %3',
        saved.length,
        names,
        formatTime(newest, localeOf(trans))
      );
}

function snapshotLine(
  workspace: WorkspaceRow,
  trans: TranslationBundle
): string {
  switch (workspace.stateful) {
    case true:
      return trans.__(
        'Memory of all processes, in a snapshot: until the next resume has used it, or the platform removes it'
      );
    case false:
      return trans.__('No snapshot: processes and terminals are not kept');
    default:
      return trans.__('Whether there is a snapshot is not known');
  }
}

/**
 * A reason as a sentence; a code that nobody knows is shown as it is.
 */
export function reasonText(
  reason: Reason | null,
  trans: TranslationBundle
): string | null {
  if (!reason) {
    return null;
  }
  return (
    workspaceSentence(reason.code, reason.params ?? {}, trans) ??
    (reason.message || trans.__('The reason has the code "%1".', reason.code))
  );
}

/**
 * The command that starts it without the memory on the machine that it was on; the snapshot stays.
 */
export function coldCommand(workspace: WorkspaceRow): string {
  return `${workspace.door.command} --without-memory`;
}
