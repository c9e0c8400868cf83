/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import {
  clusterTest,
  openClusterLab,
  pauseWorkspace,
  PausedScreenUi
} from '../harness/cluster';
import { Notebook, openDocument, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { until } from '../harness/processes';
import {
  accessibilityFaults,
  expect,
  openDialogs,
  openLab,
  picture,
  test
} from '../harness/test';
import { Terminal } from '../harness/terminal';
import { ToldWorkspace } from '../harness/workspace';

const THEMES = {
  light: 'JupyterLab Light',
  dark: 'JupyterLab Dark',
  'high-contrast': 'JupyterLab Dark High Contrast'
};

for (const [name, theme] of Object.entries(THEMES)) {
  test(`every state of a paused workspace, with keyboard and axe, ${name}`, async ({
    page,
    server
  }) => {
    server.setting('@jupyterlab/apputils-extension/themes', { theme });
    writeNotebook(server, 'work.ipynb', ['value = 40 + 2', 'print(value)']);
    const workspace = new ToldWorkspace(page, server);
    await workspace.listen();
    await openLab(page, server);
    const notebook = new Notebook(page, 'work.ipynb');
    const ui = new PauseUi(page);
    await notebook.open();
    await notebook.run(0);

    const faults: string[] = [];
    const badges: string[] = [];
    const look = async (state: string, ...selectors: string[]) => {
      badges.push((await ui.badge.getAttribute('data-jp-pause-state')) ?? '');
      await picture(page, `workspace-${name}-${state}`);
      const found = await accessibilityFaults(
        page,
        '.jp-Pause-badge',
        ...selectors
      );
      faults.push(...found.map(fault => `${state}: ${fault}`));
    };

    // Before the click.
    await expect(ui.button).toHaveText('Pause this workspace');
    workspace.blockedBy = [
      {
        code: 'missing_right',
        message: '',
        params: { verb: 'patch', resource: 'workspaces.kubeflow.org' }
      }
    ];
    await workspace.look();
    await expect(ui.button).toHaveAttribute('aria-disabled', 'true');
    await ui.openPanel();
    await expect(ui.section('This workspace')).toContainText(
      'may not "patch" on "workspaces.kubeflow.org"'
    );
    await look('blocked', '#jp-pause-panel');
    workspace.blockedBy = [];
    await workspace.says({
      warnings: [
        { code: 'exec_processes', message: '', params: { names: ['htop'] } }
      ]
    });
    await expect(ui.button).not.toHaveAttribute('aria-disabled', 'true');
    await ui.button.click();
    await expect(ui.dialog).toContainText('kubectl exec');
    await look('question', '.jp-Dialog-content');
    await ui.dialog.getByRole('button', { name: 'Cancel' }).click();

    // Going away.
    await workspace.says({ state: 'pausing', phase: 'snapshotting' });
    await workspace.shows('leaving');
    await expect(workspace.screen).toContainText('Do not reload this page.');
    await look('leaving', '#jp-pause-screen');
    workspace.item = { paused: true, state: 'Terminating' };
    // A pod that was frozen hears nothing of its end.
    await server.kill();
    await workspace.look();
    await expect(page.locator('.jp-Notebook')).not.toBeFocused();

    // Away; the documents can be read, and the screen comes back, by keyboard alone.
    workspace.item = { paused: true, state: 'Paused' };
    await workspace.look();
    await workspace.shows('paused');
    await expect(
      workspace.screen.getByRole('heading', {
        name: 'This workspace is paused'
      })
    ).toBeVisible();
    await look('paused', '#jp-pause-screen');
    await workspace.screen.getByRole('heading').focus();
    await page.keyboard.press('Escape');
    await expect(workspace.screen.getByText('Show more')).toBeFocused();
    await expect(notebook.cell(0)).toBeVisible();
    await look('reading', '#jp-pause-screen');
    await page.keyboard.press('Enter');
    await expect(workspace.screen.getByRole('heading')).toBeFocused();
    await page.keyboard.press('Tab');
    await expect(
      workspace.screen.getByRole('button', { name: 'Resume' })
    ).toBeFocused();

    // Nobody answers.
    workspace.item = null;
    await workspace.look();
    await workspace.look();
    await workspace.shows('unknown');
    await expect(ui.badge).toContainText('last known');
    await look('unknown', '#jp-pause-screen');

    // Resume, with capacity withheld.
    workspace.item = { paused: true, state: 'Paused' };
    await workspace.look();
    await workspace.shows('paused');
    workspace.onAsked = () => {
      workspace.item = {
        paused: false,
        state: 'Error',
        stateMessage: 'Workspace Pod is unschedulable: 0/3 nodes are available'
      };
    };
    await workspace.screen
      .getByRole('button', { name: 'Resume' })
      .press('Enter');
    await workspace.shows('waiting');
    expect(workspace.asked).toEqual([
      { body: '{"data":{"paused":false}}', authorization: undefined }
    ]);
    await expect(workspace.screen).toContainText('0/3 nodes are available');
    await expect(ui.badge).toContainText('Waiting for capacity');
    await look('waiting', '#jp-pause-screen');
    workspace.sizes = [
      {
        id: 'l4',
        displayName: 'One L4',
        description: 'Small models',
        labels: [{ key: 'gpu', value: '24 GB' }]
      },
      { id: 'cpu', displayName: 'No GPU' },
      { id: 'old', displayName: 'Hidden', hidden: true }
    ];
    const cold = workspace.screen.getByRole('button', {
      name: 'Start without the memory'
    });
    await cold.click();
    await expect(ui.dialog.getByRole('radio')).toHaveCount(2);
    await expect(ui.dialog).toContainText('lost for good');
    await expect(ui.dialog).toContainText(
      'jupyter pause resume work --namespace ann --without-memory'
    );
    await look('cold-question', '.jp-Dialog-content');
    await ui.dialog.getByRole('radio', { name: 'No GPU' }).check();
    await ui.dialog.getByRole('button', { name: 'Keep the memory' }).click();
    await expect(ui.dialog).toBeHidden();
    expect(workspace.asked).toHaveLength(1);
    workspace.item = {
      paused: false,
      state: 'Error',
      stateMessage: 'Workspace Container is not running (CrashLoopBackOff)'
    };
    await workspace.look();
    await workspace.shows('failed');
    await look('failed', '#jp-pause-screen');
    await cold.click();
    await expect(ui.dialog).toContainText('starts and ends again and again');
    await look('cold-command', '.jp-Dialog-content');
    await ui.dialog.getByRole('button', { name: 'Close' }).click();
    workspace.item = { paused: false, state: 'Pending' };
    await workspace.look();
    await workspace.shows('starting');
    await look('starting', '#jp-pause-screen');

    // Back, first proving, then without its memory.
    await workspace.says({ state: 'resuming', phase: 'proving' });
    await server.start();
    await workspace.look();
    await workspace.shows('proving');
    await look('proving', '#jp-pause-screen');
    await workspace.says({
      state: 'ready',
      phase: null,
      warnings: [],
      last_resume: {
        at: new Date().toISOString(),
        outcome: 'fresh',
        via: null,
        snapshot: null,
        server_mark: false,
        confirmed: false,
        kernels: [
          {
            kernel: 'gone',
            path: 'work.ipynb',
            mark: false,
            compared: 0,
            mismatched: [],
            checkpoint: '0'.repeat(32)
          }
        ],
        paused_seconds: 60,
        clock_drift_seconds: null,
        renewed: [],
        warnings: [{ code: 'cold_start', message: '', params: {} }]
      }
    });
    await workspace.shows('fresh');
    await expect(
      workspace.screen.getByRole('button', { name: 'Load the checkpoints' })
    ).toBeVisible();
    await look('fresh', '#jp-pause-screen', '#jp-pause-panel');
    await workspace.screen
      .getByRole('button', { name: 'Go on without' })
      .click();
    await expect(workspace.screen).toBeHidden();
    await workspace.says({ state: 'running' });
    expect(badges).toEqual([
      'running',
      'running',
      'pausing',
      'paused',
      'paused',
      'unknown',
      'waiting',
      'waiting',
      'failed',
      'failed',
      'resuming',
      'resuming',
      'ready'
    ]);
    expect(faults).toEqual([]);

    // JupyterLab complained at no point, and saves again.
    expect(await openDialogs(page)).toEqual([]);
    await notebook.write(1, '# typed after it came back');
    await page.keyboard.press('Control+S');
    await until('it is saved', async () => {
      const response = await server.fetch('api/contents/work.ipynb');
      return (await response.text()).includes('typed after it came back');
    });
  });
}

const CELLS = [
  'import os, uuid, threading\nsecret = uuid.uuid4().hex\nlock = threading.Lock()\nprint(secret, os.getpid())',
  'print(secret, os.getpid())'
];

clusterTest(
  'from the click to restored, with capacity withheld: every state on the badge, the same memory in the same tab',
  async ({ page, cluster }) => {
    writeNotebook(cluster, 'work.ipynb', CELLS);
    await openClusterLab(page, cluster);
    const notebook = new Notebook(page, 'work.ipynb');
    const ui = new PauseUi(page);
    const screen = new PausedScreenUi(page);
    await notebook.open();
    const before = await notebook.run(0);
    const terminal = new Terminal(page);
    await terminal.open();
    await terminal.type('word=kept-in-the-shell');
    await openDocument(page, 'work.ipynb');
    await ui.shows('running');
    await screen.record();
    await pauseWorkspace(ui, screen);
    await until(
      'the pod is gone',
      async () => (await cluster.look()).pod === null
    );
    expect((await cluster.look()).process).toBeNull();
    await expect(screen.region).toContainText(
      'Memory of all processes, in a snapshot'
    );
    await expect(page.locator('.jp-toast-message')).toHaveCount(0);
    await picture(page, 'cluster-paused');

    await cluster.faults({ no_capacity: true });
    await screen.resume.click();
    await screen.shows('waiting');
    await expect(screen.region).toContainText('No machine has room');
    await picture(page, 'cluster-waiting');
    await cluster.faults({ no_capacity: false });

    await expect(screen.region).toBeHidden({ timeout: 240000 });
    await expect(
      page
        .locator('.jp-toast-message')
        .getByText(/Restored: this workspace is back/)
    ).toBeVisible();
    expect(await notebook.run(1)).toBe(before);
    await picture(page, 'cluster-restored');
    await ui.shows('running');
    // The restore may end between two looks of the tab.
    expect((await screen.recorded()).join(' ')).toMatch(
      /^running pausing paused resuming waiting (resuming )?ready running$/
    );
    await terminal.show();
    await terminal.type('echo $word > said.txt');
    await until('the shell has said it', () =>
      cluster.read('said.txt').includes('kept-in-the-shell')
    );
    expect(await openDialogs(page)).toEqual([]);
  }
);

clusterTest(
  'S04, S20: a restore that was none is called fresh in that word, and the checkpoints bring the variables back',
  async ({ page, cluster }) => {
    writeNotebook(cluster, 'work.ipynb', CELLS);
    await openClusterLab(page, cluster);
    const notebook = new Notebook(page, 'work.ipynb');
    const ui = new PauseUi(page);
    const screen = new PausedScreenUi(page);
    await notebook.open();
    const [secret, pid] = (await notebook.run(0)).split(' ');
    await pauseWorkspace(ui, screen);

    await cluster.faults({ restore_cold: true });
    await screen.resume.click();
    await screen.shows('fresh');
    await expect(screen.region).toContainText('new processes');
    await picture(page, 'cluster-fresh');
    expect(
      await accessibilityFaults(page, '#jp-pause-screen', '.jp-Pause-badge')
    ).toEqual([]);
    await screen.region
      .getByRole('button', { name: 'Load the checkpoints' })
      .click();
    await expect(screen.region).toBeHidden();
    await ui.shows('ready', 'running');
    await until('the kernel is back', async () => {
      const [after, other] = (await notebook.run(1)).split(' ');
      return after === secret && other !== pid;
    });
    expect(await openDialogs(page)).toEqual([]);
  }
);

clusterTest(
  'S14: no capacity, so it starts on another machine from the tab, fresh, and the checkpoints bring the variables back',
  async ({ page, cluster }) => {
    writeNotebook(cluster, 'work.ipynb', CELLS);
    await openClusterLab(page, cluster);
    const notebook = new Notebook(page, 'work.ipynb');
    const ui = new PauseUi(page);
    const screen = new PausedScreenUi(page);
    await notebook.open();
    const [secret, pid] = (await notebook.run(0)).split(' ');
    await pauseWorkspace(ui, screen);
    const { spec: before } = (await cluster.look()).workspace;

    await cluster.faults({ first_size_taken: true });
    await screen.resume.click();
    await screen.shows('waiting');
    await screen.record();
    const cold = screen.region.getByRole('button', {
      name: 'Start without the memory'
    });

    // The platform refuses: nothing is changed but that it is paused again, and the reason is said.
    await cluster.faults({ volume_not_mountable: true });
    await cold.click();
    await expect(ui.dialog.getByRole('radio')).toHaveCount(1);
    await picture(page, 'cluster-cold-question');
    await ui.dialog
      .getByRole('button', { name: 'Start on the chosen machine' })
      .click();
    await expect(ui.dialog.getByRole('alert')).toContainText('not mountable', {
      timeout: 60000
    });
    await picture(page, 'cluster-cold-refused');
    expect((await cluster.look()).workspace.spec).toEqual(before);

    // Once more, from the dialog that said so.
    await cluster.faults({ volume_not_mountable: false });
    await ui.dialog
      .getByRole('button', { name: 'Start on the chosen machine' })
      .click();
    await screen.shows('fresh');
    const { spec: after } = (await cluster.look()).workspace;
    expect(after.podTemplate.options.podConfig).toBe('other');
    expect(after).toMatchObject({
      paused: false,
      podTemplate: { volumes: before.podTemplate.volumes }
    });
    await picture(page, 'cluster-cold-fresh');
    await screen.region
      .getByRole('button', { name: 'Load the checkpoints' })
      .click();
    await expect(screen.region).toBeHidden();
    await ui.shows('ready', 'running');
    await until('the kernel is back', async () => {
      const [again, other] = (await notebook.run(1)).split(' ');
      return again === secret && other !== pid;
    });
    expect((await screen.recorded()).join(' ')).toMatch(/^waiting resuming /);
    expect(await openDialogs(page)).toEqual([]);
  }
);

clusterTest.describe('in several tabs', () => {
  clusterTest.use({
    clusterOptions: ['--option=--JupyterNotebookApp.expose_app_in_browser=True']
  });

  clusterTest(
    'Notebook 7 pauses the workspace, every tab shows it, two resumes are one, and a tab that was reloaded comes back too',
    async ({ page, cluster }) => {
      writeNotebook(cluster, 'work.ipynb', CELLS);
      writeNotebook(cluster, 'seven.ipynb', CELLS);
      await openClusterLab(page, cluster);
      const notebook = new Notebook(page, 'work.ipynb');
      await notebook.open();
      const before = await notebook.run(0);
      const lab = new PausedScreenUi(page);

      const tab = async (path: string) => {
        const opened = await page.context().newPage();
        await opened.goto(`${cluster.url}/${path}`);
        return opened as unknown as typeof page;
      };
      const second = await tab('notebooks/seven.ipynb');
      const seven = new Notebook(second, 'seven.ipynb');
      const sevenScreen = new PausedScreenUi(second);
      await expect(seven.cell(0)).toBeVisible();
      await seven.idle();
      const sevenBefore = await seven.run(0);
      const reloaded = await tab('lab/tree/work.ipynb?reset');
      await expect(reloaded.locator('.jp-Notebook .jp-Cell')).toHaveCount(2);

      await pauseWorkspace(new PauseUi(second), sevenScreen);
      await picture(second, 'notebook7-workspace-paused');
      expect(
        await accessibilityFaults(second, '#jp-pause-screen', '.jp-Pause-badge')
      ).toEqual([]);
      await lab.shows('paused');

      // A reload finds nobody; the page says so before, and what it recommends works.
      const answer = await reloaded.reload();
      expect(answer?.status()).toBe(503);

      await Promise.all([lab.resume.click(), sevenScreen.resume.click()]);
      for (const screen of [lab, sevenScreen]) {
        await expect(screen.region).toBeHidden({ timeout: 240000 });
      }
      expect((await cluster.look()).workspace.spec.paused).toBe(false);
      expect(await notebook.run(1)).toBe(before);
      expect(await seven.run(1)).toBe(sevenBefore);

      await reloaded.goto(`${cluster.url}/lab/tree/work.ipynb?reset`);
      await expect(reloaded.locator('.jp-Notebook .jp-Cell')).toHaveCount(2);
      await expect(new PausedScreenUi(reloaded).region).toBeHidden();
      const again = new Notebook(reloaded, 'work.ipynb');
      await again.idle();
      expect(await again.run(1)).toBe(before);
      for (const each of [page, second, reloaded]) {
        expect(await openDialogs(each)).toEqual([]);
      }
    }
  );
});
