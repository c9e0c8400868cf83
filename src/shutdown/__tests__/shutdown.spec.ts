/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Dialog } from '@jupyterlab/apputils';
import type { ServiceManager } from '@jupyterlab/services';
import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';

import {
  ScriptedClient,
  operation,
  refusal,
  row,
  state,
  until
} from '../../__tests__/helpers';
import type { KernelRow } from '../../api/records';
import { PauseManager } from '../../manager';
import { shutDownPlan, withoutSaving } from '../plan';
import { ShutDown } from '../shutdown';

const trans = nullTranslator.load('jupyter_pause');

const ROWS = [
  row({ id: 'runs' }),
  row({ id: 'julia', pausable: false }),
  row({ id: 'paused', state: 'paused', path: 'b.ipynb' }),
  row({ id: 'pausing', state: 'pausing' }),
  row({
    id: 'elsewhere',
    state: 'paused',
    reason: { code: 'session_held', message: '', params: {} }
  })
];

const ids = (rows: readonly KernelRow[]) => rows.map(({ id }) => id);

describe('shutDownPlan', () => {
  it.each([
    ['discard', [], ['runs', 'julia'], false],
    ['checkpoint', ['runs'], ['julia'], false],
    ['ask', ['runs'], ['julia'], true]
  ] as const)('%s', (on_exit, saved, ended, choice) => {
    const plan = shutDownPlan({ ...state(1, ROWS), on_exit });
    expect(ids(plan.kept)).toEqual(['paused', 'pausing']);
    expect(ids(plan.saved)).toEqual(saved);
    expect(ids(plan.ended)).toEqual(ended);
    expect(plan.choice).toBe(choice);
    expect(ids(withoutSaving(plan).ended)).toEqual(['runs', 'julia']);
  });

  it('leaves nothing to choose where nothing can be saved', () => {
    const plan = shutDownPlan({ ...state(1, [ROWS[1]]), on_exit: 'ask' });
    expect(plan.choice).toBe(false);
  });
});

describe('ShutDown', () => {
  let client: ScriptedClient;
  let manager: PauseManager;
  let ended: string[];
  let answer: () => Promise<Response>;
  let shutDown: ShutDown;

  beforeEach(async () => {
    client = new ScriptedClient();
    client.stateAnswer = state(1, [ROWS[0], ROWS[2]]);
    manager = new PauseManager({ client, throttle: 1, watchInterval: 1e6 });
    await manager.ready;
    ended = [];
    answer = () => Promise.resolve(new Response('', { status: 200 }));
    const services = {
      sessions: {
        refreshRunning: () => Promise.resolve(),
        running: () =>
          ['runs', 'paused', 'unknown to us']
            .map(id => ({ id: `session of ${id}`, kernel: { id } }))
            .values(),
        shutdown: (id: string) => {
          ended.push(id);
          return Promise.resolve();
        }
      },
      terminals: {
        shutdownAll: () => {
          ended.push('terminals');
          return Promise.reject(new Error('no terminals here'));
        }
      },
      serverSettings: ServerConnection.makeSettings({
        fetch: () => answer()
      })
    };
    shutDown = new ShutDown({
      manager,
      services: services as unknown as ServiceManager.IManager,
      shell: { widgets: () => [].values() } as never,
      contents: {} as never,
      name: 'JupyterLab',
      trans
    });
    jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    jest.spyOn(window, 'close').mockImplementation(() => undefined);
  });

  afterEach(async () => {
    manager.dispose();
    Dialog.tracker.forEach(dialog => dialog.reject());
    await until(() => document.querySelector('.jp-Dialog') === null);
    jest.restoreAllMocks();
  });

  const text = () => document.querySelector('.jp-Dialog')?.textContent ?? '';
  const press = async (label: string) => {
    const find = () =>
      Array.from(
        document.querySelectorAll<HTMLElement>('.jp-Dialog button')
      ).find(button => button.textContent === label);
    await until(() => !!find());
    find()!.click();
  };

  it('ends every session but the paused one, then the server', async () => {
    const done = shutDown.run();
    await press('Shut Down');
    expect(await done).toBe(true);
    expect(ended).toEqual([
      'session of runs',
      'session of unknown to us',
      'terminals'
    ]);
    await until(() => text().includes('Server stopped'));
    expect(text()).toContain('b.ipynb');
  });

  it('waits for a pause that is on its way', async () => {
    client.stateAnswer = state(2, [ROWS[0]], operation({ kernels: ['runs'] }));
    client.operations.set('op1', operation({ kernels: ['runs'] }));
    client.stateAnswer.kernels[0] = row({ id: 'runs', state: 'pausing' });
    const done = shutDown.run();
    await press('Shut Down');
    await until(() => client.count('operation') > 0);
    expect(ended).toEqual([]);
    client.stateAnswer = state(3, [row({ id: 'runs', state: 'paused' })]);
    client.operations.set('op1', operation({ state: 'done' }));
    await manager.cancel('op1');
    await done;
    expect(ended).not.toContain('session of runs');
  });

  it('does nothing when the person stays', async () => {
    const done = shutDown.run();
    await press('Cancel');
    expect(await done).toBe(true);
    expect(ended).toEqual([]);
  });

  it('leaves it to JupyterLab where nothing is kept, or nothing is known', async () => {
    client.stateAnswer = state(2, [ROWS[0]]);
    expect(await shutDown.run()).toBe(false);
    client.stateAnswer = refusal('server_part_missing', 404);
    expect(await shutDown.run()).toBe(false);
    expect(ended).toEqual([]);
  });

  it('says so when the server refuses, and takes its silence for an end', async () => {
    answer = () => Promise.resolve(new Response('', { status: 403 }));
    let done = shutDown.run();
    await press('Shut Down');
    await until(() => text().includes('The server was not shut down'));
    await press('Close');
    await done;
    answer = () => {
      client.stateAnswer = refusal('server_unreachable', 0);
      return Promise.reject(new TypeError('network'));
    };
    done = shutDown.run();
    await press('Shut Down');
    await done;
    await until(() => text().includes('Server stopped'));
  });
});
