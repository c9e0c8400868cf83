/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { KernelRow, ServerState } from '../api/records';
import { isBusy, isPaused } from '../view';

/**
 * What becomes of each kernel when the server is shut down.
 */
export interface IShutDownPlan {
  /** Paused, or about to be: the next start has them. */
  readonly kept: readonly KernelRow[];

  /** Run, and are saved and paused by the server before it ends. */
  readonly saved: readonly KernelRow[];

  /** End with the server. */
  readonly ended: readonly KernelRow[];

  /** Whether the person may choose between saving and ending. */
  readonly choice: boolean;
}

/**
 * What a shut-down would do, by the setting `on_exit` of the server.
 */
export function shutDownPlan(state: ServerState): IShutDownPlan {
  // What another server holds is none of this one's business.
  const rows = state.kernels.filter(row => row.reason?.code !== 'session_held');
  const kept = rows.filter(row => isPaused(row) || isBusy(row));
  const others = rows.filter(row => !kept.includes(row));
  const saves = state.on_exit !== 'discard';
  const saved = others.filter(row => saves && row.pausable);
  return {
    kept,
    saved,
    ended: others.filter(row => !saved.includes(row)),
    choice: state.on_exit === 'ask' && saved.length > 0
  };
}

/**
 * The same when the person does not want the running kernels saved.
 */
export function withoutSaving(plan: IShutDownPlan): IShutDownPlan {
  const { kept, saved, ended } = plan;
  return { kept, saved: [], ended: [...saved, ...ended], choice: false };
}
