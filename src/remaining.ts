/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Cell, ICellModel } from '@jupyterlab/cells';
import { isCodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/**
 * How many requests are remembered per notebook.
 */
const REMEMBERED = 2_000;

/**
 * Remembers which cell each execute request of a notebook came from, so that cells which a pause kept from
 * running can be found again.
 */
export class RequestLog implements IDisposable {
  /**
   * Construct a new log for the session of one notebook.
   */
  constructor(context: ISessionContext) {
    this._context = context;
    context.kernelChanged.connect(this._onKernelChanged, this);
    this._onKernelChanged();
  }

  /** Emitted when a request was sent. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the log is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Stop listening. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._context.kernelChanged.disconnect(this._onKernelChanged, this);
    this._listenTo(null);
    Signal.clearData(this);
  }

  /**
   * The ids of the cells behind some requests, without those that were run again since.
   *
   * @param requests - message ids.
   * @param named - cells that the kernel itself named; they count unless this page ran them since.
   */
  cellsOf(requests: readonly string[], named: readonly string[]): string[] {
    const wanted = new Set(requests);
    const cells = new Map<string, boolean>(named.map(cell => [cell, true]));
    for (const [request, cell] of this._cells) {
      // The map keeps the order of sending: what was sent last for a cell decides.
      cells.set(cell, wanted.has(request));
    }
    return Array.from(cells)
      .filter(([, aborted]) => aborted)
      .map(([cell]) => cell);
  }

  private _onKernelChanged(): void {
    this._listenTo(this._context.session?.kernel ?? null);
  }

  private _listenTo(kernel: Kernel.IKernelConnection | null): void {
    this._kernel?.anyMessage.disconnect(this._onMessage, this);
    this._kernel = kernel;
    kernel?.anyMessage.connect(this._onMessage, this);
  }

  private _onMessage(
    _: Kernel.IKernelConnection,
    args: Kernel.IAnyMessageArgs
  ): void {
    const msg = args.msg as KernelMessage.IMessage;
    if (
      args.direction !== 'send' ||
      msg.header.msg_type !== 'execute_request'
    ) {
      return;
    }
    const cell = (msg.metadata as { cellId?: unknown }).cellId;
    if (typeof cell !== 'string') {
      return;
    }
    this._cells.set(msg.header.msg_id, cell);
    if (this._cells.size > REMEMBERED) {
      this._cells.delete(this._cells.keys().next().value as string);
    }
    this._changed.emit();
  }

  private readonly _context: ISessionContext;
  private readonly _cells = new Map<string, string>();
  private readonly _changed = new Signal<this, void>(this);
  private _kernel: Kernel.IKernelConnection | null = null;
  private _isDisposed = false;
}

/**
 * The cells of a notebook that a pause kept from running, in the order of the notebook.
 *
 * @param aborted - message ids of requests; this page knows the cells of those it sent itself.
 * @param named - cells that the kernel named. One that has a number was run since, by whichever page.
 */
export function remainingCells(
  panel: NotebookPanel,
  log: RequestLog,
  aborted: readonly string[],
  named: readonly string[]
): Cell[] {
  const cells = panel.content.widgets;
  const open = cells
    .map(cell => cell.model)
    .filter(model => named.includes(model.id) && !hasNumber(model))
    .map(model => model.id);
  const ids = new Set(log.cellsOf(aborted, open));
  return cells.filter(cell => ids.has(cell.model.id));
}

function hasNumber(model: ICellModel): boolean {
  return isCodeCellModel(model) && model.executionCount !== null;
}

/**
 * Run them now, because the person said so.
 */
export function runRemaining(
  panel: NotebookPanel,
  cells: readonly Cell[]
): Promise<boolean> {
  return NotebookActions.runCells(panel.content, cells, panel.sessionContext);
}
