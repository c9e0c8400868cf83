/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { KernelRow } from '../api/records';
import { dialogBody } from '../dialogs';
import { sessionName } from '../names';
import type { IShutDownPlan } from './plan';

/**
 * What a person answers: shut down and save what runs, shut down without saving it, or not at all.
 */
export type ShutDownAnswer = 'save' | 'discard' | 'stay';

/**
 * Ask whether to shut down; what is kept and what is not is listed by name.
 *
 * @param name - the name of the application.
 */
export async function confirmShutDown(
  plan: IShutDownPlan,
  name: string,
  trans: TranslationBundle
): Promise<ShutDownAnswer> {
  const { kept, saved, ended, choice } = plan;
  const body = (
    <>
      <Group
        title={trans.__('Stays paused for the next start:')}
        rows={kept}
        trans={trans}
      />
      <Group
        title={
          choice
            ? trans.__('Runs, and can be saved for the next start:')
            : trans.__('Is saved now, and paused at the next start:')
        }
        rows={saved}
        trans={trans}
      />
      <Group
        title={trans.__(
          'Ends; its variables are lost unless it is paused first:'
        )}
        rows={ended}
        trans={trans}
      />
    </>
  );
  const label = trans.__('Shut Down');
  const buttons: Record<ShutDownAnswer, Dialog.IButton> = {
    stay: Dialog.cancelButton({ label: trans.__('Cancel') }),
    discard: Dialog.warnButton({
      label: choice ? trans.__('Discard and Shut Down') : label
    }),
    save: choice
      ? Dialog.okButton({ label: trans.__('Save and Shut Down') })
      : Dialog.warnButton({ label })
  };
  const offered: ShutDownAnswer[] = choice
    ? ['stay', 'discard', 'save']
    : ['stay', 'save'];
  const { button } = await showDialog({
    title: trans.__('Shut down %1?', name),
    body: dialogBody(body),
    buttons: offered.map(answer => buttons[answer])
  });
  return button.accept
    ? (offered.find(answer => buttons[answer].label === button.label) ?? 'stay')
    : 'stay';
}

/**
 * Say that the server is on its way out; stays until it is disposed.
 *
 * @param saving - how many kernels the server saves first.
 */
export function showStopping(
  saving: number,
  trans: TranslationBundle
): Dialog<unknown> {
  const dialog = new Dialog({
    title: trans.__('Shutting down'),
    body:
      saving > 0
        ? trans._n(
            'The state of %1 kernel is being saved. Leave this page open until that is done.',
            'The state of %1 kernels is being saved. Leave this page open until that is done.',
            saving
          )
        : trans.__('The Jupyter server is being stopped.'),
    buttons: [],
    hasClose: false
  });
  // It ends by being disposed, never by an answer.
  void dialog.launch().catch(() => undefined);
  return dialog;
}

/**
 * The last word: the server is gone, and what waits for the next start.
 *
 * @param name - the name of the application.
 */
export function showStopped(
  kept: readonly KernelRow[],
  name: string,
  trans: TranslationBundle
): void {
  const body = (
    <>
      <p>
        {trans.__(
          'The Jupyter server is shut down; this tab can be closed. To use %1 again, start it again.',
          name
        )}
      </p>
      <Group
        title={trans.__('Paused, and there again at the next start:')}
        rows={kept}
        trans={trans}
      />
    </>
  );
  void showDialog({
    title: trans.__('Server stopped'),
    body: dialogBody(body),
    buttons: []
  });
}

/** Kernels that share a fate, by the names that people know them by. */
function Group(props: {
  title: string;
  rows: readonly KernelRow[];
  trans: TranslationBundle;
}): JSX.Element | null {
  const { title, rows, trans } = props;
  if (rows.length === 0) {
    return null;
  }
  return (
    <>
      <p>{title}</p>
      <ul className="jp-Pause-names">
        {rows.map(row => (
          <li key={row.id}>{sessionName(row, trans)}</li>
        ))}
      </ul>
    </>
  );
}
