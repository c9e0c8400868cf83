/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { URLExt } from '@jupyterlab/coreutils';

import type { ResumeDoor } from '../api/workspace';
import type {
  IDoorEnvironment,
  IDoorView,
  IOpenedWindow,
  IResumeDoorClient,
  ResumeAnswer
} from './door';
import { DoorError, ownPath } from './door';

/**
 * The name of the window in which the Hub starts the server; a second click uses the same one.
 */
const WINDOW = 'jupyter-pause-hub';

/**
 * JupyterHub: the page of a server may not POST to the Hub.
 *
 * Since JupyterHub 4.1 the Hub's XSRF cookie has the path `/hub/`, and a fetch, also a GET, needs its value, which a page
 * below `/user/` cannot read (jupyterhub/_xsrf_utils.py: only navigations are exempt). So the start is a navigation:
 * `/hub/spawn/...?next=` in a window of its own, which shows the Hub's own form and progress, too. This tab watches the
 * server's address: while it does not run, the proxy leads it to the Hub (seen: JupyterHub 6 with configurable-http-proxy).
 */
export class JupyterHubDoor implements IResumeDoorClient {
  /**
   * Construct a new client.
   */
  constructor(door: ResumeDoor, environment: IDoorEnvironment) {
    this._environment = environment;
    this._page = ownPath(door.page, environment.page);
  }

  /** Whether a click on Resume does something. */
  get canResume(): boolean {
    return this._page !== null;
  }

  /** The Hub answers in place of the server. */
  get canLook(): boolean {
    return true;
  }

  /** The Hub's own form has the choices; there is no snapshot to start without. */
  readonly sizes = null;

  /** Ask how it stands. */
  async look(): Promise<IDoorView> {
    let response: Response;
    try {
      response = await this._environment.fetch(
        `${URLExt.join(this._environment.basePath, 'api/status')}?no_track_activity=1`,
        { cache: 'no-store', credentials: 'same-origin' }
      );
    } catch (error) {
      throw new DoorError('door_unreachable', String(error));
    }
    if (response.redirected) {
      return this._hubAnswers(new URL(response.url).pathname);
    }
    switch (response.status) {
      case 424:
      case 503:
      case 404:
        // The Hub says so of a server that does not run, and of one that is starting.
        return { state: 'paused', reason: null };
      case 502:
      case 504:
      case 599:
        throw new DoorError('door_unreachable');
      default:
        // Any other answer, also 403, is the server's own.
        return { state: 'running', reason: null };
    }
  }

  /**
   * Without a server its path leads to the Hub: `/user/ann/...` to `/hub/user/ann/...`, whatever is answered there
   * (424, or 403 to a page that may not read the Hub's cookie). Elsewhere is where one signs in.
   */
  private _hubAnswers(path: string): IDoorView {
    if (/\/hub\/user\//.test(path)) {
      return { state: 'paused', reason: null };
    }
    throw new DoorError('door_signed_out');
  }

  /** Open the Hub's page that starts the server. */
  resume(): Promise<ResumeAnswer> {
    if (this._page === null) {
      return Promise.reject(new DoorError('door_not_found'));
    }
    const next = new URL(this._environment.page);
    const query = URLExt.objectToQueryString({
      next: next.pathname + next.search
    });
    const url = this._page.includes('next=')
      ? this._page
      : this._page +
        (this._page.includes('?') ? query.replace('?', '&') : query);
    this._opened = this._environment.open(url, WINDOW);
    return this._opened
      ? Promise.resolve('elsewhere')
      : Promise.reject(new DoorError('popup_blocked'));
  }

  /** The window has done its work. */
  back(): void {
    if (this._opened && !this._opened.closed) {
      this._opened.close();
    }
    this._opened = null;
  }

  private readonly _environment: IDoorEnvironment;
  private readonly _page: string | null;
  private _opened: IOpenedWindow | null = null;
}
