/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Locator } from '@playwright/test';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { expect, openDialogs, openLab, picture, test } from '../harness/test';

const MAKE = `
import ipywidgets
slider = ipywidgets.IntSlider(value=3, max=50, description="How many")
moved = []
slider.observe(lambda change: moved.append(change["new"]), "value")
slider
`.trim();

/** A click on a slider's number, and another one in its place. */
async function type(readout: Locator, value: number): Promise<void> {
  await readout.click();
  await readout.fill(String(value));
  await readout.press('Enter');
}

test('S35: a slider comes back where it was moved to, and moves on, in both directions', async ({
  page,
  server
}) => {
  writeNotebook(server, 'slider.ipynb', [
    MAKE,
    'print(slider.value, moved)',
    'slider.value = 21',
    'print(slider.value, moved)',
    'slider'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'slider.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  const readout = notebook.cell(0).locator('.widget-readout');
  await expect(readout).toHaveText('3');
  await type(readout, 7);
  expect(await notebook.run(1)).toBe('7 [7]');

  // Nothing of it is named as lost, so nothing is asked.
  await ui.openPanel();
  await expect(ui.section('RAM')).toContainText('slider');
  await expect(ui.section('Will not come back')).toContainText(
    'Nothing that was found would be lost'
  );
  await ui.button.click();
  await ui.shows('paused');
  await expect(readout).toHaveText('7');
  await ui.resume();

  // The same picture: a person moves it, the kernel hears it; the kernel moves it, the picture follows.
  await expect(readout).toHaveText('7');
  await type(readout, 9);
  await notebook.run(2);
  await expect(readout).toHaveText('21');
  expect(await notebook.run(3)).toBe('21 [7, 9, 21]');
  await notebook.run(4);
  await expect(notebook.cell(4).locator('.widget-readout')).toHaveText('21');
  await picture(page, 'slider-after-a-resume');
  expect(await openDialogs(page)).toEqual([]);

  // A page that is loaded again finds it in the kernel, too.
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('docmanager:save');
  });
  await openLab(page, server);
  await notebook.open();
  await expect(readout).toHaveText('21');
  await type(readout, 33);
  expect(await notebook.run(3)).toBe('33 [7, 9, 21, 33]');
});
