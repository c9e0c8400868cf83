/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import type { KernelRow, Operation } from './api/records';
import { formatBytes, formatDuration, localeOf } from './format';
import { noteSentence, operationError } from './messages';
import { operationName, sessionName } from './names';
import { ToastUpdater } from './toasts';
import type { IKernelChange, IPauseActions, IPauseManager } from './tokens';
import { progressParts } from './view';

/**
 * Milliseconds that a good end stays on the screen.
 */
const GOOD_END = 8_000;

/**
 * One notification per operation, updated in place: phase, bytes, elapsed time, Cancel; then what came of it.
 */
export class OperationNotifier implements IDisposable {
  /**
   * Construct a new notifier.
   */
  constructor(options: OperationNotifier.IOptions) {
    this._manager = options.manager;
    this._actions = options.actions;
    this._trans = options.trans;
    this._showPanel = options.showPanel;
    this._shouldAsk = options.shouldAsk;
    this._quiet = options.quiet ?? (() => false);
    this._onLoss = options.onLoss ?? (() => undefined);
    this._manager.operationChanged.connect(this._onOperation, this);
    this._manager.kernelChanged.connect(this._onKernel, this);
    for (const operation of this._manager.operations) {
      this._onOperation(null, operation);
    }
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Stop; what is on the screen stays. */
  dispose(): void {
    this._isDisposed = true;
    this._toasts.dispose();
    this._manager.operationChanged.disconnect(this._onOperation, this);
    this._manager.kernelChanged.disconnect(this._onKernel, this);
  }

  private _onOperation(_: unknown, operation: Operation): void {
    if (this._isShownElsewhere(operation)) {
      // A failure is told all the same.
      this._shown.set(operation.id, '');
    } else if (operation.state === 'running') {
      this._show(operation.id, {
        message: this._progress(operation),
        type: 'in-progress',
        autoClose: false,
        progress: progressOf(operation),
        actions: this._liveActions(operation)
      });
    } else if (operation.state === 'needs_decision') {
      this._onQuestion(operation);
    } else if (this._shown.has(operation.id)) {
      // An operation that had ended before this page saw it is no news.
      void this._end(operation);
    }
  }

  /** How a workspace goes and comes back is told by the paused screen and by its own report. */
  private _isShownElsewhere(operation: Operation): boolean {
    return (
      operation.scope === 'workspace' &&
      (operation.state === 'running' || operation.state === 'done')
    );
  }

  private _onQuestion(operation: Operation): void {
    this._show(operation.id, {
      message: this._progress(operation),
      type: 'warning',
      autoClose: false,
      actions: [
        {
          label: this._trans.__('Decide…'),
          displayType: 'accent',
          callback: event => {
            event.preventDefault();
            void this._actions.answer(operation);
          }
        },
        ...this._liveActions(operation)
      ]
    });
    if (this._shouldAsk(operation)) {
      void this._actions.answer(operation);
    }
  }

  private _liveActions(operation: Operation): Notification.IAction[] {
    const actions: Notification.IAction[] = [
      {
        label: this._trans.__('Details'),
        callback: event => {
          event.preventDefault();
          this._showPanel();
        }
      }
    ];
    if (operation.cancellable) {
      actions.unshift({
        label: this._trans.__('Cancel'),
        callback: event => {
          // Without this the notification is closed by the click.
          event.preventDefault();
          void this._actions.cancel(operation.id);
        }
      });
    }
    return actions;
  }

  private _progress(operation: Operation): string {
    const trans = this._trans;
    const name = operationName(operation, this._manager, trans);
    const parts = progressParts(operation, trans).join(', ');
    return operation.kind === 'pause'
      ? trans.__('Pausing %1: %2', name, parts)
      : trans.__('Resuming %1: %2', name, parts);
  }

  private async _end(operation: Operation): Promise<void> {
    // What was freed, and how it came back, is in the rows.
    await this._manager.refresh();
    const trans = this._trans;
    const name = operationName(operation, this._manager, trans);
    const details: Notification.IAction = {
      label: trans.__('Details'),
      callback: () => this._showPanel()
    };
    if (operation.state === 'done') {
      const partial =
        operation.kind === 'resume' && operation.outcome !== 'restored';
      if (partial) {
        this._onLoss();
      }
      this._show(operation.id, {
        message:
          operation.kind === 'pause'
            ? this._freed(operation, name)
            : this._restored(operation, name),
        type: partial ? 'warning' : 'success',
        autoClose: partial ? false : GOOD_END,
        actions: [details]
      });
    } else if (operation.state === 'cancelled') {
      this._show(operation.id, {
        message:
          operation.kind === 'pause'
            ? trans.__(
                'The pause of %1 was cancelled; it goes on running.',
                name
              )
            : trans.__(
                'The resume of %1 was cancelled; it is still paused.',
                name
              ),
        type: 'info',
        autoClose: GOOD_END,
        actions: []
      });
    } else {
      this._show(operation.id, {
        message:
          operationError(operation, trans) ??
          trans.__('The server did not say why this failed. See its log.'),
        type: 'error',
        autoClose: false,
        actions: [details]
      });
    }
    this._shown.delete(operation.id);
  }

  private _freed(operation: Operation, name: string): string {
    const trans = this._trans;
    const locale = localeOf(trans);
    const reports = operation.kernels
      .map(id => this._manager.row(id)?.last_pause)
      .filter(report => !!report);
    const freed = reports.reduce(
      (sum, report) =>
        sum + (report.process_gone ? (report.rss_before ?? 0) : 0),
      0
    );
    const bytes = reports.reduce((sum, report) => sum + report.bytes, 0);
    const elapsed = formatDuration(operation.elapsed, trans);
    return freed > 0
      ? trans.__(
          'Paused %1: %2 of memory freed, %3 kept on disk, in %4.',
          name,
          formatBytes(freed, locale),
          formatBytes(bytes, locale),
          elapsed
        )
      : trans.__('Paused %1 in %2.', name, elapsed);
  }

  private _restored(operation: Operation, name: string): string {
    const trans = this._trans;
    const elapsed = formatDuration(operation.elapsed, trans);
    const row = this._manager.row(operation.kernels[0]);
    switch (operation.outcome ?? row?.outcome) {
      case 'restored':
        return trans.__(
          '%1 is back with everything that was saved, in %2.',
          name,
          elapsed
        );
      case 'partial': {
        const count = row?.last_resume?.losses.length ?? 0;
        return count > 0
          ? trans._n(
              '%2 is back, but %1 thing did not come back. Details names it.',
              '%2 is back, but %1 things did not come back. Details names them.',
              count,
              name
            )
          : trans.__('%1 is back, but not everything came back.', name);
      }
      default:
        return trans.__(
          '%1 has a fresh, empty kernel: nothing was brought back.',
          name
        );
    }
  }

  /** A restart of a paused kernel made it empty: say so, and offer what it held. */
  private _onKernel(_: unknown, change: IKernelChange): void {
    const { previous, row } = change;
    if (
      row?.reason?.code !== 'restarted_while_paused' ||
      previous === null ||
      previous.reason?.code === 'restarted_while_paused'
    ) {
      return;
    }
    this._offerCheckpoint(row);
  }

  private _offerCheckpoint(row: KernelRow): void {
    const trans = this._trans;
    const { checkpoint } = row;
    Notification.warning(
      trans.__('%1: %2', sessionName(row, trans), noteSentence(row, trans)),
      {
        autoClose: false,
        actions: checkpoint
          ? [
              {
                label: trans.__('Resume from checkpoint'),
                displayType: 'accent',
                callback: () => {
                  void this._actions.resumeCheckpoint(checkpoint.id, row.path);
                }
              }
            ]
          : []
      }
    );
  }

  private _show(id: string, options: IShown): void {
    const { message, type, ...rest } = options;
    if (this._quiet() && (type === 'in-progress' || type === 'success')) {
      this._shown.set(id, '');
      return;
    }
    const known = this._shown.get(id);
    if (known && this._toasts.update({ id: known, message, type, ...rest })) {
      return;
    }
    if (known && type === 'in-progress') {
      return; // The person closed it; only the end is news again.
    }
    this._shown.set(id, Notification.emit(message, type, rest));
  }

  private readonly _manager: IPauseManager;
  private readonly _actions: IPauseActions;
  private readonly _trans: TranslationBundle;
  private readonly _showPanel: () => void;
  private readonly _shouldAsk: (operation: Operation) => boolean;
  private readonly _quiet: () => boolean;
  private readonly _onLoss: () => void;
  private readonly _toasts = new ToastUpdater();
  private readonly _shown = new Map<string, string>();
  private _isDisposed = false;
}

/**
 * A namespace for `OperationNotifier` statics.
 */
export namespace OperationNotifier {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** What can be done. */
    actions: IPauseActions;

    /** The translations. */
    trans: TranslationBundle;

    /** Show what will be restored. */
    showPanel: () => void;

    /** Whether the question of an operation should be asked in this page, now. */
    shouldAsk: (operation: Operation) => boolean;

    /** Whether progress and good ends are not to be shown. */
    quiet?: () => boolean;

    /** Called when a resume did not bring everything back. */
    onLoss?: () => void;
  }
}

interface IShown {
  message: string;
  type: Notification.TypeOptions;
  autoClose: number | false;
  progress?: number;
  actions: Notification.IAction[];
}

/**
 * How far an operation is, 0 to 1, or undefined when that is not known.
 */
export function progressOf(operation: Operation): number | undefined {
  return operation.bytes_total
    ? Math.min(1, operation.bytes_done / operation.bytes_total)
    : undefined;
}
