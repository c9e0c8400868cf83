/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';

import { ToastUpdater } from '../toasts';

describe('ToastUpdater', () => {
  let toasts: ToastUpdater;
  let id: string;
  const sent: string[] = [];

  const note = (_: unknown, change: Notification.IChange): void => {
    sent.push(`${change.type} ${change.notification.message}`);
  };
  /** What JupyterLab does late. */
  const draw = (): HTMLElement => {
    const toast = document.createElement('div');
    toast.id = id;
    document.body.append(toast);
    return toast;
  };
  /** Observers are called in a microtask. */
  const settled = async (): Promise<void> => {
    await new Promise(resolve => setTimeout(resolve));
  };

  beforeEach(() => {
    toasts = new ToastUpdater();
    id = Notification.emit('Pausing', 'in-progress', { autoClose: false });
    sent.length = 0;
    Notification.manager.changed.connect(note);
  });

  afterEach(() => {
    Notification.manager.changed.disconnect(note);
    toasts.dispose();
    Notification.dismiss();
    document.body.replaceChildren();
  });

  it('sends the last word again once the notification is drawn', async () => {
    toasts.update({ id, message: 'half', type: 'in-progress' });
    toasts.update({ id, message: 'failed', type: 'error' });
    document.body.append(document.createElement('p'));
    await settled();
    expect(sent).toEqual(['updated half', 'updated failed']);
    draw();
    await settled();
    expect(sent).toEqual(['updated half', 'updated failed', 'updated failed']);
    document.body.append(document.createElement('p'));
    await settled();
    expect(sent).toHaveLength(3);
  });

  it('sends an update of what is drawn once', async () => {
    draw();
    toasts.update({ id, message: 'failed', type: 'error' });
    document.body.append(document.createElement('p'));
    await settled();
    expect(sent).toEqual(['updated failed']);
  });

  it('does not open again what was closed', async () => {
    toasts.update({ id, message: 'failed', type: 'error' });
    Notification.dismiss(id);
    draw();
    await settled();
    expect(sent).toEqual(['updated failed', 'removed failed']);
    expect(toasts.update({ id, message: 'more', type: 'error' })).toBe(false);
  });

  it('waits for nothing once it is disposed', async () => {
    toasts.update({ id, message: 'failed', type: 'error' });
    toasts.dispose();
    draw();
    await settled();
    expect(sent).toEqual(['updated failed']);
  });
});
