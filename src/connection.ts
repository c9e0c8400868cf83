/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';

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
