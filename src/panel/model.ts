/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { Debouncer, Poll } from '@lumino/polling';
import type { IDisposable } from '@lumino/disposable';

import type { Inventory, KernelRow } from '../api/records';
import type { PausedScreenModel } from '../pausedscreen/model';
import type { CurrentSession } from '../sessions';
import type { IKernelChange, IPauseManager } from '../tokens';
import { hasProcess } from '../view';

/**
 * Seconds the server may take for a complete scan when a person asks for one.
 */
const PATIENCE = 10;

/**
 * Milliseconds between two scans while the panel is visible.
 */
const RESCAN = 20_000;

/**
 * What the panel shows: the inventory of the current session's kernel, read while the panel is visible.
 */
export class PanelModel implements IDisposable {
  /**
   * Construct a new model.
   */
  constructor(options: PanelModel.IOptions) {
    this._manager = options.manager;
    this._session = options.session;
    this.away = options.away ?? null;
    this.away?.changed.connect(this._emit, this);
    this._debouncer = new Debouncer(() => this.load(0), 500);
    this._manager.changed.connect(this._emit, this);
    this._manager.kernelChanged.connect(this._onKernelChanged, this);
    this._session.changed.connect(this._onSessionChanged, this);
    this._session.executed.connect(this._onExecuted, this);
    this._poll = new Poll({
      name: 'jupyter-pause:inventory',
      auto: false,
      factory: () => this.load(0),
      frequency: { interval: RESCAN, backoff: false },
      standby: () => (this._visible ? 'when-hidden' : true)
    });
    void this._poll.schedule();
  }

  /** The workspace while its server is gone, where there is one. */
  readonly away: PausedScreenModel | null;

  /** Emitted when anything shown changes. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The live state. */
  get manager(): IPauseManager {
    return this._manager;
  }

  /** The session shown. */
  get session(): CurrentSession {
    return this._session;
  }

  /** The row of the session's kernel, or null. */
  get row(): KernelRow | null {
    return this._manager.row(this._session.kernel);
  }

  /** The inventory of the session's kernel, or null. */
  get inventory(): Inventory | null {
    return this._inventory?.kernel === this._session.kernel
      ? this._inventory
      : null;
  }

  /** When the inventory came (milliseconds since the epoch). */
  get loadedAt(): number {
    return this._loadedAt;
  }

  /** Why there is no inventory, or null. */
  get error(): unknown {
    return this._error;
  }

  /** Whether an inventory is being asked for. */
  get loading(): boolean {
    return this._loading > 0;
  }

  /** Whether the panel is visible: only then are kernels asked. */
  get visible(): boolean {
    return this._visible;
  }
  set visible(value: boolean) {
    if (this._visible === value) {
      return;
    }
    this._visible = value;
    if (value) {
      void this.load(0);
      void this._manager.refreshCheckpoints();
    }
  }

  /** Whether the model is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Let go of everything. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._manager.changed.disconnect(this._emit, this);
    this.away?.changed.disconnect(this._emit, this);
    this._manager.kernelChanged.disconnect(this._onKernelChanged, this);
    this._session.changed.disconnect(this._onSessionChanged, this);
    this._session.executed.disconnect(this._onExecuted, this);
    this._poll.dispose();
    this._debouncer.dispose();
    Signal.clearData(this);
  }

  /** Ask for everything again, for a complete scan. */
  async refresh(): Promise<void> {
    await Promise.all([
      this._manager.refresh(),
      this._manager.refreshCheckpoints(),
      this.load(PATIENCE)
    ]);
  }

  /**
   * Ask for the inventory.
   *
   * @param wait - seconds the server may take for a complete scan.
   */
  async load(wait: number): Promise<void> {
    const kernel = this._session.kernel;
    if (!kernel || !hasProcess(this.row)) {
      this._emit();
      return;
    }
    this._loading += 1;
    this._emit();
    try {
      const inventory = await this._manager.inventory(kernel, wait);
      if (!this._isDisposed && kernel === this._session.kernel) {
        this._inventory = inventory;
        this._loadedAt = Date.now();
        this._error = null;
        if (!inventory.complete && !inventory.busy && wait === 0) {
          // Names are there at once, sizes take a moment: the server answers when it has them.
          void this.load(PATIENCE);
        }
      }
    } catch (error) {
      if (kernel === this._session.kernel) {
        this._error = error;
      }
    } finally {
      this._loading -= 1;
      this._emit();
    }
  }

  /** A cell has run: the variables may not be what they were. */
  private _onExecuted(): void {
    if (this._visible) {
      void this._debouncer.invoke();
    }
  }

  private _onSessionChanged(): void {
    this._error = null;
    this._emit();
    if (this._visible) {
      void this._debouncer.invoke();
    }
  }

  private _onKernelChanged(_: unknown, change: IKernelChange): void {
    if (
      this._visible &&
      change.row?.id === this._session.kernel &&
      change.row?.state !== change.previous?.state
    ) {
      void this._debouncer.invoke();
    }
  }

  private _emit(): void {
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private readonly _manager: IPauseManager;
  private readonly _session: CurrentSession;
  private readonly _debouncer: Debouncer;
  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _inventory: Inventory | null = null;
  private _loadedAt = 0;
  private _error: unknown = null;
  private _loading = 0;
  private _visible = false;
  private _isDisposed = false;
}

/**
 * A namespace for `PanelModel` statics.
 */
export namespace PanelModel {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** The session to show. */
    session: CurrentSession;

    /** The workspace while its server is gone, where there is one. */
    away?: PausedScreenModel | null;
  }
}
