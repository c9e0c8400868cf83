/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { Widget } from '@lumino/widgets';

import type { DocumentsSaved } from './api/records';
import { widgetsOf } from './sessions';
import type { IDocumentsRequest, IPauseManager } from './tokens';

/**
 * Saves open documents when a pause is about to begin, and says which ones it saved.
 */
export class DocumentSaver implements IDisposable {
  /**
   * Construct a new saver.
   */
  constructor(options: DocumentSaver.IOptions) {
    this._manager = options.manager;
    this._shell = options.shell;
    this._contents = options.contents;
    this._manager.documentsRequested.connect(this._onRequest, this);
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Stop. */
  dispose(): void {
    this._isDisposed = true;
    this._manager.documentsRequested.disconnect(this._onRequest, this);
  }

  private _onRequest(_: unknown, request: IDocumentsRequest): void {
    void this._answer(request);
  }

  /** Save what uses the kernels and answer, also when there is nothing to save: silence means unknown. */
  private async _answer(request: IDocumentsRequest): Promise<void> {
    const contexts = new Set(
      request.kernels
        .flatMap(kernel => widgetsOf(this._shell, kernel))
        .map(documentContextOf)
        .filter((context): context is DocumentRegistry.Context => !!context)
    );
    const documents = await Promise.all(
      Array.from(contexts, async context => ({
        path: context.localPath,
        saved: await save(context, this._contents, request.timeout * 900)
      }))
    );
    const body: DocumentsSaved = {
      request: request.request,
      client: this._client,
      documents
    };
    try {
      await this._manager.documentsSaved(body);
    } catch (error) {
      // The pause went on without us; the server says then that these documents are unknown.
      console.warn('The server did not take note of saved documents', error);
    }
  }

  private readonly _manager: IPauseManager;
  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _contents: Contents.IManager;
  private readonly _client = UUID.uuid4();
  private _isDisposed = false;
}

/**
 * A namespace for `DocumentSaver` statics.
 */
export namespace DocumentSaver {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** Where the documents are. */
    shell: JupyterFrontEnd.IShell;

    /** Tells whether a file is still the one that this tab knows. */
    contents: Contents.IManager;
  }
}

/**
 * The document of a widget, or null (a console has none).
 */
export function documentContextOf(
  widget: Widget
): DocumentRegistry.Context | null {
  const context = (widget as { context?: DocumentRegistry.Context }).context;
  return context && typeof context.save === 'function' ? context : null;
}

/**
 * Save a document if it is dirty.
 *
 * All tabs are asked at once. Two that have the same file open go one after the other, and the second leaves a file
 * alone that the first has just written: else JupyterLab would ask there what to do about a changed file.
 *
 * @param limit - milliseconds after which an answer would come too late.
 * @returns whether what the person sees is on disk.
 */
export async function save(
  context: DocumentRegistry.Context,
  contents: Contents.IManager,
  limit: number
): Promise<boolean> {
  if (!context.isReady || context.model.readOnly) {
    return !context.model.dirty;
  }
  if (!context.model.dirty) {
    return true;
  }
  let timer = 0;
  const late = new Promise<boolean>(resolve => {
    timer = window.setTimeout(() => resolve(false), limit);
  });
  try {
    return await Promise.race([
      Private.oneTabAtATime(context.path, async () => {
        if (await Private.isNewerOnDisk(context, contents)) {
          return false;
        }
        await context.save();
        return !context.model.dirty;
      }),
      late
    ]);
  } catch (error) {
    console.error(error);
    return false;
  } finally {
    window.clearTimeout(timer);
  }
}

/**
 * A namespace for private functions.
 */
namespace Private {
  /** JupyterLab's own tolerance (milliseconds) before it calls a file changed. */
  const MARGIN = 500;

  /** Run `work` while no other tab of this browser does so for the same file, where the browser can tell. */
  export async function oneTabAtATime(
    path: string,
    work: () => Promise<boolean>
  ): Promise<boolean> {
    // Only pages on localhost or over https have locks.
    const locks = (navigator as { locks?: LockManager }).locks;
    return locks
      ? await locks.request(`jupyter-pause:save:${path}`, work)
      : work();
  }

  /** Whether somebody else wrote the file since this tab read or wrote it. */
  export async function isNewerOnDisk(
    context: DocumentRegistry.Context,
    contents: Contents.IManager
  ): Promise<boolean> {
    const known = context.contentsModel;
    if (!known) {
      return false;
    }
    const disk = await contents.get(context.path, { content: false });
    return (
      Date.parse(disk.last_modified) - Date.parse(known.last_modified) > MARGIN
    );
  }
}
