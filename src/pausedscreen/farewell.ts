/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Checkpoint, Operation, ServerState } from '../api/records';
import type { WorkspaceRow } from '../api/workspace';

/**
 * What this tab knows of a workspace from the last good answer of its server.
 */
export interface IFarewell {
  /** The version of this record. */
  readonly version: 1;

  /** The workspace, with the door that brings it back. */
  readonly workspace: WorkspaceRow;

  /** What each notebook's kernel had when the server was last heard of. */
  readonly kernels: readonly IFarewellKernel[];

  /** When the server said so (milliseconds since the epoch). */
  readonly at: number;

  /** When the pause was asked for (milliseconds since the epoch), or null when none was. */
  readonly leftAt: number | null;

  /** The report of the last resume that was known then, by its time. */
  readonly resumedAt: string | null;
}

/**
 * A kernel when the server was last heard of.
 */
export interface IFarewellKernel {
  readonly id: string;
  readonly path: string | null;
  readonly name: string | null;

  /** When its checkpoint was made (RFC 3339), or null when that is not known. */
  readonly checkpoint: string | null;

  /** Whether it was paused: then it has a checkpoint, also where the server went before it could be asked about it. */
  readonly paused: boolean;
}

/**
 * Where the record survives a reload of the page.
 */
export type TextStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/**
 * How many resumes are remembered for "usually".
 */
const REMEMBERED = 9;

/**
 * Make the record from the server's state, or null when there is no workspace.
 */
export function farewellOf(
  state: ServerState,
  operation: Operation | null,
  checkpoints: readonly Checkpoint[] | null,
  now: number
): IFarewell | null {
  const { workspace } = state;
  if (!workspace) {
    return null;
  }
  const leaving = isLeaving(workspace, operation);
  return {
    version: 1,
    workspace,
    kernels: state.kernels.map(({ id, path, name, checkpoint, ...row }) => ({
      id,
      path,
      name,
      checkpoint: checkpoint?.created ?? newestOf(id, checkpoints),
      paused: row.state === 'paused'
    })),
    at: now,
    leftAt: leaving
      ? Date.parse(operation?.started ?? workspace.since) || now
      : null,
    resumedAt: workspace.last_resume?.at ?? null
  };
}

/** When the newest good checkpoint of a kernel was made, or null when none is known. */
function newestOf(
  kernel: string,
  checkpoints: readonly Checkpoint[] | null
): string | null {
  return (
    checkpoints?.find(
      checkpoint =>
        checkpoint.kernel_id === kernel &&
        !checkpoint.damaged &&
        checkpoint.signature_ok
    )?.created ?? null
  );
}

/**
 * Whether a pause of the whole workspace is under way.
 */
export function isLeaving(
  workspace: WorkspaceRow,
  operation: Operation | null
): boolean {
  if (
    operation?.scope === 'workspace' &&
    operation.kind === 'pause' &&
    (operation.state === 'running' || operation.state === 'needs_decision')
  ) {
    return true;
  }
  return workspace.state === 'pausing' || workspace.state === 'paused';
}

/**
 * The records of this tab, for one server; nothing in them is secret.
 */
export class FarewellStore {
  /**
   * Construct a new store.
   *
   * @param session - lives as long as the tab.
   * @param local - lives longer; for durations only.
   * @param server - tells one server's records from another's.
   */
  constructor(
    session: TextStorage | null,
    local: TextStorage | null,
    server: string
  ) {
    this._session = session;
    this._local = local;
    this._key = `jupyter-pause:workspace:${server}`;
    this._durations = `jupyter-pause:resumes:${server}`;
  }

  /** The record, or null. */
  load(): IFarewell | null {
    const value = parse(this._session, this._key) as IFarewell | null;
    return value?.version === 1 && !!value.workspace?.door ? value : null;
  }

  /** Keep the record. */
  save(value: IFarewell): void {
    write(this._session, this._key, value);
  }

  /** Forget the record. */
  clear(): void {
    try {
      this._session?.removeItem(this._key);
    } catch {
      // A browser that stores nothing has nothing to forget.
    }
  }

  /** Seconds that a resume usually took in this browser (the median), or null when none was seen. */
  usual(): number | null {
    const known = this._known().sort((a, b) => a - b);
    return known.length > 0 ? known[Math.floor(known.length / 2)] : null;
  }

  /** Note how long a resume took. */
  took(seconds: number): void {
    write(
      this._local,
      this._durations,
      [...this._known(), seconds].slice(-REMEMBERED)
    );
  }

  private _known(): number[] {
    const value = parse(this._local, this._durations);
    return Array.isArray(value)
      ? value.filter(
          (item): item is number => typeof item === 'number' && item > 0
        )
      : [];
  }

  private readonly _session: TextStorage | null;
  private readonly _local: TextStorage | null;
  private readonly _key: string;
  private readonly _durations: string;
}

function parse(storage: TextStorage | null, key: string): unknown {
  try {
    return JSON.parse(storage?.getItem(key) ?? 'null') as unknown;
  } catch {
    return null;
  }
}

function write(storage: TextStorage | null, key: string, value: unknown): void {
  try {
    storage?.setItem(key, JSON.stringify(value));
  } catch {
    // Full, or switched off: then a reload of the page forgets.
  }
}
