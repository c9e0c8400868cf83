/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { isAlive, residentBytes, until } from '../harness/processes';
import { expect, openDialogs, openLab, picture, test } from '../harness/test';

const MAKE = `
import hashlib, json, os, secrets, threading
import numpy as np

class Walker:
    def __init__(self, steps):
        self.steps = steps
    def walk(self):
        self.steps += 1
        return self.steps

def double(value):
    return 2 * value

token = secrets.token_hex(16)
arrays = [np.random.default_rng(seed).integers(0, 255, 100_000_000, dtype=np.uint8) for seed in range(3)]
walker = Walker(41)
here = there = ["shared"]
log = open("lines.txt")
log.readline()
lock = threading.Lock()
numbers = (number for number in range(10))
next(numbers)
print(json.dumps({"token": token, "pid": os.getpid(),
                  "digests": [hashlib.sha256(array).hexdigest() for array in arrays]}))
`.trim();

const LOOK = `
here.append("from here")
print(json.dumps({"token": token, "pid": os.getpid(),
                  "digests": [hashlib.sha256(array).hexdigest() for array in arrays],
                  "walked": walker.walk(), "doubled": double(21), "there": there,
                  "line": log.readline().strip(), "locked": lock.acquire(blocking=False),
                  "again": lock.acquire(blocking=False)}))
lock.release()
`.trim();

interface IMade {
  token: string;
  pid: number;
  digests: string[];
}

interface ISeen extends IMade {
  walked: number;
  doubled: number;
  there: string[];
  line: string;
  locked: boolean;
  again: boolean;
}

test('main journey: pause, memory freed, server killed, resume from the notebook, everything right', async ({
  page,
  server
}) => {
  writeFileSync(
    join(server.notebooks, 'lines.txt'),
    'first\nsecond\nthird\nfourth\n'
  );
  writeNotebook(server, 'work.ipynb', [MAKE, LOOK, 'next(numbers)', LOOK]);
  await openLab(page, server);
  const notebook = new Notebook(page, 'work.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  await page.evaluate(() => {
    document.body.dataset.sameDocument = 'yes';
  });
  const kernel = await notebook.kernelId();
  const made = JSON.parse(await notebook.run(0)) as IMade;
  await expect(notebook.prompt(0)).toHaveText('[1]:');
  expect(residentBytes(made.pid)).toBeGreaterThan(300_000_000);

  // The preview names the generator before anybody clicks.
  await ui.openPanel();
  const losses = ui.section('Will not come back');
  await expect(losses).toContainText('numbers');
  await expect(losses).toContainText('generator');
  await expect(ui.section('RAM')).toContainText('arrays');
  await expect(ui.section('RAM')).toContainText('286 MiB');
  await picture(page, 'panel-before-a-pause');

  // The click asks, because something would be lost.
  await ui.button.click();
  await expect(ui.dialog).toContainText('Pause and lose something?');
  await expect(ui.dialog).toContainText('numbers');
  await picture(page, 'question-about-losses');
  expect(isAlive(made.pid)).toBe(true);
  await ui.dialog.getByRole('button', { name: 'Pause anyway' }).click();
  await ui.shows('paused');
  await until('the process is gone', () => !isAlive(made.pid));
  expect(residentBytes(made.pid)).toBe(0);
  await expect(ui.notice).toContainText('The kernel is paused since');
  await picture(page, 'paused');

  // The server dies in the hardest way and is started again over the same folders.
  await server.kill();
  await server.start();
  const row = await server.waitFor('work.ipynb', 'paused');
  expect(row.id).toBe(kernel);
  await ui.shows('paused');
  expect(await openDialogs(page)).toEqual([]);

  await ui.notice.getByRole('button', { name: 'Resume' }).click();
  await ui.shows('ready', 'running');
  const resumed = await server.row('work.ipynb');
  expect(resumed?.last_resume?.via).toBe('checkpoint');
  expect(resumed?.last_resume?.losses.map(loss => loss.path)).toEqual([
    'numbers'
  ]);
  await picture(page, 'ready-again');

  const seen = JSON.parse(await notebook.run(1)) as ISeen;
  await expect(notebook.prompt(1)).toHaveText('[2]:');
  expect(seen).toMatchObject({
    token: made.token,
    digests: made.digests,
    walked: 42,
    doubled: 42,
    there: ['shared', 'from here'],
    line: 'second',
    locked: true,
    again: false
  });
  expect(seen.pid).not.toBe(made.pid);
  expect(await notebook.run(2)).toMatch(/numbers.*generator.*cell 1/);
  expect(await notebook.kernelId()).toBe(kernel);

  // Once more while the server stays.
  await ui.pause();
  await until('the process is gone', () => !isAlive(seen.pid));
  await ui.resume();
  const again = JSON.parse(await notebook.run(3)) as ISeen;
  expect(again).toMatchObject({
    token: made.token,
    digests: made.digests,
    walked: 43,
    there: ['shared', 'from here', 'from here'],
    line: 'third'
  });
  expect(await notebook.kernelId()).toBe(kernel);
  expect((await server.row('work.ipynb'))?.id).toBe(kernel);

  // It is the same page all the time: nothing was loaded again, and nothing popped up.
  expect(await page.evaluate(() => document.body.dataset.sameDocument)).toBe(
    'yes'
  );
  expect(await openDialogs(page)).toEqual([]);
});
