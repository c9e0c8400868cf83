/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notebook, writeNotebook } from '../harness/notebook';
import { isAlive, residentBytes } from '../harness/processes';
import { expect, openLab, test } from '../harness/test';

test('a kernel of the test server runs cells, and its process can be measured', async ({
  page,
  server
}) => {
  writeNotebook(server, 'a.ipynb', [
    'import os\nprint(os.getpid())',
    'print(6 * 7)'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'a.ipynb');
  await notebook.open();
  const pid = Number(await notebook.run(0));
  expect(isAlive(pid)).toBe(true);
  expect(residentBytes(pid)).toBeGreaterThan(10_000_000);
  expect(await notebook.run(1)).toBe('42');
});
