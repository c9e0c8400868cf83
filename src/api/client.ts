/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type {
  ApiErrorBody,
  Checkpoint,
  DocumentsSaved,
  Inventory,
  KernelRow,
  Operation,
  OnLoss,
  ResumeRequest,
  ServerState,
  WhenBusy
} from './records';
import type { Scope } from './workspace';

/**
 * Codes of failures that never reached our server part.
 */
export type TransportCode =
  | 'server_part_missing'
  | 'server_unavailable'
  | 'server_unreachable'
  | 'bad_answer'
  | 'forbidden';

/**
 * A refused or failed call, with the server's stable code.
 */
export class PauseApiError extends Error {
  /**
   * Construct a new error.
   *
   * @param body - what the server said.
   * @param status - the HTTP status, 0 when there was no answer.
   */
  constructor(
    readonly body: ApiErrorBody,
    readonly status: number
  ) {
    super(body.message);
    this.name = 'PauseApiError';
  }

  /**
   * The stable code.
   */
  get code(): string {
    return this.body.code;
  }
}

/**
 * Options of a pause.
 */
export interface IPauseOptions {
  /**
   * The kernels; `null` for all that can be paused.
   */
  kernels: string[] | null;

  /**
   * Kernels, or the whole workspace (then `kernels` is null).
   */
  scope?: Scope;

  /**
   * Whether to go on although something is lost.
   */
  onLoss?: OnLoss;

  /**
   * What to do with a kernel that runs a cell.
   */
  whenBusy?: WhenBusy;
}

/**
 * The calls of our REST interface that the frontend makes.
 */
export interface IPauseClient {
  /** Where everything stands. */
  state(): Promise<ServerState>;

  /** What will be restored; `wait` seconds for a complete scan. */
  inventory(kernel: string, wait?: number): Promise<Inventory>;

  /** Begin a pause. */
  pause(options: IPauseOptions): Promise<Operation>;

  /** Begin a resume. */
  resume(request: ResumeRequest): Promise<Operation>;

  /** How far an operation is. */
  operation(id: string): Promise<Operation>;

  /** Answer an operation's question. */
  decide(id: string, decision: 'accept' | 'refuse'): Promise<Operation>;

  /** Cancel an operation. */
  cancel(id: string): Promise<Operation>;

  /** All checkpoints, newest first. */
  checkpoints(): Promise<Checkpoint[]>;

  /** Delete a checkpoint for good. */
  deleteCheckpoint(id: string, force: boolean): Promise<void>;

  /** Say which documents were saved. */
  documentsSaved(body: DocumentsSaved): Promise<void>;
}

/**
 * The one place that talks to `{base_url}jupyter-pause/api/`.
 */
export class PauseClient implements IPauseClient {
  /**
   * Construct a new client.
   *
   * @param settings - base URL, token and XSRF handling of the application.
   */
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
  }

  /** Where everything stands. */
  state(): Promise<ServerState> {
    // Looking is not a person's activity: a culler must not be kept away by an open tab.
    return this._call<ServerState>('GET', ['state'], { no_track_activity: 1 });
  }

  /** What will be restored; `wait` seconds for a complete scan. */
  inventory(kernel: string, wait = 0): Promise<Inventory> {
    return this._call<Inventory>('GET', ['inventory'], { kernel, wait });
  }

  /** Begin a pause. */
  async pause(options: IPauseOptions): Promise<Operation> {
    const answer = await this._call<{ operation: Operation }>(
      'POST',
      ['pause'],
      {},
      {
        kernels: options.kernels,
        scope: options.scope ?? 'kernel',
        on_loss: options.onLoss ?? 'refuse',
        when_busy: options.whenBusy ?? 'wait',
        cause: 'user'
      }
    );
    return answer.operation;
  }

  /** Begin a resume. */
  async resume(request: ResumeRequest): Promise<Operation> {
    const answer = await this._call<{ operation: Operation }>(
      'POST',
      ['resume'],
      {},
      request
    );
    return answer.operation;
  }

  /** How far an operation is. */
  operation(id: string): Promise<Operation> {
    return this._call<Operation>('GET', ['operations', id]);
  }

  /** Answer an operation's question. */
  decide(id: string, decision: 'accept' | 'refuse'): Promise<Operation> {
    return this._call<Operation>(
      'POST',
      ['operations', id],
      {},
      {
        decision
      }
    );
  }

  /** Cancel an operation. */
  cancel(id: string): Promise<Operation> {
    return this._call<Operation>('DELETE', ['operations', id]);
  }

  /** All checkpoints, newest first. */
  async checkpoints(): Promise<Checkpoint[]> {
    const answer = await this._call<{ checkpoints: Checkpoint[] }>('GET', [
      'checkpoints'
    ]);
    return answer.checkpoints;
  }

  /** Delete a checkpoint for good. */
  deleteCheckpoint(id: string, force: boolean): Promise<void> {
    return this._call<void>('DELETE', ['checkpoints', id], {
      force: String(force)
    });
  }

  /** Say which documents were saved. */
  documentsSaved(body: DocumentsSaved): Promise<void> {
    return this._call<void>('POST', ['documents'], {}, body);
  }

  /**
   * Make one call.
   *
   * @throws PauseApiError - whatever went wrong, also without an answer.
   */
  private async _call<T>(
    method: string,
    path: string[],
    query: Record<string, string | number> = {},
    body?: object
  ): Promise<T> {
    const url =
      URLExt.join(
        this._settings.baseUrl,
        'jupyter-pause',
        'api',
        ...path.map(encodeURIComponent)
      ) + URLExt.objectToQueryString(query);
    const init: RequestInit = { method };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
    }
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this._settings);
    } catch (error) {
      throw Private.failure('server_unreachable', 0, String(error));
    }
    const text = await response.text();
    let data: unknown = undefined;
    try {
      data = text ? JSON.parse(text) : undefined;
    } catch {
      data = undefined;
    }
    if (!response.ok) {
      throw Private.refusal(response.status, data);
    }
    if (response.status !== 204 && (data === undefined || data === null)) {
      // A proxy's login page, for one, is a 200 that is not ours.
      throw Private.failure('bad_answer', response.status, response.statusText);
    }
    return data as T;
  }

  private readonly _settings: ServerConnection.ISettings;
}

/**
 * Whether a row belongs to a session without a kernel on this server.
 */
export function isHeldElsewhere(row: KernelRow): boolean {
  return row.reason?.code === 'session_held';
}

namespace Private {
  /** An error of our own making. */
  export function failure(
    code: TransportCode,
    status: number,
    message: string
  ): PauseApiError {
    return new PauseApiError({ code, message, params: {} }, status);
  }

  /** The error for an answer that is not a success. */
  export function refusal(status: number, data: unknown): PauseApiError {
    if (status === 503 || status === 424) {
      return failure('server_unavailable', status, 'Server unavailable');
    }
    if (isBody(data)) {
      if (status === 404 && data.code === 'no_such_call') {
        return new PauseApiError(
          { ...data, code: 'server_part_missing' },
          status
        );
      }
      return new PauseApiError(data, status);
    }
    if (status === 404) {
      return failure('server_part_missing', status, 'Not found');
    }
    if (status === 401 || status === 403) {
      return failure('forbidden', status, 'Forbidden');
    }
    return failure('bad_answer', status, `HTTP ${status}`);
  }

  function isBody(data: unknown): data is ApiErrorBody {
    return (
      typeof data === 'object' &&
      data !== null &&
      typeof (data as { code?: unknown }).code === 'string' &&
      typeof (data as { message?: unknown }).message === 'string'
    );
  }
}
