/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { PausedScreenUi, pauseWorkspace } from '../harness/cluster';
import { hubTest, signIn } from '../harness/hub';
import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { until } from '../harness/processes';
import {
  accessibilityFaults,
  expect,
  openDialogs,
  picture
} from '../harness/test';

hubTest(
  'JupyterHub: the Hub starts the server in a window of its own, and the tab that stayed open goes on',
  async ({ page, hub }) => {
    await signIn(page, hub, 'ann');
    writeNotebook({ notebooks: hub.home('ann') }, 'work.ipynb', [
      'import os\nvalue = "kept"\nprint(os.getpid())',
      'print(value, os.getpid())'
    ]);
    const notebook = new Notebook(page, 'work.ipynb');
    const ui = new PauseUi(page);
    const screen = new PausedScreenUi(page);
    await notebook.open();
    const pid = await notebook.run(0);
    await pauseWorkspace(ui, screen);
    await until(
      'the server has stopped',
      async () => (await hub.server('ann')) === 'stopped'
    );
    await expect(screen.region).toContainText('No snapshot');
    await expect(screen.region).toContainText('work.ipynb');
    await picture(page, 'hub-paused');
    expect(
      await accessibilityFaults(page, '#jp-pause-screen', '.jp-Pause-badge')
    ).toEqual([]);

    const opening = page.context().waitForEvent('page');
    await screen.resume.click();
    const opened = await opening;
    await opened.waitForURL(`${hub.origin}/**`);
    // The window goes to the Hub, from there to the server; this tab closes it once the server answers.
    if (!opened.isClosed()) {
      await opened.waitForEvent('close', { timeout: 180000 });
    }
    await until(
      'the server runs',
      async () => (await hub.server('ann')) === 'ready'
    );
    // The notebook goes on in this tab: its kernel was paused, and a click brings it back.
    await expect(screen.region).toBeHidden();
    await ui.resume();
    const [value, other] = (await notebook.run(1)).split(' ');
    expect(value).toBe('kept');
    expect(other).not.toBe(pid);
    expect(await openDialogs(page)).toEqual([]);
  }
);
