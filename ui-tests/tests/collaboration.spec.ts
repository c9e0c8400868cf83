/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { until } from '../harness/processes';
import type { LabServer } from '../harness/server';
import {
  expect,
  openDialogs,
  openLab,
  picture,
  suspended,
  test
} from '../harness/test';

const PYTHON = process.env.JUPYTER_PAUSE_TEST_COLLABORATION;

test.use({ serverPython: PYTHON });

test.beforeAll(() => {
  if (!PYTHON) {
    throw new Error(
      'JUPYTER_PAUSE_TEST_COLLABORATION names no interpreter with jupyter-collaboration; scripts/test sets it'
    );
  }
});

test('S34: with shared editing a pause has the document on disk, and a tab that slept over a restart has every cell once', async ({
  page,
  server
}) => {
  writeNotebook(server, 'shared.ipynb', ['value = "kept"']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'shared.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  // The cell that Shift+Enter made, and one more: they were not there when the document was opened.
  await notebook.write(1, 'print(value)');
  expect(await notebook.run(1)).toBe('kept');
  await notebook.write(2, '# typed right before the pause');
  const kernel = await notebook.kernelId();
  const answer = page.waitForRequest(
    request =>
      request.method() === 'POST' &&
      request.url().includes('jupyter-pause/api/documents')
  );
  await ui.pause();
  expect((await answer).postDataJSON()).toMatchObject({
    documents: [{ path: 'shared.ipynb', saved: true }]
  });
  // It was saved before the pause ended: nothing is waited for.
  expect(await sources(server)).toEqual([
    'value = "kept"',
    'print(value)',
    '# typed right before the pause'
  ]);
  await ui.openPanel();
  await picture(page, 'collaboration-paused');

  await suspended(page, async () => {
    await server.kill();
    await server.start();
  });
  await ui.shows('paused');
  await notebook.write(2, '# typed after the tab woke up');
  await until('it is saved', async () =>
    (await sources(server)).includes('# typed after the tab woke up')
  );
  await picture(page, 'collaboration-awake');
  const after = [
    'value = "kept"',
    'print(value)',
    '# typed after the tab woke up'
  ];
  expect(await sources(server)).toEqual(after);
  await expect(notebook.panel.locator('.jp-Notebook .jp-Cell')).toHaveCount(3);
  expect(await openDialogs(page)).toEqual([]);

  expect(await notebook.kernelId()).toBe(kernel);
  await ui.resume();
  expect(await notebook.run(1)).toBe('kept');
  expect(await sources(server)).toEqual(after);
});

/** The cells on disk. Shared editing writes the file whenever it likes, so it may be half there when it is read. */
async function sources(server: LabServer): Promise<string[]> {
  let notebook: { cells: { source: string | string[] }[] } | null = null;
  await until('the file is whole', () => {
    try {
      const path = join(server.notebooks, 'shared.ipynb');
      notebook = JSON.parse(readFileSync(path, 'utf8'));
    } catch (error) {
      if (!(error instanceof SyntaxError)) {
        throw error;
      }
    }
    return notebook !== null;
  });
  return notebook!.cells.map(({ source }) =>
    Array.isArray(source) ? source.join('') : source
  );
}
