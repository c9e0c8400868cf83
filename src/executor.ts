/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookCellExecutor } from '@jupyterlab/notebook';
import { runCell } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { KernelRow } from './api/records';
import { confirmRun } from './dialogs';
import type { IPauseActions, IPauseManager } from './tokens';
import { isPaused } from './view';

/**
 * Runs notebook cells; when their kernel is paused, asks once whether to resume it, waits until it is
 * ready, then runs them in order.
 */
export class PauseCellExecutor implements INotebookCellExecutor {
  /**
   * Construct a new executor.
   */
  constructor(options: PauseCellExecutor.IOptions) {
    this._manager = options.manager;
    this._actions = options.actions;
    this._trans = options.trans;
    this._run = options.run ?? runCell;
    this._ask = options.ask ?? (row => confirmRun(row, this._trans));
  }

  /**
   * Run a cell.
   *
   * @returns whether it ran without an error.
   */
  async runCell(
    options: INotebookCellExecutor.IRunCellOptions
  ): Promise<boolean> {
    const kernel = options.sessionContext?.session?.kernel?.id;
    if (!kernel || !this._hasCode(options) || !this._isAway(kernel)) {
      return this._run(options);
    }
    const model = options.cell.model as ICodeCellModel;
    model.executionState = 'running';
    let go = false;
    try {
      go = await this._gate(kernel);
    } finally {
      if (!go && !options.cell.isDisposed) {
        model.executionState = 'idle';
      }
    }
    return go && !options.cell.isDisposed ? this._run(options) : false;
  }

  /** Markdown, raw and empty cells need no kernel. */
  private _hasCode(options: INotebookCellExecutor.IRunCellOptions): boolean {
    const { model } = options.cell;
    return model.type === 'code' && model.sharedModel.getSource().trim() !== '';
  }

  private _isAway(kernel: string): boolean {
    const row = this._manager.row(kernel);
    return (
      isPaused(row) ||
      row?.state === 'pausing' ||
      row?.state === 'resuming' ||
      row?.state === 'waiting'
    );
  }

  /** One question and one resume for all cells that come while the kernel is away. */
  private _gate(kernel: string): Promise<boolean> {
    const open = this._gates.get(kernel);
    if (open) {
      return open;
    }
    const gate = this._open(kernel).finally(() => {
      this._gates.delete(kernel);
    });
    this._gates.set(kernel, gate);
    return gate;
  }

  /** Resolves with whether the cells may run now. */
  private async _open(kernel: string): Promise<boolean> {
    const row = this._manager.row(kernel);
    if (row?.state === 'resuming' || row?.state === 'waiting') {
      // The person resumed already: no question.
      return this._back(kernel);
    }
    if (row && !(await this._ask(row))) {
      return false;
    }
    // A pause that is under way is waited for: nothing may run between the copy and the end.
    await this._until(kernel, state => state !== 'pausing');
    if (!this._isAway(kernel)) {
      return this._manager.row(kernel) !== null;
    }
    const state = this._manager.row(kernel)?.state;
    if (state !== 'resuming' && state !== 'waiting') {
      const operation = await this._actions.resume(kernel);
      if (!operation) {
        return false;
      }
      const ended = await this._ended(operation.id);
      if (!ended) {
        return false;
      }
    }
    return this._back(kernel);
  }

  /** Resolves with whether an operation was a success; its questions are asked by whoever shows them. */
  private async _ended(id: string): Promise<boolean> {
    let operation = await this._manager.settled(id);
    while (operation.state === 'needs_decision') {
      await this._actions.answer(operation);
      const next = this._manager.operation(id);
      if (!next || next.state === 'needs_decision') {
        return false;
      }
      operation = await this._manager.settled(id);
    }
    return operation.state === 'done';
  }

  /** Resolves with whether the kernel came back. */
  private async _back(kernel: string): Promise<boolean> {
    await this._manager.refresh();
    const row = await this._until(
      kernel,
      state => state !== 'resuming' && state !== 'waiting'
    );
    return row?.state === 'ready' || row?.state === 'running';
  }

  private _until(
    kernel: string,
    test: (state: KernelRow['state']) => boolean
  ): Promise<KernelRow | null> {
    return new Promise(resolve => {
      const check = () => {
        const row = this._manager.row(kernel);
        if (!row || test(row.state)) {
          this._manager.changed.disconnect(check);
          resolve(row);
        }
      };
      this._manager.changed.connect(check);
      check();
    });
  }

  private readonly _manager: IPauseManager;
  private readonly _actions: IPauseActions;
  private readonly _trans: TranslationBundle;
  private readonly _run: INotebookCellExecutor['runCell'];
  private readonly _ask: (row: KernelRow) => Promise<boolean>;
  private readonly _gates = new Map<string, Promise<boolean>>();
}

/**
 * A namespace for `PauseCellExecutor` statics.
 */
export namespace PauseCellExecutor {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** Pause and resume. */
    actions: IPauseActions;

    /** The translations. */
    trans: TranslationBundle;

    /** How a cell is run; JupyterLab's own way if not given. */
    run?: INotebookCellExecutor['runCell'];

    /** How the question is asked. */
    ask?: (row: KernelRow) => Promise<boolean>;
  }
}
