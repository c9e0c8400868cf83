/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Event } from '@jupyterlab/services';
import { PromiseDelegate } from '@lumino/coreutils';
import { Poll, Throttler } from '@lumino/polling';
import type { ISignal, IStream } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IPauseClient, IPauseOptions } from './api/client';
import { PauseApiError } from './api/client';
import type {
  Checkpoint,
  DocumentsSaved,
  Inventory,
  KernelRow,
  Operation,
  ResumeRequest,
  ServerState
} from './api/records';
import type { IOperationEvent, IStateEvent } from './events';
import { EventKind, readEvent } from './events';
import type {
  Availability,
  IDocumentsRequest,
  IKernelChange,
  IPauseManager
} from './tokens';

/**
 * Milliseconds between two questions when events do their work.
 */
const SLOW = 45_000;

/**
 * Milliseconds between two questions while the server does not answer.
 */
const AWAY = 4_000;

/**
 * Milliseconds between two looks at running operations; events usually make them unnecessary.
 */
const WATCH = 2_000;

/**
 * Milliseconds until a kernel that is starting is looked at again.
 */
const STARTING = 1_000;

/**
 * How many ended operations are remembered.
 */
const REMEMBERED = 50;

/**
 * The live state: read once, kept up to date by events, read again after a gap, and polled slowly as a
 * safety net. It never guesses: while the server does not answer, `availability` says so and the last
 * state stays with its age.
 */
export class PauseManager implements IPauseManager {
  /**
   * Construct a new manager.
   */
  constructor(options: PauseManager.IOptions) {
    this._client = options.client;
    this._events = options.events ?? null;
    this._now = options.now ?? Date.now;
    this._refreshSoon = new Throttler(() => this.refresh(), {
      limit: options.throttle ?? 100,
      edge: 'trailing'
    });
    // A server without our part does not get it while this page is open.
    const standby = () =>
      options.standby?.() ||
      this.availability === 'missing' ||
      this.availability === 'forbidden'
        ? true
        : 'when-hidden';
    this._poll = new Poll({
      name: 'jupyter-pause:state',
      auto: false,
      factory: () => this.refresh(),
      frequency: { interval: options.interval ?? SLOW, backoff: false },
      standby
    });
    this._away = new Poll({
      name: 'jupyter-pause:away',
      auto: false,
      factory: () => this.refresh(),
      frequency: { interval: options.awayInterval ?? AWAY, backoff: false },
      // While the server is away we must look even if the application stopped looking: it is we who end that.
      standby: () =>
        this.availability === 'unreachable' ? 'when-hidden' : true
    });
    this._watch = new Poll({
      name: 'jupyter-pause:operations',
      auto: false,
      factory: () => this._watchOperations(),
      frequency: { interval: options.watchInterval ?? WATCH, backoff: false },
      standby: () => !this._hasRunning() || this.availability !== 'ready'
    });
    this._events?.connect(this._onEvent, this);
    document.addEventListener('visibilitychange', this._onVisibility);
    void this.refresh().finally(() => {
      if (!this.isDisposed) {
        // Not `start`: that would ask again at once.
        void this._poll.schedule();
        void this._away.schedule();
        void this._watch.schedule();
      }
      this._ready.resolve();
    });
  }

  /** Whether the manager is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Resolves after the first attempt to read the state, good or not. */
  get ready(): Promise<void> {
    return this._ready.promise;
  }

  /** How far the server part can be reached. */
  get availability(): Availability {
    return this._availability;
  }

  /** The last known state, or null. */
  get state(): ServerState | null {
    return this._state;
  }

  /** When the last good answer came, or null. */
  get answeredAt(): number | null {
    return this._answeredAt;
  }

  /** The checkpoints on disk, or null when never read. */
  get checkpoints(): readonly Checkpoint[] | null {
    return this._checkpoints;
  }

  /** All operations seen since the page was loaded. */
  get operations(): readonly Operation[] {
    return Array.from(this._operations.values());
  }

  /** Emitted after any change. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when the row of one kernel changes. */
  get kernelChanged(): ISignal<this, IKernelChange> {
    return this._kernelChanged;
  }

  /** Emitted when an operation begins, moves or ends. */
  get operationChanged(): ISignal<this, Operation> {
    return this._operationChanged;
  }

  /** Emitted when the server part becomes reachable, or stops being so. */
  get availabilityChanged(): ISignal<this, Availability> {
    return this._availabilityChanged;
  }

  /** Emitted when the server asks for open documents to be saved. */
  get documentsRequested(): ISignal<this, IDocumentsRequest> {
    return this._documentsRequested;
  }

  /** Stop everything. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    document.removeEventListener('visibilitychange', this._onVisibility);
    this._events?.disconnect(this._onEvent, this);
    window.clearTimeout(this._again);
    this._poll.dispose();
    this._away.dispose();
    this._watch.dispose();
    this._refreshSoon.dispose();
    Signal.clearData(this);
  }

  /** The row of a kernel, or null. */
  row(kernel: string | null | undefined): KernelRow | null {
    return this._state?.kernels.find(row => row.id === kernel) ?? null;
  }

  /** An operation by its id, or null. */
  operation(id: string | null | undefined): Operation | null {
    return (id && this._operations.get(id)) || null;
  }

  /** The operation that works on a kernel now, or null. */
  operationOf(kernel: string): Operation | null {
    const named = this.operation(this.row(kernel)?.operation);
    if (named && Private.isLive(named)) {
      return named;
    }
    return (
      this.operations.find(
        operation =>
          Private.isLive(operation) && operation.kernels.includes(kernel)
      ) ?? null
    );
  }

  /** The newest usable checkpoint of a notebook that no known session holds, or null. */
  unattachedFor(path: string): Checkpoint | null {
    const known = new Set(this._state?.kernels.map(row => row.id));
    return (
      this._checkpoints?.find(
        checkpoint =>
          checkpoint.path === path &&
          !checkpoint.damaged &&
          checkpoint.signature_ok &&
          !known.has(checkpoint.kernel_id ?? '')
      ) ?? null
    );
  }

  /** Ask the server for its state now; a call that is under way is joined. */
  refresh(): Promise<void> {
    if (!this._refreshing) {
      this._refreshing = this._refresh().finally(() => {
        this._refreshing = null;
      });
      return this._refreshing;
    }
    // The answer under way may be older than what the caller knows of: one more, for all who ask meanwhile.
    if (!this._refreshingAgain) {
      const again = () => {
        this._refreshingAgain = null;
        return this.refresh();
      };
      this._refreshingAgain = this._refreshing.then(again, again);
    }
    return this._refreshingAgain;
  }

  /** Ask the server if it has not told about one of these kernels yet. */
  expect(kernels: Iterable<string>): void {
    for (const kernel of kernels) {
      if (!this.row(kernel)) {
        void this._refreshSoon.invoke();
        return;
      }
    }
  }

  /** Ask the server for its checkpoints now. */
  async refreshCheckpoints(): Promise<void> {
    try {
      const checkpoints = await this._client.checkpoints();
      if (this._isDisposed) {
        return;
      }
      this._checkpoints = checkpoints;
      this._changed.emit();
    } catch (error) {
      this._note(error);
    }
  }

  /** What will be restored. */
  inventory(kernel: string, wait = 0): Promise<Inventory> {
    return this._client.inventory(kernel, wait);
  }

  /** Begin a pause. */
  async pause(options: IPauseOptions): Promise<Operation> {
    return this._begun(await this._client.pause(options));
  }

  /** Begin a resume. */
  async resume(request: ResumeRequest): Promise<Operation> {
    return this._begun(await this._client.resume(request));
  }

  /** Answer an operation's question. */
  async decide(id: string, decision: 'accept' | 'refuse'): Promise<Operation> {
    return this._begun(await this._client.decide(id, decision));
  }

  /** Cancel an operation. */
  async cancel(id: string): Promise<Operation> {
    return this._begun(await this._client.cancel(id));
  }

  /** Delete a checkpoint for good. */
  async deleteCheckpoint(id: string, force: boolean): Promise<void> {
    await this._client.deleteCheckpoint(id, force);
    await Promise.all([this.refreshCheckpoints(), this.refresh()]);
  }

  /** Say which documents were saved. */
  documentsSaved(body: DocumentsSaved): Promise<void> {
    return this._client.documentsSaved(body);
  }

  /** Resolves with an operation once it has ended or asks something. */
  settled(id: string): Promise<Operation> {
    const known = this._operations.get(id);
    if (known && known.state !== 'running') {
      return Promise.resolve(known);
    }
    const delegate = new PromiseDelegate<Operation>();
    const check = (_: unknown, operation: Operation) => {
      if (operation.id === id && operation.state !== 'running') {
        this._operationChanged.disconnect(check);
        delegate.resolve(operation);
      }
    };
    this._operationChanged.connect(check);
    void this._fetchOperation(id);
    return delegate.promise;
  }

  private async _refresh(): Promise<void> {
    this._seenDuringRefresh = 0;
    let state: ServerState;
    try {
      state = await this._client.state();
    } catch (error) {
      this._note(error);
      return;
    }
    if (this._isDisposed) {
      return;
    }
    this._answeredAt = this._now();
    const previous = this._state;
    this._state = state;
    // A server that was restarted counts from zero again, so a smaller number is taken as it is.
    this._revision = state.revision;
    if (this._seenDuringRefresh > state.revision) {
      void this._refreshSoon.invoke();
    }
    if (state.operation) {
      this._store(state.operation);
    }
    for (const row of state.kernels) {
      if (row.operation && !this._operations.has(row.operation)) {
        void this._fetchOperation(row.operation);
      }
    }
    if (state.kernels.some(row => row.reason?.code === 'starting')) {
      this._askAgain();
    }
    this._setAvailability('ready');
    this._announceRows(previous, state);
    this._changed.emit();
    if (
      this._checkpoints === null ||
      Private.checkpointsDiffer(previous, state)
    ) {
      void this.refreshCheckpoints();
    }
  }

  /** A kernel that is starting can be paused in a moment, and no event says when. */
  private _askAgain(): void {
    window.clearTimeout(this._again);
    this._again = window.setTimeout(() => {
      if (!this._isDisposed) {
        void this._refreshSoon.invoke();
      }
    }, STARTING);
  }

  /** Tell about every row that is not what it was. */
  private _announceRows(previous: ServerState | null, state: ServerState) {
    const before = new Map(previous?.kernels.map(row => [row.id, row]));
    for (const row of state.kernels) {
      const old = before.get(row.id) ?? null;
      before.delete(row.id);
      if (!old || JSON.stringify(old) !== JSON.stringify(row)) {
        this._kernelChanged.emit({ previous: old, row });
      }
    }
    for (const old of before.values()) {
      this._kernelChanged.emit({ previous: old, row: null });
    }
  }

  /** Take note of a call that failed. */
  private _note(error: unknown): void {
    if (this._isDisposed) {
      return;
    }
    const code = error instanceof PauseApiError ? error.code : '';
    this._setAvailability(
      code === 'server_part_missing'
        ? 'missing'
        : code === 'forbidden'
          ? 'forbidden'
          : 'unreachable'
    );
    if (!(error instanceof PauseApiError)) {
      console.error(error);
    }
  }

  private _setAvailability(value: Availability): void {
    if (this._availability === value) {
      return;
    }
    this._availability = value;
    this._availabilityChanged.emit(value);
    this._changed.emit();
  }

  private _begun(operation: Operation): Operation {
    this._store(operation);
    if (operation.state === 'running' && !this._watch.isDisposed) {
      void this._watch.refresh();
    }
    if (!Private.isLive(operation)) {
      void this._refreshSoon.invoke();
    }
    return operation;
  }

  /** Remember an operation and tell about it. */
  private _store(operation: Operation): void {
    const known = this._operations.get(operation.id);
    if (known && !Private.isLive(known) && Private.isLive(operation)) {
      return; // An older answer that came late.
    }
    this._touched.set(operation.id, this._now());
    if (known && JSON.stringify(known) === JSON.stringify(operation)) {
      return;
    }
    this._operations.set(operation.id, operation);
    for (const [id, old] of this._operations) {
      if (this._operations.size <= REMEMBERED) {
        break;
      }
      if (!Private.isLive(old)) {
        this._operations.delete(id);
        this._touched.delete(id);
      }
    }
    this._operationChanged.emit(operation);
    this._changed.emit();
  }

  private async _fetchOperation(id: string): Promise<void> {
    try {
      const operation = await this._client.operation(id);
      if (!this._isDisposed) {
        this._store(operation);
        if (!Private.isLive(operation)) {
          void this._refreshSoon.invoke();
        }
      }
    } catch (error) {
      this._onLostOperation(id, error);
    }
  }

  /** An operation that the server does not know any more has ended with the server that ran it. */
  private _onLostOperation(id: string, error: unknown): void {
    if (
      error instanceof PauseApiError &&
      error.code === 'operation_not_found'
    ) {
      const known = this._operations.get(id);
      if (known && Private.isLive(known)) {
        // That the server ends is what the pause of a workspace is about; what came of it is in its own report.
        const meant = known.scope === 'workspace';
        this._store({
          ...known,
          state: meant ? 'done' : 'failed',
          cancellable: false,
          error: meant
            ? null
            : { code: 'operation_interrupted', message: '', params: {} }
        });
        void this._refreshSoon.invoke();
      }
      return;
    }
    this._note(error);
  }

  /** Look at running operations that no event told about lately. */
  private async _watchOperations(): Promise<void> {
    const now = this._now();
    const silent = this.operations.filter(
      operation =>
        Private.isLive(operation) &&
        now - (this._touched.get(operation.id) ?? 0) >= WATCH * 0.75
    );
    await Promise.all(silent.map(({ id }) => this._fetchOperation(id)));
  }

  private _hasRunning(): boolean {
    return this.operations.some(Private.isLive);
  }

  private _onEvent(_: unknown, emission: Event.Emission): void {
    const event = readEvent(emission);
    if (!event || this._isDisposed) {
      return;
    }
    this._seenDuringRefresh = Math.max(this._seenDuringRefresh, event.revision);
    if (event.revision !== this._revision + 1) {
      // A gap, an event we know already, or a server that counts anew: ask.
      void this._refreshSoon.invoke();
    }
    if (event.revision > this._revision) {
      this._revision = event.revision;
    }
    switch (event.kind) {
      case EventKind.documents:
        this._documentsRequested.emit(event);
        break;
      case EventKind.operation:
        this._onOperationEvent(event);
        break;
      case EventKind.state:
        this._onStateEvent(event);
        break;
    }
  }

  /** Show the new state at once; everything else of the row comes with the answer that is asked for. */
  private _onStateEvent(event: IStateEvent): void {
    const previous = this.row(event.kernel);
    if (previous && this._state) {
      const row: KernelRow = {
        ...previous,
        state: event.state,
        phase: event.phase,
        outcome: event.outcome ?? previous.outcome,
        operation: event.operation
      };
      this._state = {
        ...this._state,
        kernels: this._state.kernels.map(old => (old.id === row.id ? row : old))
      };
      this._kernelChanged.emit({ previous, row });
      this._changed.emit();
    }
    void this._refreshSoon.invoke();
  }

  private _onOperationEvent(event: IOperationEvent): void {
    const known = this._operations.get(event.operation);
    if (!known || event.state !== 'running') {
      // Questions, errors and results are not in the event.
      void this._fetchOperation(event.operation);
      return;
    }
    this._store({
      ...known,
      phase: event.phase,
      elapsed: event.elapsed,
      bytes_done: event.bytesDone,
      bytes_total: event.bytesTotal,
      cancellable: event.cancellable ?? known.cancellable
    });
  }

  private readonly _onVisibility = (): void => {
    if (document.visibilityState === 'visible') {
      // Events may have been missed while the tab slept.
      void this._refreshSoon.invoke();
    }
  };

  private readonly _client: IPauseClient;
  private readonly _events: IStream<unknown, Event.Emission> | null;
  private readonly _now: () => number;
  private readonly _refreshSoon: Throttler;
  private readonly _poll: Poll;
  private readonly _away: Poll;
  private readonly _watch: Poll;
  private readonly _ready = new PromiseDelegate<void>();
  private readonly _operations = new Map<string, Operation>();
  private readonly _touched = new Map<string, number>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _kernelChanged = new Signal<this, IKernelChange>(this);
  private readonly _operationChanged = new Signal<this, Operation>(this);
  private readonly _availabilityChanged = new Signal<this, Availability>(this);
  private readonly _documentsRequested = new Signal<this, IDocumentsRequest>(
    this
  );
  private _availability: Availability = 'starting';
  private _state: ServerState | null = null;
  private _checkpoints: Checkpoint[] | null = null;
  private _answeredAt: number | null = null;
  private _refreshing: Promise<void> | null = null;
  private _refreshingAgain: Promise<void> | null = null;
  private _again = 0;
  private _revision = 0;
  private _seenDuringRefresh = 0;
  private _isDisposed = false;
}

/**
 * A namespace for `PauseManager` statics.
 */
export namespace PauseManager {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The REST calls. */
    client: IPauseClient;

    /** The server's event stream. */
    events?: IStream<unknown, Event.Emission>;

    /** Whether the slow poll should rest, e.g. because the application knows that it is offline. */
    standby?: () => boolean;

    /** Milliseconds between two slow polls. */
    interval?: number;

    /** Milliseconds between two questions while the server does not answer. */
    awayInterval?: number;

    /** Milliseconds between two looks at running operations. */
    watchInterval?: number;

    /** Milliseconds in which several reasons to ask become one. */
    throttle?: number;

    /** The clock (milliseconds since the epoch). */
    now?: () => number;
  }
}

namespace Private {
  /** Whether an operation has not ended. */
  export function isLive(operation: Operation): boolean {
    return (
      operation.state === 'running' || operation.state === 'needs_decision'
    );
  }

  /** Whether checkpoints may have come or gone between two states. */
  export function checkpointsDiffer(
    previous: ServerState | null,
    state: ServerState
  ): boolean {
    const ids = (value: ServerState | null) =>
      (value?.kernels ?? [])
        .map(row => `${row.id}:${row.checkpoint?.id ?? ''}:${row.state}`)
        .join(' ');
    return ids(previous) !== ids(state);
  }
}
