/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Page } from '@playwright/test';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { isAlive, until } from '../harness/processes';
import { accessibilityFaults, expect, picture, test } from '../harness/test';

test.use({
  waitForApplication: async ({}, use) =>
    use(async (page: Page) => {
      await page.locator('#main-panel').waitFor();
    })
});

test('Notebook 7: button, badge in the top bar, pause and resume', async ({
  page,
  server
}) => {
  writeNotebook(server, 'seven.ipynb', [
    'import os\nvalue = list(range(7))\nprint(os.getpid())',
    'print(sum(value))'
  ]);
  await page.goto(`${server.url}/notebooks/seven.ipynb?token=${server.token}`);
  const notebook = new Notebook(page, 'seven.ipynb');
  const ui = new PauseUi(page);
  await expect(notebook.cell(0)).toBeVisible();
  await notebook.idle();
  const pid = Number(await notebook.run(0));
  await expect(page.locator('#top-panel .jp-Pause-badgeButton')).toBeVisible();
  await ui.pause();
  await until('the process is gone', () => !isAlive(pid));
  await expect(ui.notice).toContainText('The kernel is paused since');
  await ui.openPanel();
  await picture(page, 'notebook7-paused');
  expect(
    await accessibilityFaults(page, '.jp-Pause-badge', '#jp-pause-panel')
  ).toEqual([]);
  await ui.resume();
  expect(await notebook.run(1)).toBe('21');
  await picture(page, 'notebook7-ready');
});
