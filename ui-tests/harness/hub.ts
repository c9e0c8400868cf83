/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

import { labIsThere } from './cluster';
import { isAlive, until } from './processes';
import { test as base } from './test';

const PYTHON = process.env.JUPYTER_PAUSE_TEST_PYTHON ?? 'python3';
const PROXY = resolve(
  __dirname,
  '..',
  'node_modules/.bin/configurable-http-proxy'
);

interface ITold {
  origin: string;
  api: string;
  token: string;
  homes: string;
}

/**
 * A real JupyterHub behind its real proxy, with a server of its own for each name that signs in.
 */
export class Hub {
  private constructor(
    private readonly _process: ChildProcess,
    private readonly _work: string,
    private readonly _told: ITold
  ) {}

  /** Start it and wait until it answers. */
  static async start(): Promise<Hub> {
    const work = mkdtempSync(join(tmpdir(), 'jupyter-pause-hub-'));
    const helpers = execFileSync(PYTHON, [
      '-c',
      'import jupyterlab.galata, os; print(os.path.dirname(jupyterlab.galata.__file__))'
    ])
      .toString()
      .trim();
    const started = spawn(
      PYTHON,
      [
        '-m',
        'tests.hub',
        `--work=${work}`,
        `--proxy=${PROXY}`,
        '--option=--LabApp.expose_app_in_browser=True',
        `--option=--LabServerApp.extra_labextensions_path=${helpers}`
      ],
      {
        cwd: resolve(__dirname, '..', '..'),
        stdio: ['pipe', 'pipe', 'pipe']
      }
    );
    let errors = '';
    started.stderr.on('data', chunk => {
      errors += String(chunk);
    });
    const told = await new Promise<ITold>((done, failed) => {
      createInterface({ input: started.stdout }).once('line', line =>
        done(JSON.parse(line) as ITold)
      );
      started.once('exit', () =>
        failed(new Error(`The Hub ended while it started:\n${errors}`))
      );
    });
    return new Hub(started, work, told);
  }

  /** Its address, without a slash at the end. */
  get origin(): string {
    return this._told.origin;
  }

  /** What the Hub and its servers logged. */
  get log(): string {
    return readFileSync(join(this._work, 'hub', 'hub.log'), 'utf8');
  }

  /** Where a person's notebooks lie. */
  home(user: string): string {
    return join(this._told.homes, user);
  }

  /** Whether a person's server runs, is on its way up or down, or does not run; from the Hub itself. */
  async server(user: string): Promise<'ready' | 'pending' | 'stopped'> {
    const response = await fetch(`${this._told.api}/users/${user}`, {
      headers: { Authorization: `token ${this._told.token}` }
    });
    const { servers } = (await response.json()) as {
      servers: Record<string, { ready: boolean; pending: string | null }>;
    };
    const server = servers[''];
    return !server
      ? 'stopped'
      : server.ready && !server.pending
        ? 'ready'
        : 'pending';
  }

  /** End it and everything that it started. */
  async stop(): Promise<void> {
    this._process.stdin?.end();
    const { pid } = this._process;
    if (pid) {
      await until('the Hub has ended', () => !isAlive(pid));
    }
    rmSync(this._work, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * A test with a Hub of its own.
 */
export const hubTest = base.extend<{ hub: Hub }>({
  hub: async ({}, use, testInfo) => {
    const hub = await Hub.start();
    try {
      await use(hub);
    } finally {
      if (testInfo.status !== testInfo.expectedStatus) {
        console.log(hub.log);
      }
      await hub.stop();
    }
  },
  baseURL: async ({ hub }, use) => use(hub.origin)
});

/**
 * Sign in at the Hub's own form and follow it to JupyterLab; the Hub starts the server.
 */
export async function signIn(
  page: IJupyterLabPageFixture,
  hub: Hub,
  user: string
): Promise<void> {
  const plain = (page as unknown as { page: Page }).page;
  const spawn = `/hub/spawn/${user}?next=/user/${user}/lab`;
  await plain.goto(`${hub.origin}/hub/login?next=${encodeURIComponent(spawn)}`);
  await plain.getByLabel('Username').fill(user);
  await plain.getByLabel('Password').fill('anything');
  await plain.getByRole('button', { name: 'Sign in' }).click();
  await plain.waitForURL(`**/user/${user}/lab**`);
  await labIsThere(page);
}
