/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { existsSync } from 'node:fs';

import { Notebook, writeNotebook } from '../harness/notebook';
import { PauseUi } from '../harness/pause';
import { isAlive, until } from '../harness/processes';
import { expect, openDialogs, openLab, picture, test } from '../harness/test';

const MAKE = `
import json, os, sqlite3, subprocess, threading, time
import numpy as np

arrays = [np.random.default_rng(seed).integers(0, 255, 100_000_000, dtype=np.uint8) for seed in range(5)]
sums = [int(array.sum(dtype=np.uint64)) for array in arrays]
numbers = (number for number in range(1000))
for _ in range(42):
    at = next(numbers)
table = sqlite3.connect(":memory:")
table.execute("create table t (x)"); table.execute("insert into t values (7)")
log = open("log.txt", "w"); _ = log.write("not flushed")
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.05)
threading.Thread(target=tick, daemon=True).start()
print(json.dumps({"pid": os.getpid(), "child": child.pid, "at": at}))
`.trim();

const LOOK = `
_ = child.stdin.write("echo\\n"); child.stdin.flush()
before = ticks
time.sleep(0.3)
print(json.dumps({"pid": os.getpid(), "child": child.pid, "at": next(numbers), "ticks": ticks > before,
                  "rows": table.execute("select x from t").fetchall(), "position": log.tell(),
                  "echo": child.stdout.readline().strip(),
                  "sums": sums == [int(array.sum(dtype=np.uint64)) for array in arrays]}))
`.trim();

interface IProcess {
  pid: number;
  child: number;
  at: number;
}

const criu = process.env.JUPYTER_PAUSE_TEST_CRIU ?? '';

test.skip(
  !criu && !process.env.CI,
  'no CRIU 4.2 here: scripts/get-criu installs one, and scripts/test finds it'
);
test.use({ serverConfig: { PauseApp: { criu } } });

test('exact: the same process comes back, in place and after the server was killed', async ({
  page,
  server
}) => {
  expect(existsSync(criu)).toBe(true);
  writeNotebook(server, 'exact.ipynb', [MAKE, LOOK, LOOK]);
  const opened: string[] = [];
  page.on('websocket', socket => opened.push(new URL(socket.url()).pathname));
  await openLab(page, server);
  const notebook = new Notebook(page, 'exact.ipynb');
  const ui = new PauseUi(page);
  await notebook.open();
  const kernel = await notebook.kernelId();
  const made = JSON.parse(await notebook.run(0)) as IProcess;
  expect(made.at).toBe(41);

  // Both fates before the click: exact by the snapshot, and what only the checkpoint would not have.
  await ui.openPanel();
  await expect(ui.panel).toContainText('Exact snapshot');
  await expect(ui.section('Will not come back')).toContainText('numbers');
  await picture(page, 'panel-with-an-exact-snapshot');

  const channels = () => opened.filter(path => path.includes(kernel)).length;
  const before = channels();
  await ui.pause();
  await until('the process and its child are gone', () =>
    [made.pid, made.child].every(pid => !isAlive(pid))
  );
  await expect(ui.panel).toContainText('in an exact snapshot');
  await picture(page, 'paused-with-an-exact-snapshot');
  await ui.resume();
  const same = { pid: made.pid, child: made.child, ticks: true };
  const kept = { rows: [[7]], position: 11, echo: 'echo', sums: true };
  expect(JSON.parse(await notebook.run(1))).toEqual({
    ...same,
    ...kept,
    at: 42
  });
  expect(channels()).toBe(before);
  expect((await server.row('exact.ipynb'))?.last_resume?.via).toBe('snapshot');

  // Again, and this time the server is killed while the kernel is paused.
  await ui.pause();
  await server.kill();
  await server.start();
  await server.waitFor('exact.ipynb', 'paused');
  await ui.shows('paused');
  expect(await openDialogs(page)).toEqual([]);
  await ui.notice.getByRole('button', { name: 'Resume' }).click();
  await ui.shows('ready', 'running');
  expect(JSON.parse(await notebook.run(2))).toEqual({
    ...same,
    ...kept,
    at: 43
  });
  expect(await notebook.kernelId()).toBe(kernel);
});
