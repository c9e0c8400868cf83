/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notebook, openDocument, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { until } from '../harness/processes';
import {
  accessibilityFaults,
  expect,
  openLab,
  picture,
  test
} from '../harness/test';

const PRINTS = 12;

test('S36: a pause asked for while a cell prints and no tab is open waits; the counter goes on; the gap is stated', async ({
  page,
  server
}) => {
  writeNotebook(server, 'prints.ipynb', [
    `import time\nfor number in range(1, ${PRINTS + 1}):\n    print(number, flush=True)\n    time.sleep(0.5)`,
    'print(number)'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'prints.ipynb');
  await notebook.open();
  const kernel = await notebook.kernelId();
  await notebook.press(0);
  await until('it prints', async () => (await notebook.output(0)) !== '');
  await page.goto('about:blank').catch(() => undefined);

  const answer = await server.fetch('jupyter-pause/api/pause', {
    method: 'POST',
    body: JSON.stringify({ kernels: [kernel] })
  });
  expect(answer.status).toBe(202);
  await server.waitFor('prints.ipynb', 'paused');

  await openLab(page, server);
  const ui = new PauseUi(page);
  await openDocument(page, 'prints.ipynb');
  await ui.shows('paused');
  await ui.resume();
  await expect(ui.notice).toContainText(
    /\d+ outputs came while no page was connected/
  );
  expect(await accessibilityFaults(page, '.jp-Pause-notice')).toEqual([]);
  await picture(page, 'output-is-missing');
  // The cell ran to its end before the pause: nothing was cut off.
  expect(await notebook.run(1)).toBe(String(PRINTS));
  await expect(notebook.prompt(1)).toHaveText('[2]:');
  await expect(ui.notice).toBeHidden();
});
