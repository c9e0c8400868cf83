/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Notebook, openDocument, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { until } from '../harness/processes';
import type { LabServer } from '../harness/server';
import { expect, openDialogs, openLab, test } from '../harness/test';

const AUTOSAVE = { autosave: true, autosaveInterval: 10 };

test('S30: after a long break autosave goes on, and what was typed reaches the disk', async ({
  page,
  server
}) => {
  server.setting('@jupyterlab/docmanager-extension/plugin', AUTOSAVE);
  writeNotebook(server, 'save.ipynb', ['value = 1', '# free']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'save.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  await ui.pause();
  await notebook.write(1, '# typed while it was paused');
  await until('it is saved', () => onDisk(server, 'while it was paused'));
  // The answer must be back too: JupyterLab rightly asks about a file that changed without its knowing.
  await expect(page.locator('.lm-TabBar-tab.jp-mod-dirty')).toHaveCount(0);

  await server.stop();
  await notebook.write(1, '# typed while the server was away');
  // More than two cycles of autosave: this is what the case is about, not a way of waiting for something.
  await page.waitForTimeout(2.5 * AUTOSAVE.autosaveInterval * 1000);
  await server.start();
  await ui.shows('paused');
  await until('it is saved', () => onDisk(server, 'server was away'));
  await ui.resume();
  await notebook.write(1, '# typed after the resume');
  await until('it is saved', () => onDisk(server, 'after the resume'));
  expect(await openDialogs(page)).toEqual([]);
});

test('S31: a file changed on disk asks at most once per tab', async ({
  page,
  server
}) => {
  server.setting('@jupyterlab/docmanager-extension/plugin', AUTOSAVE);
  writeNotebook(server, 'two.ipynb', ['value = 1', '# free']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'two.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  await until('it is saved', () => onDisk(server, 'value', 'two.ipynb'));

  const second = await page.context().newPage();
  await second.goto(`${server.url}/lab/tree/two.ipynb`);
  await expect(second.locator('.jp-Notebook .jp-Cell')).toHaveCount(2);
  await ui.pause();
  const path = join(server.notebooks, 'two.ipynb');
  const document = JSON.parse(readFileSync(path, 'utf8'));
  document.cells[1].source = '# changed by somebody else';
  writeFileSync(path, JSON.stringify(document));
  await ui.resume();
  // Where autosave has asked already, the question covers the notebook and nothing can be typed.
  await notebook
    .write(1, '# typed in the first tab')
    .catch(async (error: unknown) => {
      expect(await openDialogs(page), String(error)).toHaveLength(1);
    });
  await second.locator('.jp-Notebook .jp-Cell').nth(1).click();
  await second.keyboard.type('# typed in the second tab');
  // Several ticks of autosave in both.
  await page.waitForTimeout(2.5 * AUTOSAVE.autosaveInterval * 1000);
  for (const tab of [page, second]) {
    expect(await tab.locator('.jp-Dialog').count()).toBeLessThanOrEqual(1);
  }
  await second.close();
});

test('S32: away for longer than the frontend tries: everything reconnects by itself', async ({
  page,
  server
}) => {
  await page.clock.install();
  writeNotebook(server, 'first.ipynb', ['value = "first"', 'print(value)']);
  writeNotebook(server, 'second.ipynb', ['value = "second"', 'print(value)']);
  await openLab(page, server);
  const first = new Notebook(page, 'first.ipynb');
  const second = new Notebook(page, 'second.ipynb');
  const ui = new PauseUi(page);
  await first.open();
  await first.run(0);
  await ui.pause();
  await second.open();
  await second.run(0);
  await ui.pause();

  await server.kill();
  // The page notices by its WebSockets, long before JupyterLab's own look: no time has to pass for that.
  await expect(ui.notice.first()).toContainText(
    'The Jupyter server does not answer'
  );
  // Half an hour, in steps, so that every retry of the page finds nobody.
  for (let minute = 0; minute < 30; minute++) {
    await page.clock.runFor(60000);
  }
  await server.start();
  // Time goes on in one line of steps: a slow machine must not get two at once.
  let passing = true;
  const time = (async () => {
    while (passing) {
      await page.clock.runFor(2000);
      await new Promise(resolve => setTimeout(resolve, 250));
    }
  })();
  try {
    await ui.shows('paused');
    await ui.resume();
    expect(await second.run(1)).toBe('second');
    await openDocument(page, 'first.ipynb');
    await ui.resume();
    expect(await first.run(1)).toBe('first');
  } finally {
    passing = false;
    await time;
  }
});

test('S33: tabs stop asking for the channels of a paused kernel', async ({
  page,
  server
}) => {
  writeNotebook(server, 'quiet.ipynb', ['value = 1', 'print(value)']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'quiet.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  // What the kernel told about its language is in the file, so that the second tab has nothing to save.
  await page.keyboard.press('Control+S');
  await until('it is saved', () =>
    onDisk(server, 'codemirror_mode', 'quiet.ipynb')
  );
  const second = await page.context().newPage();
  await second.goto(`${server.url}/lab/tree/quiet.ipynb`);
  await expect(second.locator('.jp-Notebook .jp-Cell')).toHaveCount(2);
  await ui.pause();
  await expect(second.locator('.jp-Pause-badgeButton')).toHaveAttribute(
    'data-jp-pause-state',
    'paused'
  );

  const kernel = await notebook.kernelId();
  const sockets: string[] = [];
  for (const tab of [page, second]) {
    tab.on('websocket', socket => sockets.push(socket.url()));
  }
  const before = await activity(server, kernel);
  const logged = server.log.length;
  // A minute of two forgotten tabs: the case itself.
  await page.waitForTimeout(60000);
  expect(sockets.filter(url => url.includes(kernel))).toEqual([]);
  const lines = server.log.slice(logged).split('\n');
  expect(lines.filter(line => line.includes(kernel))).toEqual([]);
  expect(await activity(server, kernel)).toBe(before);
  await second.close();
  await ui.resume();
  expect(await notebook.run(1)).toBe('1');
});

function onDisk(server: LabServer, text: string, name = 'save.ipynb'): boolean {
  return readFileSync(join(server.notebooks, name), 'utf8').includes(text);
}

async function activity(server: LabServer, kernel: string): Promise<string> {
  const response = await server.fetch(`api/kernels/${kernel}`);
  return ((await response.json()) as { last_activity: string }).last_activity;
}
