/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { isAlive, processesNaming, until } from './processes';

/**
 * Rows of `GET state`, as far as tests look at them.
 */
export interface KernelRow {
  id: string;
  path: string | null;
  state: string;
  checkpoint: { id: string; bytes: number } | null;
  outcome: string | null;
  last_resume: {
    outcome: string;
    via: string | null;
    losses: { path: string }[];
  } | null;
}

/**
 * A JupyterLab server of a test's own: own port, own data, runtime, config, settings and notebook folders.
 *
 * It can be ended in the hardest way and started again over the same folders, as after a crash or a reboot.
 */
export class LabServer {
  private constructor(
    readonly work: string,
    readonly port: number,
    readonly config: LabServer.Config,
    private readonly _python: string
  ) {
    for (const name of [
      'notebooks',
      'data',
      'runtime',
      'config',
      'settings',
      'workspaces',
      'ipython'
    ]) {
      mkdirSync(join(work, name), { mode: 0o700 });
    }
    this.setting('@jupyterlab/apputils-extension/notification', {
      fetchNews: 'false',
      checkForUpdates: false
    });
    // Every cell is in the page, seen or not.
    this.setting('@jupyterlab/notebook-extension/tracker', {
      windowingMode: 'none'
    });
  }

  /**
   * Make folders for a server; it is not started yet.
   *
   * @param config - traits to set, by class.
   * @param python - the interpreter of the environment that the server runs in.
   */
  static async create(
    config: LabServer.Config = {},
    python = process.env.JUPYTER_PAUSE_TEST_PYTHON ?? 'python3'
  ): Promise<LabServer> {
    const work = mkdtempSync(join(tmpdir(), 'jupyter-pause-ui-'));
    return new LabServer(work, await freePort(), config, python);
  }

  /** The server's address, with a base URL that needs quoting and without a slash at the end. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/user/ann%40example`;
  }

  /** The server process. */
  get pid(): number {
    if (!this._process?.pid) {
      throw new Error('The server was not started');
    }
    return this._process.pid;
  }

  /** What the server logged so far, over all its starts. */
  get log(): string {
    const path = join(this.work, 'server.log');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** Where the notebooks lie. */
  get notebooks(): string {
    return join(this.work, 'notebooks');
  }

  /** A person's setting, written before JupyterLab starts. */
  setting(plugin: string, value: Record<string, unknown>): void {
    const [scope, name, file] = plugin.startsWith('@')
      ? plugin.split('/')
      : ['', ...plugin.split(':')];
    const folder = join(this.work, 'settings', scope, name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, `${file}.jupyterlab-settings`),
      JSON.stringify(value)
    );
  }

  /** A kernel specification of this server's own. */
  kernelspec(name: string, specification: Record<string, unknown>): void {
    const folder = join(this.work, 'data', 'kernels', name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'kernel.json'), JSON.stringify(specification));
  }

  /** Start the server and wait until it answers. */
  async start(): Promise<void> {
    const output = openSync(join(this.work, 'server.log'), 'a');
    const configuration = resolve(
      __dirname,
      '..',
      'jupyter_server_test_config.py'
    );
    const started = spawn(
      this._python,
      ['-m', 'jupyterlab', `--config=${configuration}`],
      {
        cwd: this.work,
        env: this._environment(),
        stdio: ['ignore', output, output],
        detached: true
      }
    );
    closeSync(output);
    this._process = started;
    await until('the server answers', async () => {
      if (started.exitCode !== null || started.signalCode !== null) {
        throw new Error(`The server ended while it started:\n${this.log}`);
      }
      return this._answers();
    });
  }

  /** End the server with SIGKILL: it can do nothing about it. Kernels are not touched. */
  async kill(): Promise<void> {
    await this._end('SIGKILL');
  }

  /** Stop the server as a service manager does. */
  async stop(): Promise<void> {
    await this._end('SIGTERM');
  }

  /** Wait until the server has ended by itself, with code 0. */
  async ended(): Promise<void> {
    const started = this._process;
    await until(
      'the server has ended',
      () => started !== null && started.exitCode !== null
    );
    if (started?.exitCode !== 0) {
      throw new Error(`The server did not end in peace:\n${this.log}`);
    }
  }

  /**
   * A REST call with the token.
   *
   * @param path - below the base URL, e.g. `api/kernels`.
   */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}/${path}`, {
      ...init,
      headers: {
        Authorization: `token ${this.token}`,
        ...(init.body ? { 'Content-Type': 'application/json' } : {})
      }
    });
  }

  /** A REST call of ours; its JSON. */
  async get<T>(path: string): Promise<T> {
    const response = await this.fetch(`jupyter-pause/api/${path}`);
    if (!response.ok) {
      throw new Error(`${path}: ${response.status} ${await response.text()}`);
    }
    return (await response.json()) as T;
  }

  /** The row of the kernel that belongs to a notebook, or null. */
  async row(path: string): Promise<KernelRow | null> {
    const { kernels } = await this.get<{ kernels: KernelRow[] }>('state');
    return kernels.find(row => row.path === path) ?? null;
  }

  /** Wait until the kernel of a notebook is in one of these states. */
  async waitFor(path: string, ...states: string[]): Promise<KernelRow> {
    let row: KernelRow | null = null;
    await until(`${path} is ${states.join(' or ')}`, async () => {
      row = await this.row(path);
      return row !== null && states.includes(row.state);
    });
    return row!;
  }

  /** End everything that belongs to this server and remove its folders. */
  async dispose(): Promise<void> {
    if (this._process?.pid && isAlive(this._process.pid)) {
      await this._end('SIGTERM', 20000).catch(() => this._end('SIGKILL'));
    }
    for (const pid of processesNaming(this.work)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
    rmSync(this.work, { recursive: true, force: true, maxRetries: 5 });
  }

  private async _end(signal: NodeJS.Signals, limit?: number): Promise<void> {
    const pid = this.pid;
    process.kill(pid, signal);
    await until(`the server ends on ${signal}`, () => !isAlive(pid), limit);
  }

  private async _answers(): Promise<boolean> {
    try {
      return (await this.fetch('api/status')).ok;
    } catch {
      return false;
    }
  }

  private _environment(): NodeJS.ProcessEnv {
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter(
        ([name]) => !name.startsWith('JUPYTER_')
      )
    );
    return {
      ...inherited,
      JUPYTER_DATA_DIR: join(this.work, 'data'),
      JUPYTER_RUNTIME_DIR: join(this.work, 'runtime'),
      JUPYTER_CONFIG_DIR: join(this.work, 'config'),
      IPYTHONDIR: join(this.work, 'ipython'),
      JUPYTER_PAUSE_UI_WORK: this.work,
      JUPYTER_PAUSE_UI_PORT: String(this.port),
      JUPYTER_PAUSE_UI_BASE_URL: '/user/ann%40example/',
      JUPYTER_PAUSE_UI_TOKEN: this.token,
      JUPYTER_PAUSE_UI_CONFIG: JSON.stringify(this.config)
    };
  }

  readonly token = randomUUID();
  private _process: ChildProcess | null = null;
}

/**
 * A namespace for `LabServer` statics.
 */
export namespace LabServer {
  /** Traits by class, e.g. `{PauseApp: {verify: 'before'}}`. */
  export type Config = Record<string, Record<string, unknown>>;
}

async function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const listener = createServer();
    listener.once('error', failed);
    listener.listen(0, '127.0.0.1', () => {
      const address = listener.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      listener.close(() => done(port));
    });
  });
}
