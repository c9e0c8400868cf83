/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notebook, openDocument, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { isAlive, until } from '../harness/processes';
import { expect, openDialogs, openLab, picture, test } from '../harness/test';

test('%pause in a Run All: the cells after it do not run and are not lost', async ({
  page,
  server
}) => {
  writeNotebook(server, 'all.ipynb', [
    'import os\nanswer = 41\nprint(os.getpid())',
    '%pause',
    'answer += 1\nprint(answer)',
    'print("last", answer)'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'all.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await page.evaluate(async () => {
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
  });
  await ui.shows('paused');
  const pid = Number(await notebook.output(0));
  await until('the process is gone', () => !isAlive(pid));
  for (const index of [2, 3]) {
    await expect(notebook.prompt(index)).toHaveText('[ ]:');
    expect(await notebook.output(index)).toBe('');
  }
  await picture(page, 'paused-by-magic');

  // The next day in a new page: the cells that did not run are still known.
  await page.goto('about:blank').catch(() => undefined);
  await openLab(page, server);
  await openDocument(page, 'all.ipynb');
  await ui.shows('paused');
  await ui.resume();
  await ui.notice
    .getByRole('button', { name: 'Run the remaining 2 cells' })
    .click();
  await notebook.ran(3);
  expect(await notebook.output(2)).toBe('42');
  expect(await notebook.output(3)).toBe('last 42');
  // What ran is not offered again.
  await expect(ui.notice).toBeHidden();
  expect(await openDialogs(page)).toEqual([]);
});

test('%pause says what would be lost, and pauses nothing', async ({
  page,
  server
}) => {
  writeNotebook(server, 'loss.ipynb', [
    'numbers = (n for n in range(3))\nkept = list(range(1000))',
    '%pause --preview',
    '%pause',
    'print(next(numbers))',
    '%pause --status',
    '%pause --list'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'loss.ipynb');
  await notebook.open();
  await notebook.run(0);
  expect(await notebook.run(1)).toMatch(/would be lost[\s\S]*numbers/);
  expect(await notebook.run(2)).toMatch(/Not paused[\s\S]*numbers/);
  expect(await notebook.run(3)).toBe('0');
  expect(await notebook.run(4)).toContain('This kernel is running');
  expect(await notebook.run(5)).toContain('no checkpoints');
});

test('a cell run while paused asks once, resumes, and reads the restored variables', async ({
  page,
  server
}) => {
  writeNotebook(server, 'queue.ipynb', [
    'secret = "kept"',
    'print(secret)',
    'print(secret, "too")'
  ]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'queue.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  await ui.pause();

  await notebook.press(1);
  await expect(ui.dialog).toContainText('Resume and run?');
  await picture(page, 'question-resume-and-run');
  await ui.dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(notebook.prompt(1)).toHaveText('[ ]:');
  await ui.shows('paused');

  await notebook.press(1);
  await ui.dialog.getByRole('button', { name: 'Resume and run' }).click();
  await notebook.ran(1);
  expect(await notebook.output(1)).toBe('kept');
  expect(await notebook.run(2)).toBe('kept too');
  await expect(notebook.prompt(2)).toHaveText('[3]:');
});

test('a cell that another client sent while paused is answered after the resume', async ({
  page,
  server
}) => {
  writeNotebook(server, 'other.ipynb', ['value = 6 * 7', 'print(value)']);
  await openLab(page, server);
  const notebook = new Notebook(page, 'other.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await notebook.run(0);
  await ui.pause();
  // Straight to the kernel's connection, as a client without our frontend would do.
  const answer = page.evaluate(async () => {
    const widget = window.jupyterapp.shell.currentWidget as unknown as {
      sessionContext: {
        session: {
          kernel: {
            requestExecute(content: { code: string }): {
              onIOPub: (message: { content: { text?: string } }) => void;
              done: Promise<{ content: { status: string } }>;
            };
          };
        };
      };
    };
    let text = '';
    const future = widget.sessionContext.session.kernel.requestExecute({
      code: 'print("waited for", value)'
    });
    future.onIOPub = message => {
      text += message.content.text ?? '';
    };
    const reply = await future.done;
    return `${reply.content.status}: ${text.trim()}`;
  });
  await ui.resume();
  expect(await answer).toBe('ok: waited for 42');
});
