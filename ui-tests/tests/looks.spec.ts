/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import {
  accessibilityFaults,
  expect,
  openLab,
  picture,
  test
} from '../harness/test';

const OURS = [
  '.jp-Pause-badge',
  '#jp-pause-panel',
  '[data-jp-item-name="jupyter-pause"]'
];

const THEMES = {
  light: 'JupyterLab Light',
  dark: 'JupyterLab Dark',
  'high-contrast': 'JupyterLab Dark High Contrast'
};

for (const [name, theme] of Object.entries(THEMES)) {
  test(`states look right and axe finds nothing wrong, ${name}`, async ({
    page,
    server
  }) => {
    server.setting('@jupyterlab/apputils-extension/themes', { theme });
    writeNotebook(server, 'looks.ipynb', [
      'table = [[n] * 100 for n in range(1000)]\nnumbers = (n for n in table)\nname = "Ann"',
      'print(len(table))'
    ]);
    await openLab(page, server);
    const notebook = new Notebook(page, 'looks.ipynb');
    const ui = new PauseUi(page);
    await notebook.open();
    await notebook.run(0);
    await ui.openPanel();
    await expect(ui.section('Will not come back')).toContainText('numbers');
    const faults: string[] = [];
    const look = async (state: string, ...more: string[]) => {
      await picture(page, `${name}-${state}`);
      const found = await accessibilityFaults(page, ...OURS, ...more);
      faults.push(...found.map(fault => `${state}: ${fault}`));
    };
    await look('running');

    await ui.button.click();
    await expect(ui.dialog).toContainText('Pause and lose something?');
    await look('question', '.jp-Dialog-content');
    await ui.dialog.getByRole('button', { name: 'Pause anyway' }).click();
    await ui.shows('paused');
    await expect(ui.notice).toBeVisible();
    await expect(ui.section('What is kept')).toContainText('table');
    await look('paused', '.jp-Pause-notice');

    await page.sidebar.openTab('jp-running-sessions');
    const section = page.getByRole('region', { name: 'Paused Section' });
    await expect(section).toContainText('looks.ipynb');
    await look('running-panel');

    await ui.resume();
    await expect(ui.section('The last resume')).toContainText('numbers');
    await look('ready');
    expect(await notebook.run(1)).toBe('1000');
    await ui.shows('running');
    expect(faults).toEqual([]);
  });
}

test('keyboard only: the panel, a pause, a resume and the question', async ({
  page,
  server
}) => {
  writeNotebook(server, 'keys.ipynb', ['value = 1', 'print(value)']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'keys.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);

  const palette = async (command: string) => {
    await page.keyboard.press('Control+Shift+C');
    await expect(page.locator('#modal-command-palette')).toBeVisible();
    await page.keyboard.type(command);
    await page.keyboard.press('Enter');
  };

  // The badge is reached with Tab alone and opens the panel with Enter.
  await tabTo(page, '.jp-Pause-badgeButton');
  await page.keyboard.press('Enter');
  await expect(ui.panel).toBeVisible();

  await palette('Pause Kernel');
  await ui.shows('paused');

  // The notice's button is reached with Tab.
  await tabTo(page, '.jp-Pause-notice button');
  await page.keyboard.press('Enter');
  await ui.shows('ready', 'running');

  await palette('Pause Kernel');
  await ui.shows('paused');
  await palette('Resume Kernel');
  await ui.shows('ready', 'running');
  expect(await notebook.run(1)).toBe('1');
});

test('a kernel that cannot be paused has a disabled button that says why', async ({
  page,
  server
}) => {
  const python = process.env.JUPYTER_PAUSE_TEST_PYTHON ?? 'python3';
  server.kernelspec('wrapped', {
    argv: [
      'sh',
      '-c',
      `exec ${python} -m ipykernel_launcher -f "$0"`,
      '{connection_file}'
    ],
    display_name: 'Wrapped',
    language: 'python'
  });
  writeNotebook(server, 'wrapped.ipynb', ['print(1)'], 'wrapped');
  await openLab(page, server);
  const notebook = new Notebook(page, 'wrapped.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  expect(await notebook.run(0)).toBe('1');
  await expect(ui.button).toHaveAttribute('aria-disabled', 'true');
  await expect(ui.badge).toContainText('Not pausable');
  await expect(ui.badge).toHaveAttribute(
    'title',
    /started through another command, so it cannot be paused/
  );
  await picture(page, 'not-pausable');
});

async function tabTo(
  page: Parameters<typeof openLab>[0],
  selector: string
): Promise<void> {
  await page.evaluate(() =>
    document.querySelector<HTMLElement>('.jp-skiplink a, a.skip-link')?.focus()
  );
  for (let presses = 0; presses < 200; presses++) {
    await page.keyboard.press('Tab');
    if (
      await page.evaluate(
        wanted => document.activeElement?.matches(wanted) ?? false,
        selector
      )
    ) {
      return;
    }
  }
  throw new Error(`Tab never reached ${selector}`);
}
