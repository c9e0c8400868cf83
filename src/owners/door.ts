/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Reason } from '../api/records';
import type { ResumeDoor } from '../api/workspace';

/**
 * What an owner says about a workspace whose server is gone.
 */
export type DoorState =
  | 'running'
  | 'pausing'
  | 'paused'
  | 'waiting'
  | 'starting'
  | 'failed'
  | 'unknown';

/**
 * One look through the door.
 */
export interface IDoorView {
  /** What the owner says; `running` may still mean that the snapshot is being taken. */
  readonly state: DoorState;

  /** Why it waits or failed, or null. */
  readonly reason: Reason | null;
}

/**
 * What became of the wish to resume.
 *
 * `asked` the owner took it; `joined` somebody else had asked already; `not_yet` the owner is still busy with the
 * pause, ask again; `elsewhere` the person goes on in another window.
 */
export type ResumeAnswer = 'asked' | 'joined' | 'not_yet' | 'elsewhere';

/**
 * How a browser tab that outlived its server looks after the workspace, through the owner's own web interface.
 *
 * A new owner is one file that implements this, and one line in `index.ts`.
 */
export interface IResumeDoorClient {
  /** Whether a click on Resume does something. */
  readonly canResume: boolean;

  /** Whether the owner can be asked how it stands. */
  readonly canLook: boolean;

  /**
   * Ask how it stands.
   *
   * @throws DoorError - whatever went wrong.
   */
  look(): Promise<IDoorView>;

  /**
   * Ask for the compute again; called inside a click, so that it may open a window.
   *
   * @throws DoorError - whatever went wrong.
   */
  resume(): Promise<ResumeAnswer>;

  /** The server answers again: close what was opened. */
  back(): void;

  /** How it is started on another machine, without its snapshot; null where the owner does not let a browser choose. */
  readonly sizes: IDoorSizes | null;
}

/**
 * One kind of machine that an owner offers for a workspace.
 */
export interface ISize {
  readonly id: string;

  /** What the platform calls it. */
  readonly name: string;

  /** The platform's own words about it; may be empty. */
  readonly about: string;
}

/**
 * A workspace that is to start on another machine than it was on.
 */
export interface IDoorSizes {
  /**
   * What it may be started on; not what it was on.
   *
   * @throws DoorError - whatever went wrong.
   */
  list(): Promise<ISize[]>;

  /**
   * Take back a resume whose pod does not run yet; nothing to do when it is paused.
   *
   * @throws DoorError - whatever went wrong; `cold_runs` when its pod runs.
   */
  pauseAgain(): Promise<void>;

  /**
   * Let the paused workspace have this size; nothing else of it changes.
   *
   * @throws DoorError - whatever went wrong; `cold_runs` when it is not paused any more.
   */
  choose(size: string): Promise<void>;
}

/**
 * What a client needs of the browser; a test brings its own.
 */
export interface IDoorEnvironment {
  /** The browser's `fetch`. */
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>;

  /** Open a window; null when the browser refuses. */
  readonly open: (url: string, name: string) => IOpenedWindow | null;

  /** The address of the page, e.g. `https://host/user/ann/lab/tree/a.ipynb`. */
  readonly page: string;

  /** The path that the Jupyter server has on this origin. */
  readonly basePath: string;

  /** The cookies that the page may read. */
  readonly cookies: () => string;
}

/**
 * A window that a client opened.
 */
export interface IOpenedWindow {
  readonly closed: boolean;
  close(): void;
}

/**
 * Why the owner could not be asked.
 */
export type DoorErrorCode =
  | 'door_unreachable'
  | 'door_signed_out'
  | 'door_forbidden'
  | 'door_not_found'
  | 'door_refused'
  | 'door_failed'
  | 'cold_runs'
  | 'cold_overdue'
  | 'cold_cancelled'
  | 'popup_blocked';

/**
 * A question that the owner did not answer.
 */
export class DoorError extends Error {
  /**
   * Construct a new error.
   *
   * @param code - what went wrong.
   * @param detail - the owner's own words, shown as they are.
   * @param status - the HTTP status, where there is one.
   */
  constructor(
    readonly code: DoorErrorCode,
    readonly detail = '',
    readonly status: number | null = null
  ) {
    super(detail ? `${code}: ${detail}` : code);
    this.name = 'DoorError';
  }

  /** The error as a reason that can be shown. */
  get reason(): Reason {
    return {
      code: this.code,
      message: this.detail,
      params: this.detail ? { detail: this.detail } : {}
    };
  }
}

/**
 * The path of a door on the page's own origin, or null: nothing of ours is ever sent to another one.
 */
export function ownPath(path: string | null, page: string): string | null {
  if (!path) {
    return null;
  }
  try {
    const here = new URL(page);
    const there = new URL(path, here);
    return there.origin === here.origin ? there.pathname + there.search : null;
  } catch {
    return null;
  }
}

/**
 * Make a client for a door.
 */
export type DoorClientFactory = (
  door: ResumeDoor,
  environment: IDoorEnvironment
) => IResumeDoorClient;
