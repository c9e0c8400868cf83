/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import { expect } from '@playwright/test';
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

import type { PauseUi } from './pause';
import { isAlive, until } from './processes';
import { test as base } from './test';

const PYTHON = process.env.JUPYTER_PAUSE_TEST_PYTHON ?? 'python3';

interface ITold {
  origin: string;
  url: string;
  home: string;
  control: string;
}

interface ILook {
  workspace: {
    spec: {
      paused?: boolean;
      podTemplate: { options: { podConfig: string }; volumes: object };
    };
    status?: { state?: string };
    metadata: { annotations?: Record<string, string> };
  };
  pod: { metadata: { uid: string } } | null;
  process: number | null;
}

/**
 * A cluster with one workspace that runs JupyterLab: a real API server, the stand-in controller of `tests/cluster`, a
 * real process tree that is really frozen to disk and really restored. A browser sees it as in a cluster: through the
 * gateway, on one origin with Kubeflow's backend.
 */
export class Cluster {
  private constructor(
    private readonly _process: ChildProcess,
    private readonly _work: string,
    private readonly _told: ITold
  ) {}

  /** Start everything and wait until the workspace runs. */
  static async start(options: string[] = []): Promise<Cluster> {
    const work = mkdtempSync(join(tmpdir(), 'jupyter-pause-cluster-'));
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
        'tests.cluster.standin',
        `--work=${work}`,
        '--option=--LabApp.expose_app_in_browser=True',
        `--option=--LabServerApp.extra_labextensions_path=${helpers}`,
        ...options
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
        failed(new Error(`The stand-in ended while it started:\n${errors}`))
      );
    });
    const cluster = new Cluster(started, work, told);
    cluster.setting('apputils-extension', 'notification', {
      fetchNews: 'false',
      checkForUpdates: false
    });
    cluster.setting('notebook-extension', 'tracker', { windowingMode: 'none' });
    return cluster;
  }

  /** Where JupyterLab is, without a slash at the end. */
  get url(): string {
    return this._told.url.replace(/\/$/, '');
  }

  /** Where the notebooks lie: the home on its volume. */
  get notebooks(): string {
    return this._told.home;
  }

  /** What the stand-in logged. */
  get log(): string {
    return readFileSync(join(this._work, 'standin.log'), 'utf8');
  }

  /** A file in the home; empty when it is not there. */
  read(name: string): string {
    const path = join(this._told.home, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** A person's setting, in the home on its volume. */
  setting(name: string, file: string, value: Record<string, unknown>): void {
    const folder = join(
      this._told.home,
      '.jupyter/lab/user-settings/@jupyterlab',
      name
    );
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, `${file}.jupyterlab-settings`),
      JSON.stringify(value)
    );
  }

  /** Switch faults of the cluster. */
  async faults(faults: Record<string, boolean>): Promise<void> {
    const answer = await fetch(this._told.control, {
      method: 'POST',
      body: JSON.stringify(faults)
    });
    if (!answer.ok) {
      throw new Error(await answer.text());
    }
  }

  /** What the cluster has now, past the product. */
  async look(): Promise<ILook> {
    return (await (await fetch(this._told.control)).json()) as ILook;
  }

  /** End everything that was started. */
  async stop(): Promise<void> {
    this._process.stdin?.end();
    const { pid } = this._process;
    if (pid) {
      await until('the stand-in has ended', () => !isAlive(pid));
    }
    rmSync(this._work, { recursive: true, force: true });
  }
}

interface IFixtures {
  /** Options of the stand-in; set with `test.use`. */
  clusterOptions: string[];

  /** A cluster of the test's own. */
  cluster: Cluster;
}

/**
 * A test with a cluster of its own.
 */
export const clusterTest = base.extend<IFixtures>({
  clusterOptions: [[], { option: true }],
  cluster: async ({ clusterOptions }, use, testInfo) => {
    const cluster = await Cluster.start(clusterOptions);
    try {
      await use(cluster);
    } finally {
      if (testInfo.status !== testInfo.expectedStatus) {
        writeFileSync(testInfo.outputPath('standin.log'), cluster.log);
      }
      await cluster.stop();
    }
  },
  baseURL: async ({ cluster }, use) => use(cluster.url)
});

/**
 * Open JupyterLab in the cluster, however long it takes: Galata gives the application 15 s, a busy machine does not.
 */
export async function openClusterLab(
  page: IJupyterLabPageFixture,
  cluster: Pick<Cluster, 'url'>
): Promise<void> {
  const plain = page as unknown as { page: Page };
  await plain.page.goto(`${cluster.url}/lab`, {
    waitUntil: 'domcontentloaded'
  });
  await labIsThere(page);
}

/**
 * Wait until JupyterLab, or Notebook, has opened in a page that is on its way there.
 */
export async function labIsThere(page: IJupyterLabPageFixture): Promise<void> {
  const plain = page as unknown as { page: Page };
  await plain.page.waitForFunction(
    () => window.jupyterapp?.commands.hasCommand('docmanager:open') ?? false,
    undefined,
    { timeout: 180000 }
  );
  await page.evaluate(async () => {
    await window.jupyterapp.restored;
  });
  await page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
}

/**
 * The screen over the documents, as a person sees it.
 */
export class PausedScreenUi {
  constructor(readonly page: IJupyterLabPageFixture) {}

  /** The screen. */
  get region(): Locator {
    return this.page.getByRole('region', { name: 'The paused workspace' });
  }

  /** Its button Resume. */
  get resume(): Locator {
    return this.region.getByRole('button', { name: 'Resume', exact: true });
  }

  /** Wait until it shows a state. */
  async shows(state: string): Promise<void> {
    await expect(
      this.region.locator(`[data-jp-pause-screen="${state}"]`)
    ).toBeVisible({ timeout: 180000 });
  }

  /** Write down every state that the badge shows from now on, in the page. */
  async record(): Promise<void> {
    await this.page.evaluate(() => {
      const seen: string[] = [];
      (window as unknown as { badgeStates: string[] }).badgeStates = seen;
      const note = () => {
        const state = document
          .querySelector('.jp-Pause-badgeButton')
          ?.getAttribute('data-jp-pause-state');
        if (state && seen[seen.length - 1] !== state) {
          seen.push(state);
        }
      };
      note();
      new MutationObserver(note).observe(document.body, {
        subtree: true,
        attributes: true,
        attributeFilter: ['data-jp-pause-state']
      });
    });
  }

  /** The states that the badge has shown, in their order. */
  async recorded(): Promise<string[]> {
    return this.page.evaluate(
      () => (window as unknown as { badgeStates: string[] }).badgeStates
    );
  }
}

/**
 * Click the button, accept what is asked, and wait for the paused screen.
 */
export async function pauseWorkspace(
  ui: PauseUi,
  screen: PausedScreenUi
): Promise<void> {
  await expect(ui.button).toHaveText('Pause this workspace');
  await ui.button.click();
  const asked = ui.dialog.getByRole('button', { name: 'Pause this workspace' });
  await expect(asked.or(screen.region)).toBeVisible();
  if (await asked.isVisible()) {
    await asked.click();
  }
  await screen.shows('leaving');
  await screen.shows('paused');
}
