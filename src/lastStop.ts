/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import type { StoppedKernel, StopReport } from './api/records';
import { formatTime, localeOf } from './format';
import type { IPauseManager } from './tokens';

/**
 * Where this browser keeps the time of the last stop that a person was told about.
 */
const KEY = 'jupyter-pause:last-stop-told';

/**
 * Tells a person once what a stop of the server, ordered by somebody else, could not save. What was saved needs no
 * telling: it is there, paused.
 */
export class LastStopNotifier implements IDisposable {
  /**
   * Construct a new notifier.
   */
  constructor(options: LastStopNotifier.IOptions) {
    this._options = options;
    options.manager.changed.connect(this._look, this);
    this._look();
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Stop looking. */
  dispose(): void {
    this._isDisposed = true;
    this._options.manager.changed.disconnect(this._look, this);
  }

  private _look(): void {
    const { manager, storage, trans } = this._options;
    const stop = manager.state?.last_stop;
    if (!stop || storage.getItem(KEY) === stop.at) {
      return;
    }
    const text = stopText(stop, trans);
    storage.setItem(KEY, stop.at);
    if (text) {
      Notification.warning(text, { autoClose: false });
    }
  }

  private readonly _options: LastStopNotifier.IOptions;
  private _isDisposed = false;
}

/**
 * What was not saved, by name and with the reason; null when there is nothing to tell.
 */
export function stopText(
  stop: StopReport,
  trans: TranslationBundle
): string | null {
  const unsaved = stop.kernels.filter(kernel => !kernel.saved);
  // A person who stopped the server knows what they did.
  if (stop.cause !== 'ordered' || unsaved.length === 0) {
    return null;
  }
  const at = formatTime(stop.at, localeOf(trans));
  const names = unsaved.map(nameOf).join(', ');
  return unsaved.length === 1
    ? trans.__(
        'The server was stopped on %1, and the variables of %2 could not be saved. %3',
        at,
        names,
        whySentence(unsaved[0], trans)
      )
    : trans.__(
        'The server was stopped on %1, and the variables of %2 notebooks could not be saved: %3.',
        at,
        unsaved.length,
        names
      );
}

function whySentence(kernel: StoppedKernel, trans: TranslationBundle): string {
  if (kernel.checkpoint) {
    return trans.__('An older checkpoint of it is on disk.');
  }
  switch (kernel.code) {
    case 'not_pausable':
      return trans.__('Kernels of its kind cannot be paused.');
    case 'no_space':
      return trans.__('There was not enough room on the checkpoint disk.');
    case 'unwritable':
      return trans.__('The checkpoint folder cannot be written.');
    default:
      return trans.__('There was not enough time before it ended.');
  }
}

function nameOf(kernel: StoppedKernel): string {
  return kernel.path?.split('/').pop() ?? kernel.name ?? kernel.kernel;
}

/**
 * A namespace for `LastStopNotifier` statics.
 */
export namespace LastStopNotifier {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** Where this browser remembers things. */
    storage: Pick<Storage, 'getItem' | 'setItem'>;

    /** The translations. */
    trans: TranslationBundle;
  }
}
