/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import type { LabServer } from '../harness/server';
import {
  accessibilityFaults,
  expect,
  openDialogs,
  openLab,
  picture,
  test
} from '../harness/test';

const CELLS = ['value = "kept"', 'print(value)'];

test('File > Shut Down keeps what is paused and ends the rest', async ({
  page,
  server
}) => {
  const ui = new PauseUi(page);
  const paused = await openAndRun(page, server, 'paused.ipynb');
  const kernel = await paused.kernelId();
  await ui.pause();
  await openAndRun(page, server, 'running.ipynb');

  await page.menu.clickMenuItem('File>Shut Down');
  await expect(ui.dialog).toContainText(
    /Stays paused for the next start:\s*paused\.ipynb/
  );
  await expect(ui.dialog).toContainText(/Ends; .*\s*running\.ipynb/);
  await picture(page, 'shut-down-question');
  expect(await accessibilityFaults(page, '.jp-Dialog-content')).toEqual([]);
  await ui.dialog.getByRole('button', { name: 'Shut Down' }).click();
  await expect(ui.dialog).toContainText('Server stopped');
  await expect(ui.dialog).toContainText('paused.ipynb');
  await expect(ui.dialog).not.toContainText('running.ipynb');
  await server.ended();
  await picture(page, 'shut-down-stopped');

  await server.start();
  const { kernels } = await server.get<{ kernels: { path: string }[] }>(
    'state'
  );
  expect(kernels.map(row => row.path)).toEqual(['paused.ipynb']);
  await openLab(page, server);
  await openAndResume(page, 'paused.ipynb', kernel);
});

test.describe('with on_exit = checkpoint', () => {
  test.use({ serverConfig: { PauseApp: { on_exit: 'checkpoint' } } });

  test('File > Shut Down saves what runs, also when it is called by its name', async ({
    page,
    server
  }) => {
    const ui = new PauseUi(page);
    const notebook = await openAndRun(page, server, 'running.ipynb');
    const kernel = await notebook.kernelId();
    await page.evaluate(() => {
      void window.jupyterapp.commands.execute('filemenu:shutdown');
    });
    await expect(ui.dialog).toContainText(
      /Is saved now, and paused at the next start:\s*running\.ipynb/
    );
    await ui.dialog.getByRole('button', { name: 'Shut Down' }).click();
    await expect(ui.dialog).toContainText('Server stopped');
    await server.ended();
    await server.start();
    await openLab(page, server);
    await openAndResume(page, 'running.ipynb', kernel);
  });
});

test.describe('with on_exit = ask', () => {
  test.use({ serverConfig: { PauseApp: { on_exit: 'ask' } } });

  test('File > Shut Down lets the person choose', async ({ page, server }) => {
    const ui = new PauseUi(page);
    await openAndRun(page, server, 'chosen.ipynb');
    await page.menu.clickMenuItem('File>Shut Down');
    await expect(ui.dialog).toContainText(
      /can be saved for the next start:\s*chosen\.ipynb/
    );
    await picture(page, 'shut-down-choice');
    await ui.dialog.getByRole('button', { name: 'Cancel' }).click();
    expect((await server.row('chosen.ipynb'))?.state).toBe('running');

    await page.menu.clickMenuItem('File>Shut Down');
    await ui.dialog
      .getByRole('button', { name: 'Discard and Shut Down' })
      .click();
    await expect(ui.dialog).toContainText('Server stopped');
    await server.ended();
    await server.start();
    expect(await server.row('chosen.ipynb')).toBeNull();

    await openLab(page, server);
    const notebook = await openAndRun(page, server, 'chosen.ipynb');
    const kernel = await notebook.kernelId();
    await page.menu.clickMenuItem('File>Shut Down');
    await ui.dialog.getByRole('button', { name: 'Save and Shut Down' }).click();
    await expect(ui.dialog).toContainText('Server stopped');
    await server.ended();
    await server.start();
    await openLab(page, server);
    await openAndResume(page, 'chosen.ipynb', kernel);
  });
});

test('with nothing to keep JupyterLab asks as ever', async ({
  page,
  server
}) => {
  await openAndRun(page, server, 'running.ipynb');
  await page.menu.clickMenuItem('File>Shut Down');
  await expect.poll(() => openDialogs(page)).toEqual(['Shutdown confirmation']);
  await new PauseUi(page).dialog
    .getByRole('button', { name: 'Shut Down' })
    .click();
  await server.ended();
  await server.start();
  expect(await server.row('running.ipynb')).toBeNull();
});

test.describe('Notebook 7', () => {
  test.use({
    waitForApplication: async ({}, use) =>
      use(async (page: Page) => {
        await page.locator('#main-panel').waitFor();
      })
  });

  test('File > Shut Down keeps what is paused', async ({ page, server }) => {
    writeNotebook(server, 'seven.ipynb', CELLS);
    const url = `${server.url}/notebooks/seven.ipynb?token=${server.token}`;
    await page.goto(url);
    const notebook = new Notebook(page, 'seven.ipynb');
    const ui = new PauseUi(page);
    await notebook.idle();
    await notebook.run(0);
    const kernel = await notebook.kernelId();
    await ui.pause();
    await page.menu.clickMenuItem('File>Shut Down');
    await expect(ui.dialog).toContainText(
      /Stays paused for the next start:\s*seven\.ipynb/
    );
    await ui.dialog.getByRole('button', { name: 'Shut Down' }).click();
    await expect(ui.dialog).toContainText('Server stopped');
    await server.ended();
    await server.start();
    expect((await server.row('seven.ipynb'))?.state).toBe('paused');
    await page.goto(url);
    await expect(ui.notice).toContainText('paused');
    expect(await notebook.kernelId()).toBe(kernel);
    await ui.resume();
    expect(await notebook.run(1)).toBe('kept');
  });
});

async function openAndRun(
  page: IJupyterLabPageFixture,
  server: LabServer,
  name: string
): Promise<Notebook> {
  writeNotebook(server, name, CELLS);
  if (page.url() === 'about:blank') {
    await openLab(page, server);
  }
  const notebook = new Notebook(page, name);
  await notebook.open();
  await notebook.run(0);
  return notebook;
}

/** After the next start: the same kernel, paused, and with its values once it is resumed. */
async function openAndResume(
  page: IJupyterLabPageFixture,
  name: string,
  kernel: string
): Promise<void> {
  const ui = new PauseUi(page);
  const notebook = new Notebook(page, name);
  await page.evaluate(async path => {
    await window.jupyterapp.commands.execute('docmanager:open', { path });
  }, name);
  await ui.shows('paused');
  expect(await notebook.kernelId()).toBe(kernel);
  await ui.resume();
  expect(await notebook.run(1)).toBe('kept');
}
