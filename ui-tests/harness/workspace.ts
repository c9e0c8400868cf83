/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator, Route } from '@playwright/test';
import { expect } from '@playwright/test';

import type { LabServer } from './server';

const API = '/workspaces/api/v1/workspaces/ann/work';

/**
 * A real server that is told, in the browser only, that it runs in a Kubeflow workspace.
 *
 * The server really stops and starts; what the cluster would say about it (the part `workspace` of `GET state`, and the
 * answers of Kubeflow's backend on the same origin) is set by the test. For what the stand-in controller of
 * `tests/cluster` cannot be told to do: every state held still, to be looked at.
 */
export class ToldWorkspace {
  constructor(
    readonly page: IJupyterLabPageFixture,
    readonly server: LabServer
  ) {}

  /** What the answers of the server say of its workspace. */
  row: Record<string, unknown> = {
    namespace: 'ann',
    name: 'work',
    state: 'running',
    phase: null,
    since: new Date().toISOString(),
    observed_at: new Date().toISOString(),
    stateful: true,
    pod: 'ws-work-0',
    snapshot: null,
    waiting: null,
    reason: null,
    warnings: [],
    operation: null,
    outcome: null,
    last_resume: null,
    timeline: {},
    door: {
      kind: 'kubeflow',
      api: API,
      page: '/workspaces/',
      command: 'jupyter pause resume work --namespace ann'
    }
  };

  /** Why it cannot be paused. */
  blockedBy: { code: string; message: string; params: object }[] = [];

  /** What Kubeflow's list says of it; null: Kubeflow does not answer. */
  item: Record<string, unknown> | null = { paused: false, state: 'Running' };

  /** What the person asked Kubeflow for. */
  readonly asked: { body: string | null; authorization: string | undefined }[] =
    [];

  /** The pod sizes that Kubeflow offers. */
  sizes: object[] = [];

  /** What Kubeflow makes of it. */
  onAsked: () => void = () => undefined;

  /** The screen. */
  get screen(): Locator {
    return this.page.getByRole('region', { name: 'The paused workspace' });
  }

  /** Stand between page and network. */
  async listen(): Promise<void> {
    await this.page.route('**/jupyter-pause/api/state?*', route =>
      this._state(route)
    );
    await this.page.route('**/workspaces/api/v1/**', route =>
      this._backend(route)
    );
  }

  /** Change what is said of the workspace, and let the page ask. */
  async says(changes: Record<string, unknown>): Promise<void> {
    Object.assign(this.row, changes, { since: new Date().toISOString() });
    await this.look();
  }

  /** Let the page ask at once, as it does when a person comes back to the tab. */
  async look(): Promise<void> {
    await this.page.evaluate(() =>
      document.dispatchEvent(new Event('visibilitychange'))
    );
  }

  /** Wait until the screen shows a state. */
  async shows(state: string): Promise<void> {
    await expect(
      this.screen.locator(`[data-jp-pause-screen="${state}"]`)
    ).toBeVisible({ timeout: 120000 });
  }

  private async _state(route: Route): Promise<void> {
    let response;
    try {
      response = await route.fetch();
    } catch {
      await route.abort('connectionrefused').catch(() => undefined);
      return;
    }
    const body = (await response.json()) as Record<string, unknown>;
    await route.fulfill({
      response,
      json: {
        ...body,
        mode: 'cluster',
        scope: 'workspace',
        owner: 'kubeflow',
        can_pause: this.blockedBy.length === 0,
        blocked_by: this.blockedBy,
        workspace: this.row
      }
    });
  }

  private async _backend(route: Route): Promise<void> {
    const request = route.request();
    if (this.item === null) {
      await route.abort('connectionrefused');
      return;
    }
    if (request.url().endsWith('/podtemplate/options/listvalues')) {
      await route.fulfill({
        json: { data: { podConfig: { values: this.sizes } } }
      });
      return;
    }
    if (request.method() === 'POST') {
      this.asked.push({
        body: request.postData(),
        authorization: request.headers()['authorization']
      });
      this.onAsked();
      await route.fulfill({ json: { data: { paused: false } } });
      return;
    }
    await route.fulfill({
      json: {
        data: [
          { name: 'other' },
          { name: 'work', workspaceKind: { name: 'jupyter' }, ...this.item }
        ]
      }
    });
  }
}
