/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';

import type { Availability, IPauseManager } from './tokens';

/**
 * The flag of the application that says whether its server is there.
 */
export interface IConnectionFlag {
  /** While false, the application asks nothing, saves nothing and complains about nothing. */
  isConnected: boolean;
}

/**
 * The one owner of the application's connection flag: counted, so that it is always given back, and only
 * when the last reason to hold it is gone.
 */
export class ConnectionOwner {
  /**
   * Construct a new owner.
   */
  constructor(flag: IConnectionFlag) {
    this._flag = flag;
  }

  /**
   * Say that the server is expected to be away, until the result is disposed.
   */
  hold(): IDisposable {
    this._holds += 1;
    this._flag.isConnected = false;
    return new DisposableDelegate(() => {
      this._holds -= 1;
      if (this._holds === 0) {
        this._flag.isConnected = true;
      }
    });
  }

  private readonly _flag: IConnectionFlag;
  private _holds = 0;
}

/**
 * Keeps the application quiet while its server, with sessions paused on disk, is away: nothing is wrong, the
 * server may be stopped until tomorrow. The badge and the notebooks say so instead of a dialog.
 *
 * A single kernel that pauses never comes here: its server answers. Without a paused session an outage is
 * what JupyterLab thinks it is.
 */
export class OutageKeeper implements IDisposable {
  /**
   * Construct a new keeper.
   */
  constructor(manager: IPauseManager, owner: ConnectionOwner) {
    this._manager = manager;
    this._owner = owner;
    manager.availabilityChanged.connect(this._onAvailability, this);
  }

  /** Whether the keeper is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Give the flag back. */
  dispose(): void {
    this._isDisposed = true;
    this._manager.availabilityChanged.disconnect(this._onAvailability, this);
    this._release();
  }

  private _onAvailability(_: unknown, availability: Availability): void {
    if (availability !== 'unreachable') {
      this._release();
      return;
    }
    const paused = this._manager.state?.kernels.some(
      row => row.state === 'paused'
    );
    if (paused && !this._hold) {
      this._hold = this._owner.hold();
    }
  }

  private _release(): void {
    this._hold?.dispose();
    this._hold = null;
  }

  private readonly _manager: IPauseManager;
  private readonly _owner: ConnectionOwner;
  private _hold: IDisposable | null = null;
  private _isDisposed = false;
}
