/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { ConnectionOwner } from './connection';
import { sessionContextOf } from './sessions';
import type { Availability, IPauseManager } from './tokens';
import { isBusy, isPaused } from './view';

/**
 * While the server is away and kernels of it are paused, the badge and the notice on top of the notebook say so, and
 * JupyterLab is told that it is not connected: otherwise it opens "Server Connection Error" over a pause that is all right.
 *
 * The flag belongs to the whole application. It is held for a server that is gone, never for one kernel that pauses, and
 * always given back: when the server answers, when the time is up, and at the end.
 */
export class OutageKeeper implements IDisposable {
  /**
   * Construct a new keeper.
   */
  constructor(options: OutageKeeper.IOptions) {
    this._options = options;
    options.manager.availabilityChanged.connect(this._onAvailability, this);
    options.shell.currentChanged?.connect(this._onCurrentChanged, this);
    this._onCurrentChanged();
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether JupyterLab was told that it is not connected. */
  get holds(): boolean {
    return this._held !== null;
  }

  /** Take everything back. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._options.manager.availabilityChanged.disconnect(
      this._onAvailability,
      this
    );
    this._options.shell.currentChanged?.disconnect(
      this._onCurrentChanged,
      this
    );
    this._release();
    Signal.clearData(this);
  }

  private _onAvailability(_: unknown, availability: Availability): void {
    const rows = this._options.manager.state?.kernels ?? [];
    if (availability === 'ready') {
      this._release();
    } else if (
      availability === 'unreachable' &&
      rows.some(row => isPaused(row) || isBusy(row))
    ) {
      this._hold();
    }
  }

  private _hold(): void {
    const { connection, limit } = this._options;
    if (this._held) {
      return;
    }
    this._held = connection.hold();
    if (limit !== undefined) {
      this._timer = window.setTimeout(() => this._release(), limit);
    }
  }

  private _release(): void {
    window.clearTimeout(this._timer);
    this._held?.dispose();
    this._held = null;
  }

  /** A dropped WebSocket is the first sign of an outage, seconds before JupyterLab's next poll. */
  private _onCurrentChanged(): void {
    for (const widget of Array.from(this._options.shell.widgets('main'))) {
      const context = sessionContextOf(widget);
      if (context && !this._watched.has(context)) {
        this._watched.add(context);
        context.connectionStatusChanged.connect(this._onConnection, this);
      }
    }
  }

  private _onConnection(_: ISessionContext, status: string): void {
    if (status !== 'connected') {
      void this._options.manager.refresh();
    }
  }

  private readonly _options: OutageKeeper.IOptions;
  private readonly _watched = new WeakSet<ISessionContext>();
  private _held: IDisposable | null = null;
  private _timer = 0;
  private _isDisposed = false;
}

/**
 * A namespace for `OutageKeeper` statics.
 */
export namespace OutageKeeper {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** The owner of JupyterLab's own flag. */
    connection: ConnectionOwner;

    /** Where the documents are. */
    shell: JupyterFrontEnd.IShell;

    /** Milliseconds after which JupyterLab may say what it has to say; never if not given. */
    limit?: number;
  }
}
