/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { confirmReplace } from './dialogs';
import { documentContextOf } from './documents';
import { sessionContextOf } from './sessions';
import type { IPauseManager } from './tokens';

/**
 * Joins a kernel that came back from a checkpoint to the notebook it belongs to.
 */
export class NotebookAttacher {
  /**
   * Construct a new attacher.
   */
  constructor(options: NotebookAttacher.IOptions) {
    this._shell = options.shell;
    this._commands = options.commands;
    this._manager = options.manager;
    this._trans = options.trans;
  }

  /**
   * Ask before a running kernel with variables is replaced by the one from a checkpoint.
   *
   * @returns whether to go on.
   */
  async mayReplace(path: string): Promise<boolean> {
    for (const context of this._contexts(path)) {
      const kernel = context.session?.kernel?.id;
      if (kernel && (await this._holdsSomething(kernel))) {
        return confirmReplace(path, this._trans);
      }
    }
    return true;
  }

  /**
   * Connect the notebook to its kernel; open it if it is not open.
   */
  async attach(kernel: string, path: string): Promise<void> {
    const contexts = this._contexts(path);
    for (const context of contexts) {
      if (context.session?.kernel?.id !== kernel) {
        await context.changeKernel({ id: kernel });
      }
    }
    if (contexts.length === 0 && this._commands.hasCommand('docmanager:open')) {
      await this._commands.execute('docmanager:open', { path });
    }
  }

  private _contexts(path: string): ISessionContext[] {
    return Array.from(this._shell.widgets('main'))
      .filter(widget => documentContextOf(widget)?.localPath === path)
      .map(sessionContextOf)
      .filter((context): context is ISessionContext => !!context);
  }

  /** Unknown counts as something: nothing is thrown away on a guess. */
  private async _holdsSomething(kernel: string): Promise<boolean> {
    const state = this._manager.row(kernel)?.state;
    if (state === 'paused' || state === 'resuming') {
      return false;
    }
    try {
      const inventory = await this._manager.inventory(kernel, 5);
      // Jupyter itself puts names like `__session__` there.
      return (
        !inventory.complete ||
        inventory.ram.some(item => !/^__.*__$/.test(item.name))
      );
    } catch {
      return true;
    }
  }

  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _commands: CommandRegistry;
  private readonly _manager: IPauseManager;
  private readonly _trans: TranslationBundle;
}

/**
 * A namespace for `NotebookAttacher` statics.
 */
export namespace NotebookAttacher {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** Where the documents are. */
    shell: JupyterFrontEnd.IShell;

    /** The commands of the application. */
    commands: CommandRegistry;

    /** The live state. */
    manager: IPauseManager;

    /** The translations. */
    trans: TranslationBundle;
  }
}
