/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { PauseApiError } from './api/client';
import type { NotebookAttacher } from './attach';
import type { OnLoss, Operation, ResumeRequest } from './api/records';
import {
  confirmDelete,
  confirmDifferences,
  confirmForcedDelete,
  confirmLosses,
  confirmPause,
  confirmWorkspacePause
} from './dialogs';
import { errorSentence } from './messages';
import { sessionName } from './names';
import type { IPauseActions, IPauseManager } from './tokens';
import { warningSentences } from './view';

/**
 * What a person can do. Every door (button, command, panel, running panel, notebook notice) goes through
 * here, so that each question is asked in one place and only where something would be lost.
 */
export class PauseActions implements IPauseActions {
  /**
   * Construct new actions.
   */
  constructor(options: PauseActions.IOptions) {
    this._manager = options.manager;
    this._trans = options.trans;
    this._alwaysConfirm = options.alwaysConfirm ?? (() => false);
    this._attacher = options.attacher ?? null;
  }

  /** Pause kernels; asks where something would be lost. */
  pause(kernels: string[] | null): Promise<Operation | null> {
    return this._once(`pause ${kernels?.join() ?? 'all'}`, () =>
      this._pauseKernels(kernels)
    );
  }

  private async _pauseKernels(
    kernels: string[] | null
  ): Promise<Operation | null> {
    if (this._alwaysConfirm()) {
      const name =
        kernels?.length === 1
          ? sessionName(this._manager.row(kernels[0]), this._trans)
          : this._trans.__('all kernels');
      if (!(await confirmPause(name, this._trans))) {
        return null;
      }
    }
    return this._asking(onLoss => this._pause(kernels, onLoss));
  }

  /** Pause the whole workspace; asks unless everything is kept and there is nothing to know. */
  pauseWorkspace(): Promise<Operation | null> {
    return this._once('pause workspace', () => this._pauseWorkspace());
  }

  private async _pauseWorkspace(): Promise<Operation | null> {
    // What was true when the page was opened may not be true any more.
    await this._manager.refresh();
    const stateful = this._manager.state?.workspace?.stateful ?? null;
    const warnings = warningSentences(this._manager, this._trans);
    if (
      (this._alwaysConfirm() || stateful !== true || warnings.length > 0) &&
      !(await confirmWorkspacePause(stateful, warnings, this._trans))
    ) {
      return null;
    }
    return this._asking(accept =>
      this._manager.pause({
        kernels: null,
        scope: 'workspace',
        onLoss: accept ? 'accept' : 'refuse'
      })
    );
  }

  /** Resume a kernel; asks where the environment differs. */
  resume(kernel: string): Promise<Operation | null> {
    return this._resume({
      kernel,
      from: 'auto',
      on_difference: 'refuse'
    });
  }

  /** Resume a checkpoint, for a notebook path if one is given, and join it to that notebook. */
  async resumeCheckpoint(
    checkpoint: string,
    path?: string | null
  ): Promise<Operation | null> {
    if (path && !(await (this._attacher?.mayReplace(path) ?? true))) {
      return null;
    }
    const operation = await this._resume({
      checkpoint,
      path: path ?? null,
      from: 'auto',
      on_difference: 'refuse'
    });
    if (operation && path) {
      void this._attach(operation, path);
    }
    return operation;
  }

  /** Answer the question an operation waits for; asked once per operation in this page. */
  async answer(operation: Operation): Promise<void> {
    const { question } = operation;
    if (!question || this._asked.has(operation.id)) {
      return;
    }
    this._asked.add(operation.id);
    try {
      const accept =
        question.code === 'would_lose'
          ? await confirmLosses(question.losses, this._trans)
          : await confirmDifferences(question.differences, this._trans);
      if (this._manager.operation(operation.id)?.state === 'needs_decision') {
        await this._manager.decide(operation.id, accept ? 'accept' : 'refuse');
      }
    } catch (error) {
      this._tell(error);
    } finally {
      this._asked.delete(operation.id);
    }
  }

  /** Cancel an operation. */
  async cancel(operation: string): Promise<void> {
    try {
      await this._manager.cancel(operation);
    } catch (error) {
      this._tell(error);
    }
  }

  /** Delete a checkpoint after asking. */
  async deleteCheckpoint(id: string): Promise<boolean> {
    const checkpoint =
      this._manager.checkpoints?.find(item => item.id === id) ?? null;
    if (!(await confirmDelete(checkpoint, this._trans))) {
      return false;
    }
    try {
      await this._manager.deleteCheckpoint(id, false);
      return true;
    } catch (error) {
      if (
        error instanceof PauseApiError &&
        error.code === 'checkpoint_in_use'
      ) {
        return this._forceDelete(id);
      }
      this._tell(error);
      return false;
    }
  }

  /** Whether this page began the operation. */
  beganHere(operation: string): boolean {
    return this._began.has(operation);
  }

  /** Once it is back, the notebook is connected to it. */
  private async _attach(operation: Operation, path: string): Promise<void> {
    try {
      let ended = await this._manager.settled(operation.id);
      while (ended.state === 'needs_decision') {
        await this.answer(ended);
        ended = await this._manager.settled(operation.id);
      }
      if (ended.state === 'done') {
        await this._attacher?.attach(ended.kernels[0], path);
      }
    } catch (error) {
      console.error(error);
      Notification.error(
        this._trans.__(
          'The kernel is back, but the notebook could not be connected to it. Choose it with Kernel > Change Kernel.'
        ),
        { autoClose: false }
      );
    }
  }

  private async _forceDelete(id: string): Promise<boolean> {
    if (!(await confirmForcedDelete(this._trans))) {
      return false;
    }
    try {
      await this._manager.deleteCheckpoint(id, true);
      return true;
    } catch (error) {
      this._tell(error);
      return false;
    }
  }

  private async _pause(
    kernels: string[] | null,
    accept: boolean
  ): Promise<Operation> {
    const onLoss: OnLoss = accept ? 'accept' : 'refuse';
    return this._manager.pause({ kernels, onLoss });
  }

  private _resume(request: ResumeRequest): Promise<Operation | null> {
    return this._once(`resume ${request.kernel ?? request.checkpoint}`, () =>
      this._asking(accept =>
        this._manager.resume({
          ...request,
          on_difference: accept ? 'accept' : 'refuse'
        })
      )
    );
  }

  /**
   * A button pressed twice is pressed once: while the first press is asked about, a second one waits for its answer.
   */
  private _once(
    name: string,
    work: () => Promise<Operation | null>
  ): Promise<Operation | null> {
    let pressed = this._pressed.get(name);
    if (!pressed) {
      pressed = work().finally(() => this._pressed.delete(name));
      this._pressed.set(name, pressed);
    }
    return pressed;
  }

  /**
   * Make a call; when it is refused because something would be lost, ask, and make it again.
   *
   * A call that finds an operation at work joins it: the person wanted just that.
   */
  private async _asking(
    call: (accept: boolean) => Promise<Operation>
  ): Promise<Operation | null> {
    try {
      return this._note(await call(false));
    } catch (error) {
      if (!(error instanceof PauseApiError)) {
        this._tell(error);
        return null;
      }
      const { losses, differences, operation } = error.body;
      if (error.code === 'operation_in_progress' && operation) {
        await this._manager.refresh();
        const running = this._manager.operation(operation);
        if (running) {
          return running;
        }
      }
      const asked =
        error.code === 'would_lose'
          ? confirmLosses(losses ?? [], this._trans)
          : error.code === 'environment_differs'
            ? confirmDifferences(differences ?? [], this._trans)
            : null;
      if (!asked) {
        this._tell(error);
        return null;
      }
      if (!(await asked)) {
        return null;
      }
    }
    try {
      return this._note(await call(true));
    } catch (error) {
      this._tell(error);
      return null;
    }
  }

  private _note(operation: Operation): Operation {
    this._began.add(operation.id);
    return operation;
  }

  private _tell(error: unknown): void {
    if (!(error instanceof PauseApiError)) {
      console.error(error);
    }
    Notification.error(errorSentence(error, this._trans), { autoClose: false });
  }

  private readonly _manager: IPauseManager;
  private readonly _trans: TranslationBundle;
  private readonly _alwaysConfirm: () => boolean;
  private readonly _attacher: NotebookAttacher | null;
  private readonly _asked = new Set<string>();
  private readonly _began = new Set<string>();
  private readonly _pressed = new Map<string, Promise<Operation | null>>();
}

/**
 * A namespace for `PauseActions` statics.
 */
export namespace PauseActions {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** The translations. */
    trans: TranslationBundle;

    /** Whether the person wants to be asked before every pause. */
    alwaysConfirm?: () => boolean;

    /** Joins kernels to notebooks. */
    attacher?: NotebookAttacher;
  }
}
