/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { Contents, ServiceManager } from '@jupyterlab/services';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { KernelRow } from '../api/records';
import { documentContextOf, save } from '../documents';
import { widgetsOf } from '../sessions';
import type { IPauseManager } from '../tokens';
import { confirmShutDown, showStopped, showStopping } from './dialogs';
import type { IShutDownPlan } from './plan';
import { shutDownPlan, withoutSaving } from './plan';

/**
 * Milliseconds that documents of kept kernels get to be saved.
 */
const SAVE_LIMIT = 10_000;

/**
 * Shuts the server down as JupyterLab does, but ends only the sessions that are not kept: JupyterLab deletes all of
 * them first, also the paused ones, so that nothing would be left for the next start.
 */
export class ShutDown {
  /**
   * Construct a new shut-down.
   */
  constructor(options: ShutDown.IOptions) {
    this._options = options;
  }

  /**
   * Ask, and shut down.
   *
   * @returns false when there is nothing to keep: then JupyterLab's own command does it all.
   */
  async run(): Promise<boolean> {
    const { manager, name, trans } = this._options;
    const before = await this._plan();
    if (before === null) {
      return false;
    }
    const answer = await confirmShutDown(before, name, trans);
    if (answer === 'stay') {
      return true;
    }
    // What is on its way into a pause, or out of it, gets there first.
    await Promise.all(
      manager.operations
        .filter(operation => operation.state === 'running')
        .map(operation => manager.settled(operation.id))
    );
    const now = (await this._plan()) ?? before;
    await this._shutDown(answer === 'discard' ? withoutSaving(now) : now);
    return true;
  }

  private async _plan(): Promise<IShutDownPlan | null> {
    const { manager } = this._options;
    await manager.refresh();
    if (manager.availability !== 'ready' || manager.state === null) {
      return null;
    }
    const plan = shutDownPlan(manager.state);
    return plan.kept.length + plan.saved.length > 0 ? plan : null;
  }

  private async _shutDown(plan: IShutDownPlan): Promise<void> {
    const { name, trans } = this._options;
    const kept = [...plan.kept, ...plan.saved];
    const stopping = showStopping(plan.saved.length, trans);
    try {
      await this._saveDocuments(kept);
      await this._endTheOthers(kept);
      await this._stopServer();
    } catch (error) {
      stopping.dispose();
      await showErrorMessage(
        trans.__('The server was not shut down'),
        error instanceof Error ? error : String(error)
      );
      return;
    }
    stopping.dispose();
    showStopped(kept, name, trans);
    window.close();
  }

  private async _saveDocuments(kept: readonly KernelRow[]): Promise<void> {
    const { contents, shell } = this._options;
    const contexts = new Set(
      kept.flatMap(row => widgetsOf(shell, row.id)).map(documentContextOf)
    );
    await Promise.all(
      Array.from(contexts, context =>
        context ? save(context, contents, SAVE_LIMIT) : true
      )
    );
  }

  /** As JupyterLab does it, and like there a failure keeps nobody from stopping the server. */
  private async _endTheOthers(kept: readonly KernelRow[]): Promise<void> {
    const { sessions, terminals } = this._options.services;
    const ids = new Set(kept.map(row => row.id));
    await sessions.refreshRunning();
    const others = Array.from(sessions.running()).filter(
      session => !ids.has(session.kernel?.id ?? '')
    );
    const ended = await Promise.allSettled([
      ...others.map(session => sessions.shutdown(session.id)),
      terminals.shutdownAll()
    ]);
    for (const result of ended) {
      if (result.status === 'rejected') {
        console.warn('A session could not be shut down', result.reason);
      }
    }
  }

  private async _stopServer(): Promise<void> {
    const { manager, services } = this._options;
    const { serverSettings } = services;
    const url = URLExt.join(serverSettings.baseUrl, 'api/shutdown');
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(
        url,
        { method: 'POST' },
        serverSettings
      );
    } catch (error) {
      // The server may end before its answer is out.
      await manager.refresh();
      if (manager.availability === 'ready') {
        throw error;
      }
      return;
    }
    if (!response.ok) {
      throw await ServerConnection.ResponseError.create(response);
    }
  }

  private readonly _options: ShutDown.IOptions;
}

/**
 * A namespace for `ShutDown` statics.
 */
export namespace ShutDown {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** Sessions and terminals of the server. */
    services: Pick<
      ServiceManager.IManager,
      'sessions' | 'terminals' | 'serverSettings'
    >;

    /** Where the documents are. */
    shell: JupyterFrontEnd.IShell;

    /** Tells whether a file is still the one that this tab knows. */
    contents: Contents.IManager;

    /** The name of the application. */
    name: string;

    /** The translations. */
    trans: TranslationBundle;
  }
}
