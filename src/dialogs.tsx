/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import type { Checkpoint, Difference, KernelRow, Loss } from './api/records';
import {
  devicesOf,
  devicesSentence,
  differenceName,
  differenceValue
} from './differences';
import { formatBytes, formatTime, localeOf } from './format';
import { sessionName } from './names';
import { LossList } from './panel/losses';

/**
 * At most this many lines are shown in a dialog; the panel has them all.
 */
const SHOWN = 50;

/**
 * What all our questions have in common: a way back, and a way on.
 */
interface IQuestion {
  title: string;

  /** A sentence, or what to look at first. */
  body: string | JSX.Element;

  /** The way on. */
  accept: string;

  /** The way back, when "Cancel" does not say it. */
  refuse?: string;

  /** Whether the way on loses something. */
  dangerous?: boolean;

  /** Whether Enter is the way back. Always so where something is lost. */
  hesitate?: boolean;
}

async function ask(
  question: IQuestion,
  trans: TranslationBundle
): Promise<boolean> {
  const { title, accept, dangerous = false } = question;
  const button = { label: accept };
  const result = await showDialog({
    title,
    body: dialogBody(question.body),
    buttons: [
      Dialog.cancelButton({ label: question.refuse ?? trans.__('Cancel') }),
      dangerous ? Dialog.warnButton(button) : Dialog.okButton(button)
    ],
    defaultButton: (question.hesitate ?? dangerous) ? 0 : 1
  });
  return result.button.accept;
}

/**
 * A dialog's body in our own frame, which scrolls when it is long.
 */
export function dialogBody(body: string | JSX.Element): string | ReactWidget {
  return typeof body === 'string'
    ? body
    : ReactWidget.create(<div className="jp-Pause-dialog">{body}</div>);
}

/**
 * Ask whether to pause although something is lost. The losses are listed first.
 */
export function confirmLosses(
  losses: readonly Loss[],
  trans: TranslationBundle
): Promise<boolean> {
  const body = (
    <>
      <p>
        {trans._n(
          '%1 thing would not come back after the pause. Everything else is saved.',
          '%1 things would not come back after the pause. Everything else is saved.',
          losses.length
        )}
      </p>
      <LossList losses={losses.slice(0, SHOWN)} trans={trans} />
      <More count={losses.length - SHOWN} trans={trans} />
    </>
  );
  return ask(
    {
      title: trans.__('Pause and lose something?'),
      body,
      accept: trans.__('Pause anyway'),
      dangerous: true
    },
    trans
  );
}

/**
 * Ask whether to resume although the environment is not what it was.
 */
export function confirmDifferences(
  differences: readonly Difference[],
  trans: TranslationBundle
): Promise<boolean> {
  const devices = devicesOf(differences);
  const body = (
    <>
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
              <th scope="row">{differenceName(difference, trans)}</th>
              <td>{differenceValue(difference, difference.saved, trans)}</td>
              <td>{differenceValue(difference, difference.current, trans)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {devices.length > 0 && (
        <p className="jp-Pause-warning">{devicesSentence(devices, trans)}</p>
      )}
      <More count={differences.length - SHOWN} trans={trans} />
    </>
  );
  return ask(
    {
      title: trans.__('Resume in another environment?'),
      body,
      accept: trans.__('Resume anyway'),
      hesitate: true
    },
    trans
  );
}

/**
 * Ask before a checkpoint is deleted for good.
 */
export function confirmDelete(
  checkpoint: Checkpoint | null,
  trans: TranslationBundle
): Promise<boolean> {
  const locale = localeOf(trans);
  return ask(
    {
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
      accept: trans.__('Delete'),
      dangerous: true
    },
    trans
  );
}

/**
 * Ask before the checkpoint of a paused kernel is deleted: it would have nothing to come back from.
 */
export function confirmForcedDelete(
  trans: TranslationBundle
): Promise<boolean> {
  return ask(
    {
      title: trans.__('A paused kernel needs this checkpoint'),
      body: trans.__(
        'If it is deleted, the paused kernel has nothing to come back from and will be empty.'
      ),
      refuse: trans.__('Keep it'),
      accept: trans.__('Delete all the same'),
      dangerous: true
    },
    trans
  );
}

/**
 * Ask whether a pause should begin, for people who set that they want to be asked.
 */
export function confirmPause(
  name: string,
  trans: TranslationBundle
): Promise<boolean> {
  return ask(
    {
      title: trans.__('Pause %1?', name),
      body: trans.__(
        'Its variables are written to disk, then its process ends and its memory is free. Resume brings it back.'
      ),
      accept: trans.__('Pause')
    },
    trans
  );
}

/**
 * Ask before cells run in a paused kernel: it is resumed first.
 */
export function confirmRun(
  row: KernelRow,
  trans: TranslationBundle
): Promise<boolean> {
  const name = sessionName(row, trans);
  return ask(
    {
      title: trans.__('Resume and run?'),
      body:
        row.state === 'pausing'
          ? trans.__(
              '%1 is being paused. The cells can run after it was paused and resumed.',
              name
            )
          : trans.__(
              '%1 is paused. Resume it with its variables, then run the cells?',
              name
            ),
      accept: trans.__('Resume and run')
    },
    trans
  );
}

/**
 * Ask before a running kernel with variables is replaced by the one from a checkpoint.
 */
export function confirmReplace(
  path: string,
  trans: TranslationBundle
): Promise<boolean> {
  return ask(
    {
      title: trans.__('Replace the running kernel?'),
      body: trans.__(
        '%1 has a running kernel with variables of its own. They are lost when it is replaced by the checkpoint.',
        path
      ),
      accept: trans.__('Replace it'),
      dangerous: true
    },
    trans
  );
}

/**
 * Ask whether the whole workspace should be paused; what to know about it is listed first.
 *
 * @param stateful - whether its memory goes into a snapshot; null: not known.
 */
export function confirmWorkspacePause(
  stateful: boolean | null,
  warnings: readonly string[],
  trans: TranslationBundle
): Promise<boolean> {
  const body = (
    <>
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
    </>
  );
  return ask(
    {
      title: trans.__('Pause this workspace?'),
      body,
      accept: trans.__('Pause this workspace')
    },
    trans
  );
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
