/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type {
  Checkpoint,
  Operation,
  Phase,
  Reason,
  ServerState,
  State
} from '../api/records';
import type { WorkspaceResumeReport } from '../api/workspace';
import type { IDoorView, IResumeDoorClient, ISize } from '../owners';
import { DoorError } from '../owners';
import { ColdStart } from './coldstart';
import type { FarewellStore, IFarewell } from './farewell';
import { farewellOf, isLeaving } from './farewell';

/**
 * What the screen shows.
 *
 * `preparing` documents and checkpoints are being saved, questions may be asked: one line only; `leaving` the pause is under way; `asking` resume was clicked, no answer yet, or the owner is still busy with the pause;
 * `cold` it is about to be asked for on another machine;
 * `starting` compute is granted, the pod comes up; `restoring` and `proving` are the server's own words once it answers;
 * `fresh` it is back without its memory, and nobody has acknowledged that; `unknown` nobody answers.
 */
export type ScreenState =
  | 'hidden'
  | 'preparing'
  | 'leaving'
  | 'paused'
  | 'asking'
  | 'cold'
  | 'waiting'
  | 'starting'
  | 'restoring'
  | 'proving'
  | 'failed'
  | 'unknown'
  | 'fresh';

/**
 * Milliseconds between two looks: at first, and at most.
 */
const PACE: Record<'still' | 'moving', readonly [number, number]> = {
  still: [15_000, 120_000],
  moving: [3_000, 20_000]
};

/**
 * Looks in a row that may fail before what was seen counts as unknown.
 */
const PATIENCE = 2;

/**
 * Milliseconds until a resume that was asked must show at the owner; a person may fill in a form in between.
 */
const TAKEN: Record<'asked' | 'joined' | 'elsewhere', number> = {
  asked: 60_000,
  joined: 60_000,
  elsewhere: 600_000
};

/**
 * Milliseconds for which a wish that came too early is kept.
 */
const EARLY = 1_200_000;

/**
 * Phases of a pause after which the server may go at any moment.
 */
const LATE: readonly (Phase | null)[] = [
  'draining',
  'snapshotting',
  'releasing'
];

/**
 * Time and timers, which a test brings itself.
 */
export interface IClock {
  /** Milliseconds since the epoch. */
  now(): number;

  /** Call once after so many milliseconds; disposing prevents it. */
  after(milliseconds: number, call: () => void): IDisposable;
}

/**
 * What the live state says.
 */
export interface IServerFacts {
  /** Whether the last call was answered. */
  readonly answers: boolean;

  /** The last good state, or null. */
  readonly state: ServerState | null;

  /** The workspace's operation that runs, or null. */
  readonly operation: Operation | null;

  /** The checkpoints on disk, newest first, or null when never read. */
  readonly checkpoints: readonly Checkpoint[] | null;
}

/**
 * Milliseconds that a server may take to find out who its owner is.
 */
const LOOKING = 60_000;

/**
 * The state machine of a tab whose whole workspace is paused.
 *
 * The state is derived from facts, each time anew: what the server said last, what the owner says through the door,
 * what the person asked for. So a tab that did nothing follows another tab's resume, and an order of events that nobody
 * thought of cannot leave it in a state that is not true.
 */
export class PausedScreenModel implements IDisposable {
  /**
   * Construct a new model.
   */
  constructor(options: PausedScreenModel.IOptions) {
    this._options = options;
    const known = options.store.load();
    // After a reload of the page only a workspace that was leaving is of interest.
    if (known?.leftAt) {
      this._farewell = known;
      this._away = true;
      this._client = options.open(known);
    }
    this._enteredAt = options.clock.now();
  }

  /** Emitted after any change. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted with the report once the workspace is back. */
  get cameBack(): ISignal<this, WorkspaceResumeReport> {
    return this._cameBack;
  }

  /** What the screen shows. */
  get state(): ScreenState {
    return this._state;
  }

  /** When it began to (milliseconds since the epoch). */
  get enteredAt(): number {
    return this._enteredAt;
  }

  /** The last that the server said before it went, or null. */
  get farewell(): IFarewell | null {
    return this._farewell;
  }

  /** Why it waits, failed or is not known, or null. */
  get reason(): Reason | null {
    return this._reason;
  }

  /** The phase of the pause or the resume, as far as the server tells. */
  get phase(): Phase | null {
    const { state, operation, answers } = this._facts;
    return answers || this._state === 'leaving'
      ? (operation?.phase ?? state?.workspace?.phase ?? null)
      : null;
  }

  /** When the owner or the server was last heard (milliseconds since the epoch), or null. */
  get heardAt(): number | null {
    return this._heardAt;
  }

  /** When resume was asked, here or elsewhere (milliseconds since the epoch), or null. */
  get askedAt(): number | null {
    return this._cold?.at ?? this._wish?.at ?? this._movingSince;
  }

  /** The state of the workspace as everybody calls it, or null while the screen has nothing to add to the server's. */
  get workspaceState(): State | null {
    switch (this._state) {
      case 'hidden':
      case 'fresh':
        return null;
      case 'preparing':
      case 'leaving':
        return 'pausing';
      case 'asking':
      case 'cold':
      case 'starting':
      case 'restoring':
      case 'proving':
        return 'resuming';
      default:
        return this._state;
    }
  }

  /** Whether Resume can be clicked. */
  get canResume(): boolean {
    return (
      this._client?.canResume === true &&
      ['paused', 'failed', 'unknown'].includes(this._state)
    );
  }

  /** The operation that runs, as far as the server tells, or null. */
  get operation(): Operation | null {
    return this._facts.answers ? this._facts.operation : null;
  }

  /** The pause that can still be cancelled, by its operation, or null. */
  get cancellable(): string | null {
    const { answers, operation } = this._facts;
    return answers && operation?.kind === 'pause' && operation.cancellable
      ? operation.id
      : null;
  }

  /** Whether the person goes on in a window of the owner. */
  get elsewhere(): boolean {
    return this._wish?.answer === 'elsewhere';
  }

  /** The start on another machine that is under way, or null. */
  get cold(): ColdStart | null {
    return this._cold;
  }

  /** Whether the owner can be asked how it stands. */
  get canLook(): boolean {
    return this._client?.canLook === true;
  }

  /** The report of a resume that lost the memory, or null. */
  get report(): WorkspaceResumeReport | null {
    return this._state === 'fresh' ? this._lastResume() : null;
  }

  /** Seconds that a resume usually takes here, or null when none was seen. */
  get usual(): number | null {
    return this._options.store.usual();
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Stop, and give the application's flag back. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._cold?.cancel();
    this._timer?.dispose();
    this._hold?.dispose();
    this._hold = null;
    Signal.clearData(this);
  }

  /** Take note of what the live state says. */
  serverSays(facts: IServerFacts): void {
    if (this._isDisposed) {
      return;
    }
    this._facts = facts;
    if (facts.answers && facts.state) {
      this._heardAt = this._options.clock.now();
      this._onAnswer(facts.state, facts.operation);
    } else if (this._farewell && !this._client) {
      // Gone. Without a pause that we know of, the owner may know one: a culler's, another device's.
      this._away = this._farewell.leftAt !== null;
      this._client = this._options.open(this._farewell);
      if (this._away) {
        this._lookSoon();
      } else {
        void this.look();
      }
    }
    this._settle();
  }

  /** The page became visible: look at once. */
  wake(): void {
    if (this._client && this._options.visible()) {
      this._misses = 0;
      void this.look();
    }
  }

  /** Ask the owner how it stands, now. */
  async look(): Promise<void> {
    const client = this._client;
    if (!client?.canLook || this._looking) {
      this._lookSoon();
      return;
    }
    this._looking = true;
    try {
      const view = await client.look();
      if (client === this._client) {
        this._onView(view);
      }
    } catch (error) {
      this._onMiss(error);
    } finally {
      this._looking = false;
    }
    if (this._wish?.answer === 'not_yet' && this._view?.state !== 'pausing') {
      await this._ask(this._wish);
    }
    this._lookSoon();
    this._settle();
  }

  /** The person wants it back. A wish that is under way is joined. */
  async resume(): Promise<void> {
    if (!this._client?.canResume || this._wish?.answer === null) {
      return;
    }
    const wish: IWish = {
      at: this._options.clock.now(),
      answer: null,
      error: null
    };
    this._wish = wish;
    this._tries = 0;
    this._settle();
    await this._ask(wish);
    this._settle();
    await this.look();
  }

  /**
   * What it may be started on instead.
   *
   * @throws DoorError - whatever went wrong; `door_not_found` where the owner offers nothing to a browser.
   */
  sizes(): Promise<ISize[]> {
    const sizes = this._client?.sizes;
    return sizes
      ? sizes.list()
      : Promise.reject(new DoorError('door_not_found'));
  }

  /**
   * Start it on another machine, where its snapshot does not fit: pause it again where needed, change its size, resume.
   *
   * @returns why it did not work, or null; then it was asked for.
   */
  async startOn(size: string): Promise<Reason | null> {
    const { clock } = this._options;
    const sizes = this._client?.sizes;
    if (!sizes || this._cold) {
      return null;
    }
    const cold = new ColdStart(sizes, size, clock.now());
    this._cold = cold;
    // Whatever was asked before is taken back.
    this._wish = null;
    this._settle();
    try {
      await cold.run(
        () => this.look(),
        () => clock.now()
      );
    } catch (error) {
      return whyNotOn(error);
    } finally {
      this._cold = null;
      this._settle();
    }
    await this.resume();
    return null;
  }

  /** Try again whatever did not work: the resume, or the look. */
  async retry(): Promise<void> {
    this._misses = 0;
    this._tries = 0;
    if (this._state === 'failed' && this.canResume) {
      await this.resume();
    } else {
      await Promise.all([this._options.refresh(), this.look()]);
    }
  }

  /** The person has read that nothing was brought back. */
  acknowledge(): void {
    this._unread = false;
    this._settle();
  }

  /** The server answers. */
  private _onAnswer(state: ServerState, operation: Operation | null): void {
    const { clock, store } = this._options;
    const { workspace } = state;
    if (!workspace) {
      if (this._isStillLooking(state)) {
        return;
      }
      this._forget();
      store.clear();
      this._farewell = null;
      return;
    }
    this._lookingSince = null;
    const before = this._farewell;
    const leaving = isLeaving(workspace, operation);
    const fresh = farewellOf(
      state,
      operation,
      this._facts.checkpoints,
      clock.now()
    );
    if (leaving || workspace.state !== 'resuming') {
      this._farewell = fresh;
    }
    if (!leaving && workspace.state !== 'resuming') {
      if (this._away) {
        this._onBack();
      }
      this._hear(before, workspace.last_resume);
    }
    if (!leaving && workspace.state === 'resuming' && before === null) {
      // This page was opened while the workspace was coming back.
      this._farewell = fresh;
      this._away = true;
    }
    if (this._farewell) {
      store.save(this._farewell);
    }
    if (!this._away) {
      this._forget();
    }
  }

  /** A server that has just started knows its owner a moment later: what this page knows is not out of date yet. */
  private _isStillLooking(state: ServerState): boolean {
    const now = this._options.clock.now();
    this._lookingSince ??= now;
    return (
      this._farewell !== null &&
      state.reason?.code === 'owner_unknown' &&
      now - this._lookingSince < LOOKING
    );
  }

  /** It was away, and is back. */
  private _onBack(): void {
    const { clock, store } = this._options;
    const asked = this.askedAt;
    if (asked !== null) {
      store.took((clock.now() - asked) / 1000);
    }
    this._client?.back();
    this._forget();
  }

  /** A report that was not there before is news; a server that has just started may write it after its first answer. */
  private _hear(
    before: IFarewell | null,
    report: WorkspaceResumeReport | null
  ): void {
    if (before && report && report.at !== before.resumedAt) {
      this._unread = report.outcome === 'fresh';
      this._cameBack.emit(report);
    }
  }

  private _forget(): void {
    this._away = false;
    this._client = null;
    this._view = null;
    this._viewError = null;
    this._misses = 0;
    this._wish = null;
    this._movingSince = null;
    this._sawPaused = false;
    this._timer?.dispose();
    this._timer = null;
  }

  /** The owner answered. */
  private _onView(view: IDoorView): void {
    const now = this._options.clock.now();
    if (this._view?.state !== view.state) {
      this._tries = 0;
    }
    this._view = view;
    this._viewError = null;
    this._misses = 0;
    this._heardAt = now;
    this._away ||= view.state !== 'running' && view.state !== 'unknown';
    if (view.state === 'paused') {
      this._sawPaused = true;
      this._movingSince = null;
      this._onStillPaused(now);
    } else if (view.state === 'waiting' || view.state === 'starting') {
      this._movingSince ??= now;
    } else if (view.state === 'running' && this._sawPaused) {
      this._movingSince ??= now;
    }
    if (view.state === 'running') {
      void this._options.refresh();
    }
  }

  /** A resume that was asked must show some time. */
  private _onStillPaused(now: number): void {
    const wish = this._wish;
    if (!isTaken(wish)) {
      return;
    }
    if (now - wish.at > TAKEN[wish.answer]) {
      this._wish =
        wish.answer === 'elsewhere'
          ? null
          : {
              ...wish,
              answer: 'failed',
              error: { code: 'resume_not_taken', message: '', params: {} }
            };
    }
  }

  /** The owner did not answer. */
  private _onMiss(error: unknown): void {
    this._misses += 1;
    this._viewError =
      error instanceof DoorError
        ? error.reason
        : { code: 'door_unreachable', message: '', params: {} };
  }

  private async _ask(wish: IWish): Promise<void> {
    const client = this._client;
    if (!client) {
      return;
    }
    let next: IWish;
    try {
      next = { ...wish, answer: await client.resume(), error: null };
    } catch (error) {
      next = {
        ...wish,
        answer: 'failed',
        error:
          error instanceof DoorError
            ? error.reason
            : { code: 'door_failed', message: '', params: {} }
      };
    }
    if (
      next.answer === 'not_yet' &&
      this._options.clock.now() - wish.at > EARLY
    ) {
      next = {
        ...wish,
        answer: 'failed',
        error: { code: 'resume_not_taken', message: '', params: {} }
      };
    }
    // Back meanwhile, or a newer wish: this one is history.
    if (this._wish === wish) {
      this._wish = next;
    }
  }

  /** Look again in a while, ever more slowly, and only while somebody can see it. */
  private _lookSoon(): void {
    this._timer?.dispose();
    this._timer = null;
    if (this._isDisposed || !this.canLook) {
      return;
    }
    const [first, most] =
      this._state === 'paused' || this._state === 'failed'
        ? PACE.still
        : PACE.moving;
    const wait = Math.min(most, first * 1.5 ** this._tries);
    this._tries += 1;
    this._timer = this._options.clock.after(wait, () => {
      this._timer = null;
      if (this._options.visible()) {
        void this.look();
      }
    });
  }

  /** Derive the state from the facts. */
  private _settle(): void {
    if (this._isDisposed) {
      return;
    }
    this._cold?.sees(this._view?.state ?? null, this._options.clock.now());
    const [state, reason] = this._derive();
    if (state !== this._state) {
      this._state = state;
      this._enteredAt = this._options.clock.now();
      if (this._timer) {
        // Another state, another pace.
        this._tries = 0;
        this._lookSoon();
      }
    }
    this._reason = reason;
    this._keepHold();
    this._changed.emit();
  }

  private _derive(): [ScreenState, Reason | null] {
    const { answers, state, operation } = this._facts;
    const workspace = state?.workspace ?? null;
    if (answers && workspace) {
      if (workspace.state === 'resuming' && this._away) {
        return [
          workspace.phase === 'proving' ? 'proving' : this._startingState,
          workspace.reason
        ];
      }
      if (isLeaving(workspace, operation)) {
        const phase = operation?.phase ?? workspace.phase;
        const late = LATE.includes(phase) || workspace.state === 'paused';
        return [late ? 'leaving' : 'preparing', workspace.reason];
      }
      return [this._unread ? 'fresh' : 'hidden', null];
    }
    if (!this._away || answers) {
      return ['hidden', null];
    }
    return this._deriveAway();
  }

  /** The server is gone, as was expected. */
  private _deriveAway(): [ScreenState, Reason | null] {
    const wish = this._wish;
    if (this._cold) {
      return ['cold', null];
    }
    if (wish?.answer === null || wish?.answer === 'not_yet') {
      return ['asking', null];
    }
    if (wish?.answer === 'failed' && this._view?.state !== 'waiting') {
      if (!this._view || this._view.state === 'paused') {
        return ['failed', wish.error];
      }
    }
    if (!this.canLook) {
      return ['unknown', null];
    }
    if (this._misses >= PATIENCE) {
      return ['unknown', this._viewError];
    }
    const view = this._view;
    if (!view) {
      return [wish ? 'starting' : 'leaving', null];
    }
    switch (view.state) {
      case 'paused':
        return [wish ? 'starting' : 'paused', null];
      case 'pausing':
        return ['leaving', view.reason];
      case 'running':
        // Not seen paused and not asked for: the snapshot is being taken.
        return [
          this._sawPaused || wish || this._movingSince
            ? this._startingState
            : 'leaving',
          view.reason
        ];
      default:
        return [view.state, view.reason];
    }
  }

  /** Where nothing was snapshotted, nothing is restored. */
  private get _startingState(): ScreenState {
    return this._farewell?.workspace.stateful ? 'restoring' : 'starting';
  }

  /** While the server is expected to be away, the application must neither ask nor complain. */
  private _keepHold(): void {
    const wanted =
      this._away || !['hidden', 'preparing', 'fresh'].includes(this._state);
    if (wanted && !this._hold) {
      this._hold = this._options.hold();
    } else if (!wanted && this._hold) {
      this._hold.dispose();
      this._hold = null;
    }
  }

  private _lastResume(): WorkspaceResumeReport | null {
    return this._facts.state?.workspace?.last_resume ?? null;
  }

  private readonly _options: PausedScreenModel.IOptions;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _cameBack = new Signal<this, WorkspaceResumeReport>(this);
  private _facts: IServerFacts = {
    answers: false,
    state: null,
    operation: null,
    checkpoints: null
  };
  private _state: ScreenState = 'hidden';
  private _enteredAt = 0;
  private _reason: Reason | null = null;
  private _farewell: IFarewell | null = null;
  private _client: IResumeDoorClient | null = null;
  private _view: IDoorView | null = null;
  private _viewError: Reason | null = null;
  private _heardAt: number | null = null;
  private _wish: IWish | null = null;
  private _cold: ColdStart | null = null;
  private _movingSince: number | null = null;
  private _lookingSince: number | null = null;
  private _sawPaused = false;
  private _away = false;
  private _unread = false;
  private _looking = false;
  private _misses = 0;
  private _tries = 0;
  private _timer: IDisposable | null = null;
  private _hold: IDisposable | null = null;
  private _isDisposed = false;
}

/**
 * A namespace for `PausedScreenModel` statics.
 */
export namespace PausedScreenModel {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** Make the client for the door of a workspace. */
    open: (farewell: IFarewell) => IResumeDoorClient;

    /** What survives a reload. */
    store: FarewellStore;

    /** Time. */
    clock: IClock;

    /** Whether somebody can see the page. */
    visible: () => boolean;

    /** Ask the server for its state. */
    refresh: () => Promise<void>;

    /** Tell the application that the server is expected to be away. */
    hold: () => IDisposable;
  }
}

/** Why it does not start on another machine. */
function whyNotOn(error: unknown): Reason {
  if (!(error instanceof DoorError)) {
    return { code: 'door_failed', message: '', params: {} };
  }
  return error.code === 'door_forbidden'
    ? { ...error.reason, code: 'size_forbidden' }
    : error.reason;
}

function isTaken(wish: IWish | null): wish is IWish & {
  answer: keyof typeof TAKEN;
} {
  return !!wish?.answer && wish.answer in TAKEN;
}

/**
 * The person's wish to have it back, and what became of it; no answer yet while `answer` is null.
 */
interface IWish {
  readonly at: number;
  readonly answer:
    'asked' | 'joined' | 'not_yet' | 'elsewhere' | 'failed' | null;
  readonly error: Reason | null;
}
