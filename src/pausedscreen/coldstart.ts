/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { DoorState, IDoorSizes } from '../owners';
import { DoorError } from '../owners';

/**
 * What a start on another machine is at: the resume that waits is taken back, its end is waited for, the machine is
 * changed, and the workspace is asked for again.
 */
export type ColdStep = 'pausing' | 'waiting' | 'choosing';

/**
 * Milliseconds that a workspace without a pod may take until it is called paused.
 */
const LIMIT = 600_000;

/**
 * One start of a workspace on another machine, up to the point where it is asked for again.
 */
export class ColdStart {
  /**
   * Construct a new start.
   *
   * @param at - now (milliseconds since the epoch).
   */
  constructor(
    sizes: IDoorSizes,
    readonly size: string,
    readonly at: number
  ) {
    this._sizes = sizes;
    this._since = at;
  }

  /** What it is at. */
  get step(): ColdStep {
    return this._step;
  }

  /** Since when (milliseconds since the epoch). */
  get since(): number {
    return this._since;
  }

  /** Whether it can still be cancelled: the workspace stays paused then, as it was. */
  get cancellable(): boolean {
    return this._step === 'waiting' && !this._cancelled;
  }

  /** Do not go on. */
  cancel(): void {
    if (this.cancellable) {
      this._cancelled = true;
      this._end?.(new DoorError('cold_cancelled'));
    }
  }

  /** The owner says how it stands. */
  sees(state: DoorState | null, now: number): void {
    if (this._step !== 'waiting' || this._cancelled) {
      return;
    }
    if (state === 'paused') {
      this._end?.(null);
    } else if (now - this._since > LIMIT) {
      this._end?.(new DoorError('cold_overdue'));
    }
  }

  /**
   * Go through the steps.
   *
   * @param look - asks the owner how it stands, which comes back through `sees`.
   * @throws DoorError - whatever went wrong.
   */
  async run(look: () => Promise<void>, now: () => number): Promise<void> {
    await this._sizes.pauseAgain();
    this._enter('waiting', now());
    const paused = new Promise<void>((done, failed) => {
      this._end = error => (error ? failed(error) : done());
    });
    await Promise.all([look(), paused]);
    this._enter('choosing', now());
    await this._sizes.choose(this.size);
  }

  private _enter(step: ColdStep, now: number): void {
    this._step = step;
    this._since = now;
    this._end = null;
  }

  private readonly _sizes: IDoorSizes;
  private _step: ColdStep = 'pausing';
  private _since: number;
  private _cancelled = false;
  private _end: ((error: DoorError | null) => void) | null = null;
}
