/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import type { Checkpoint, Difference, Loss } from './api/records';
import { formatBytes, formatTime, localeOf } from './format';
import { LossList } from './panel/losses';

/**
 * At most this many lines are shown in a dialog; the panel has them all.
 */
const SHOWN = 50;

/**
 * Ask whether to pause although something is lost. The losses are listed first.
 */
export async function confirmLosses(
  losses: readonly Loss[],
  trans: TranslationBundle
): Promise<boolean> {
  const body = ReactWidget.create(
    <div className="jp-Pause-dialog">
      <p>
        {trans._n(
          '%1 thing would not come back after the pause. Everything else is saved.',
          '%1 things would not come back after the pause. Everything else is saved.',
          losses.length
        )}
      </p>
      <LossList losses={losses.slice(0, SHOWN)} trans={trans} />
      <More count={losses.length - SHOWN} trans={trans} />
    </div>
  );
  const result = await showDialog({
    title: trans.__('Pause and lose something?'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Pause anyway') })
    ],
    defaultButton: 0
  });
  return result.button.accept;
}

/**
 * Ask whether to resume although the environment is not what it was.
 */
export async function confirmDifferences(
  differences: readonly Difference[],
  trans: TranslationBundle
): Promise<boolean> {
  const body = ReactWidget.create(
    <div className="jp-Pause-dialog">
      <p>
        {trans.__(
          'The environment is not the one that the checkpoint was made in. Variables that need what is missing may not come back.'
        )}
      </p>
      <table className="jp-Pause-table">
        <thead>
          <tr>
            <th scope="col">{trans.__('Name')}</th>
            <th scope="col">{trans.__('When saved')}</th>
            <th scope="col">{trans.__('Now')}</th>
          </tr>
        </thead>
        <tbody>
          {differences.slice(0, SHOWN).map(difference => (
            <tr key={difference.name}>
              <th scope="row">{difference.name}</th>
              <td>{difference.saved ?? trans.__('not there')}</td>
              <td>{difference.current ?? trans.__('not there')}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <More count={differences.length - SHOWN} trans={trans} />
    </div>
  );
  const result = await showDialog({
    title: trans.__('Resume in another environment?'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Resume anyway') })
    ],
    defaultButton: 0
  });
  return result.button.accept;
}

/**
 * Ask before a checkpoint is deleted for good.
 */
export async function confirmDelete(
  checkpoint: Checkpoint | null,
  trans: TranslationBundle
): Promise<boolean> {
  const locale = localeOf(trans);
  const result = await showDialog({
    title: trans.__('Delete this checkpoint?'),
    body: checkpoint
      ? trans.__(
          'The checkpoint of %1 from %2 (%3) will be deleted for good. What it holds cannot be brought back.',
          checkpoint.path ?? trans.__('an unknown notebook'),
          checkpoint.created
            ? formatTime(checkpoint.created, locale)
            : trans.__('an unknown time'),
          formatBytes(checkpoint.bytes, locale)
        )
      : trans.__('What it holds cannot be brought back.'),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Delete') })
    ],
    defaultButton: 0
  });
  return result.button.accept;
}

/**
 * Ask before the checkpoint of a paused kernel is deleted: it would have nothing to come back from.
 */
export async function confirmForcedDelete(
  trans: TranslationBundle
): Promise<boolean> {
  const result = await showDialog({
    title: trans.__('A paused kernel needs this checkpoint'),
    body: trans.__(
      'If it is deleted, the paused kernel has nothing to come back from and will be empty.'
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep it') }),
      Dialog.warnButton({ label: trans.__('Delete all the same') })
    ],
    defaultButton: 0
  });
  return result.button.accept;
}

/**
 * Ask whether a pause should begin, for people who set that they want to be asked.
 */
export async function confirmPause(
  name: string,
  trans: TranslationBundle
): Promise<boolean> {
  const result = await showDialog({
    title: trans.__('Pause %1?', name),
    body: trans.__(
      'Its variables are written to disk, then its process ends and its memory is free. Resume brings it back.'
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Pause') })
    ]
  });
  return result.button.accept;
}

/**
 * Ask whether the whole workspace should be paused; what to know about it is listed first.
 *
 * @param stateful - whether its memory goes into a snapshot; null: not known.
 */
export async function confirmWorkspacePause(
  stateful: boolean | null,
  warnings: readonly string[],
  trans: TranslationBundle
): Promise<boolean> {
  const body = ReactWidget.create(
    <div className="jp-Pause-dialog">
      <p>
        {trans.__(
          'The server with all its kernels and terminals stops, and its compute is given back. Resume brings it back in this page.'
        )}
      </p>
      <p>
        {stateful === true
          ? trans.__('The memory of all its processes goes into a snapshot.')
          : stateful === false
            ? trans.__(
                'No snapshot is made: files and kernel checkpoints are kept, terminals and other processes are not.'
              )
            : trans.__(
                'Whether a snapshot will be made is not known; kernel checkpoints and files are kept in any case.'
              )}
      </p>
      {warnings.length > 0 && (
        <ul className="jp-Pause-losses">
          {warnings.map(warning => (
            <li key={warning} className="jp-Pause-warning">
              {warning}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
  const result = await showDialog({
    title: trans.__('Pause this workspace?'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Pause this workspace') })
    ]
  });
  return result.button.accept;
}

/**
 * Say what starting without the memory means, and how it is done: the browser may not delete a snapshot.
 *
 * @returns whether the commands should be copied.
 */
export async function explainColdStart(
  commands: readonly string[],
  trans: TranslationBundle
): Promise<boolean> {
  const body = ReactWidget.create(
    <div className="jp-Pause-dialog">
      <p>
        {trans.__(
          'The workspace starts without its memory once its snapshot is gone. That cannot be undone: what is in memory only, and in no kernel checkpoint, is lost.'
        )}
      </p>
      <p>{trans.__('The browser may not delete a snapshot. Run this:')}</p>
      <pre className="jp-Pause-commands">{commands.join('\n')}</pre>
    </div>
  );
  const result = await showDialog({
    title: trans.__('Start without the memory?'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep the memory') }),
      Dialog.warnButton({ label: trans.__('Copy the commands') })
    ],
    defaultButton: 0
  });
  return result.button.accept;
}

/**
 * Says how many lines were left out.
 */
function More(props: {
  count: number;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { count, trans } = props;
  if (count <= 0) {
    return null;
  }
  return (
    <p>
      {trans._n(
        'and %1 more, listed in the Pause panel',
        'and %1 more, listed in the Pause panel',
        count
      )}
    </p>
  );
}
