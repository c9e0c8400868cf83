/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import {
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { isAlive } from '../harness/processes';
import {
  accessibilityFaults,
  expect,
  openDialogs,
  openLab,
  picture,
  test
} from '../harness/test';

test('a pause that waits for a running cell shows it, and can be cancelled', async ({
  page,
  server
}) => {
  const go = join(server.notebooks, 'go');
  writeNotebook(server, 'busy.ipynb', [
    'import os, time\nvalue = 41\nprint(os.getpid())',
    'while not os.path.exists("go"):\n    time.sleep(0.1)\nvalue += 1',
    'print(value)'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'busy.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  const pid = Number(await notebook.run(0));
  await notebook.press(1);
  await expect(notebook.prompt(1)).toHaveText('[*]:');

  await ui.button.click();
  await ui.shows('pausing');
  const toast = page
    .locator('.Toastify__toast, .jp-toast')
    .filter({ hasText: 'busy.ipynb' });
  await expect(toast).toContainText('Pausing busy.ipynb');
  await expect(ui.notice).toContainText('Pausing');
  await picture(page, 'pausing');
  await toast.getByRole('button', { name: 'Cancel' }).click();
  await ui.shows('running');
  await expect(toast).toContainText('was cancelled; it goes on running');

  writeFileSync(go, '');
  await notebook.ran(1);
  expect(await notebook.run(2)).toBe('42');
  expect(isAlive(pid)).toBe(true);
  expect(await server.get<{ checkpoints: object[] }>('checkpoints')).toEqual({
    checkpoints: []
  });
});

test('a checkpoint folder that cannot be written: one sentence, and the kernel goes on', async ({
  page,
  server
}) => {
  writeNotebook(server, 'disk.ipynb', [
    'import os\nvalue = 42\nprint(os.getpid())',
    'print(value)'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'disk.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  const pid = Number(await notebook.run(0));
  // Root may write everywhere; a file in the place of the folder stops root too.
  const staging = join(server.work, 'data', 'jupyter_pause', 'staging');
  rmSync(staging, { recursive: true, force: true });
  writeFileSync(staging, '');
  await ui.button.click();
  await expect(
    page
      .locator('.Toastify__toast, .jp-toast')
      .filter({ hasText: 'The checkpoint folder cannot be written' })
  ).toBeVisible();
  await picture(page, 'folder-cannot-be-written');
  await ui.shows('running');
  expect(isAlive(pid)).toBe(true);
  expect(await notebook.run(1)).toBe('42');
  expect(await openDialogs(page)).toEqual([]);
});

test('a failure that comes before JupyterLab can draw is on the screen once it can', async ({
  page,
  server
}) => {
  writeNotebook(server, 'early.ipynb', ['print(41 + 1)']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'early.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  expect(await notebook.run(0)).toBe('42');
  const staging = join(server.work, 'data', 'jupyter_pause', 'staging');
  rmSync(staging, { recursive: true, force: true });
  writeFileSync(staging, '');
  // What draws notifications is loaded with the first one; a slow network takes its time.
  let letThrough = () => {};
  const held = new Promise<void>(resolve => (letThrough = resolve));
  let loads = 0;
  await page.route(/static\/.*\.js/, async route => {
    loads += 1;
    await held;
    await route.continue();
  });
  await ui.button.click();
  await expect
    .poll(async () => (await page.notifications).map(one => one.type))
    .toEqual(['error']);
  expect(loads).toBeGreaterThan(0);
  letThrough();
  const toast = page.locator('.Toastify__toast');
  await expect(toast).toContainText('The checkpoint folder cannot be written');
  await expect(toast).toHaveCount(1);
  await ui.shows('running');
});

test('a damaged checkpoint is refused in one sentence and stays; once mended it resumes', async ({
  page,
  server
}) => {
  writeNotebook(server, 'damage.ipynb', ['value = 42', 'print(value)']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'damage.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  await ui.openPanel();
  await ui.pause();
  const row = await server.row('damage.ipynb');
  const frames = join(
    server.work,
    'data',
    'jupyter_pause',
    'checkpoints',
    row?.checkpoint?.id ?? '',
    'frames.bin'
  );
  const good = readFileSync(frames);
  const bad = Buffer.from(good);
  bad[bad.length >> 1] ^= 1;
  replace(frames, bad);

  await ui.button.click();
  const toast = page.locator('.Toastify__toast, .jp-toast').filter({
    hasText: 'The checkpoint is damaged, so nothing of it was loaded'
  });
  await expect(toast).toBeVisible();
  await ui.shows('paused', 'failed');
  await picture(page, 'checkpoint-is-damaged');
  expect(
    await accessibilityFaults(page, '.jp-Pause-badge', '#jp-pause-panel')
  ).toEqual([]);
  expect(existsSync(frames)).toBe(true);

  replace(frames, good);
  await expect(ui.button).toHaveText('Resume');
  await ui.resume();
  expect(await notebook.run(1)).toBe('42');
});

function replace(path: string, content: Buffer): void {
  writeFileSync(`${path}.new`, content, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
