/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDoorEnvironment } from './door';
import { DoorError, ownPath } from './door';

/**
 * Kubeflow's backend, about one Workspace.
 */
export class KubeflowBackend {
  /**
   * Construct a new client.
   *
   * @param api - the address of the Workspace in the backend, or null.
   */
  constructor(api: string | null, environment: IDoorEnvironment) {
    this._environment = environment;
    this._api = ownPath(api, environment.page)?.replace(/\/+$/, '') ?? null;
  }

  /** Whether it can be asked. */
  get available(): boolean {
    return this._api !== null;
  }

  /** The path of the Workspace. */
  get path(): string {
    if (this._api === null) {
      throw new DoorError('door_not_found');
    }
    return this._api;
  }

  /** The path of the Workspaces of its namespace. */
  get listPath(): string {
    return parent(this.path);
  }

  /** Where the backend's own paths begin. */
  get root(): string {
    return parent(parent(this.listPath));
  }

  /** The name of the Workspace. */
  get name(): string {
    return last(this.path);
  }

  /** Its namespace. */
  get namespace(): string {
    return last(this.listPath);
  }

  /** One call; its `data`. */
  async call(method: string, path: string, body?: object): Promise<unknown> {
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (body) {
      headers['Content-Type'] = 'application/json';
    }
    const token = xsrfToken(this._environment.cookies());
    if (token) {
      headers['X-XSRF-TOKEN'] = token;
    }
    let response: Response;
    try {
      response = await this._environment.fetch(path, {
        method,
        headers,
        body: body ? JSON.stringify(body) : undefined,
        cache: 'no-store',
        credentials: 'same-origin',
        // A redirect is a login page; following it would only hide that.
        redirect: 'manual'
      });
    } catch (error) {
      throw new DoorError('door_unreachable', String(error));
    }
    return read(response);
  }

  private readonly _environment: IDoorEnvironment;
  private readonly _api: string | null;
}

function parent(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function last(path: string): string {
  return decodeURIComponent(path.slice(path.lastIndexOf('/') + 1));
}

/** The `data` of an answer, or the error that it is. */
async function read(response: Response): Promise<unknown> {
  if (response.type === 'opaqueredirect' || response.status === 401) {
    throw new DoorError('door_signed_out');
  }
  const body = await json(response);
  if (!response.ok) {
    throw new DoorError(
      codeOf(response.status),
      messageOf(body),
      response.status
    );
  }
  if (typeof body !== 'object' || body === null || !('data' in body)) {
    // A login page of a proxy, for one, is a 200 that is not the backend's.
    throw new DoorError('door_signed_out');
  }
  return (body as { data: unknown }).data;
}

async function json(response: Response): Promise<unknown> {
  try {
    return JSON.parse(await response.text()) as unknown;
  } catch {
    return null;
  }
}

function codeOf(status: number) {
  switch (status) {
    case 403:
      return 'door_forbidden';
    case 404:
      return 'door_not_found';
    case 409:
      return 'door_refused';
    default:
      return status >= 500 ? 'door_failed' : 'door_refused';
  }
}

/**
 * The text of an error envelope: `{"error": {"code", "message", "cause"}}`. What was not valid is in the cause; the
 * message only says that something was not.
 */
function messageOf(body: unknown): string {
  const error = (body as { error?: IErrorBody } | null)?.error;
  const causes = Array.isArray(error?.cause?.validation_errors)
    ? error.cause.validation_errors
        .map(cause => cause?.message)
        .filter((text): text is string => typeof text === 'string')
    : [];
  if (causes.length > 0) {
    return causes.join('; ');
  }
  return typeof error?.message === 'string' ? error.message : '';
}

interface IErrorBody {
  readonly message?: unknown;
  readonly cause?: {
    readonly validation_errors?: readonly ({ message?: unknown } | null)[];
  };
}

/** The token of the double-submit cookie that Kubeflow's web applications use, where there is one. */
function xsrfToken(cookies: string): string | null {
  const match = /(?:^|;\s*)XSRF-TOKEN=([^;]*)/.exec(cookies);
  return match ? decodeURIComponent(match[1]) : null;
}
