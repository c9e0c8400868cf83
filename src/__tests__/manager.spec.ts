/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { PauseManager } from '../manager';
import type { Availability, IDocumentsRequest, IKernelChange } from '../tokens';
import {
  Events,
  ScriptedClient,
  checkpoint,
  operation,
  refusal,
  row,
  state,
  until
} from './helpers';

describe('PauseManager', () => {
  let client: ScriptedClient;
  let events: Events;
  let manager: PauseManager;

  const create = async (
    options: Partial<PauseManager.IOptions> = {}
  ): Promise<PauseManager> => {
    manager = new PauseManager({
      client,
      events: events.stream,
      throttle: 1,
      interval: 1e6,
      awayInterval: 1e6,
      watchInterval: 1e6,
      ...options
    });
    await manager.ready;
    return manager;
  };

  beforeEach(() => {
    client = new ScriptedClient();
    events = new Events();
  });

  afterEach(() => {
    manager.dispose();
  });

  it('reads the state once at the start', async () => {
    await create();
    expect(manager.availability).toBe('ready');
    expect(manager.row('k1')?.state).toBe('running');
    expect(manager.row('other')).toBeNull();
    expect(client.count('state')).toBe(1);
  });

  it('shows a new state before the server was asked again', async () => {
    await create();
    client.stateAnswer = state(2, [
      row({ state: 'pausing', operation: 'op1' })
    ]);
    const changes: IKernelChange[] = [];
    manager.kernelChanged.connect((_, change) => changes.push(change));
    events.emit('state', {
      revision: 2,
      kernel_id: 'k1',
      state: 'pausing',
      phase: 'checking',
      operation: 'op1'
    });
    expect(manager.row('k1')?.state).toBe('pausing');
    expect(manager.row('k1')?.phase).toBe('checking');
    expect(changes[0].previous?.state).toBe('running');
    await until(() => client.count('state') >= 2);
  });

  it('asks again after a gap in the revisions', async () => {
    await create();
    client.stateAnswer = state(9, [row({ state: 'paused' })]);
    events.emit('operation', {
      revision: 5,
      operation: 'op1',
      kind: 'pause',
      state: 'running',
      elapsed: 1,
      bytes_done: 0
    });
    await until(() => manager.row('k1')?.state === 'paused');
    expect(manager.state?.revision).toBe(9);
  });

  it('does not ask for the state when progress follows without a gap', async () => {
    client.stateAnswer = state(1, [row()], operation());
    await create();
    events.emit('operation', {
      revision: 2,
      operation: 'op1',
      kind: 'pause',
      state: 'running',
      phase: 'saving',
      elapsed: 3,
      bytes_done: 10,
      bytes_total: 20,
      cancellable: false
    });
    expect(manager.operation('op1')).toMatchObject({
      elapsed: 3,
      bytes_done: 10,
      bytes_total: 20,
      cancellable: false
    });
    await new Promise(resolve => setTimeout(resolve, 30));
    expect(client.count('state')).toBe(1);
  });

  it('takes the smaller revision of a server that was restarted', async () => {
    client.stateAnswer = state(70);
    await create();
    client.stateAnswer = state(1, [row({ state: 'paused' })]);
    events.emit('state', { revision: 1, kernel_id: 'k1', state: 'paused' });
    await until(() => manager.state?.revision === 1);
    client.calls = [];
    client.stateAnswer = state(2, [row({ state: 'resuming' })]);
    events.emit('state', { revision: 2, kernel_id: 'k1', state: 'resuming' });
    await until(() => client.count('state') === 1);
    expect(manager.row('k1')?.state).toBe('resuming');
  });

  it('asks once more when an event came while an answer was on its way', async () => {
    await create();
    client.calls = [];
    client.stateAnswer = state(1);
    const refreshing = manager.refresh();
    events.emit('state', { revision: 2, kernel_id: 'k1', state: 'paused' });
    client.stateAnswer = state(2, [row({ state: 'paused' })]);
    await refreshing;
    await until(() => manager.row('k1')?.state === 'paused');
    expect(client.count('state')).toBe(2);
  });

  it('ignores events of others', async () => {
    await create();
    events.stream.emit({
      schema_id: 'https://events.jupyter.org/jupyter_server/kernel_actions/v1',
      revision: 99
    });
    await new Promise(resolve => setTimeout(resolve, 30));
    expect(client.count('state')).toBe(1);
  });

  it('asks again when the tab becomes visible', async () => {
    await create();
    document.dispatchEvent(new Event('visibilitychange'));
    await until(() => client.count('state') >= 2);
  });

  it('says that the server part is missing, and rests', async () => {
    client.stateAnswer = refusal('server_part_missing', 404);
    await create({ interval: 5 });
    expect(manager.availability).toBe('missing');
    expect(manager.state).toBeNull();
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(client.count('state')).toBe(1);
  });

  it('rests while the application is offline', async () => {
    let offline = true;
    await create({ interval: 5, standby: () => offline });
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(client.count('state')).toBe(1);
    offline = false;
    await until(() => client.count('state') > 2);
  });

  it('keeps the last state with its age while the server is away, and notices its return', async () => {
    let now = 1000;
    await create({ awayInterval: 5, now: () => now });
    const seen: Availability[] = [];
    manager.availabilityChanged.connect((_, value) => seen.push(value));
    client.stateAnswer = refusal('server_unreachable', 0);
    now = 61000;
    await manager.refresh();
    expect(manager.availability).toBe('unreachable');
    expect(manager.row('k1')?.state).toBe('running');
    expect(manager.answeredAt).toBe(1000);
    client.stateAnswer = state(1);
    await until(() => manager.availability === 'ready');
    expect(seen).toEqual(['unreachable', 'ready']);
  });

  it('tells which kernels came and went', async () => {
    await create();
    const changes: [string | null, string | null][] = [];
    manager.kernelChanged.connect((_, { previous, row }) =>
      changes.push([previous?.id ?? null, row?.id ?? null])
    );
    client.stateAnswer = state(2, [row({ id: 'k2' })]);
    await manager.refresh();
    expect(changes).toEqual([
      [null, 'k2'],
      ['k1', null]
    ]);
  });

  it('reads the whole operation when it ends', async () => {
    client.stateAnswer = state(1, [row()], operation());
    await create();
    client.operations.set(
      'op1',
      operation({
        state: 'failed',
        error: { code: 'no_space', message: '', params: {} }
      })
    );
    const settled = manager.settled('op1');
    events.emit('operation', {
      revision: 2,
      operation: 'op1',
      kind: 'pause',
      state: 'failed',
      elapsed: 4,
      bytes_done: 0
    });
    expect((await settled).error?.code).toBe('no_space');
  });

  it('looks at running operations when no event comes', async () => {
    let now = 0;
    await create({ watchInterval: 5, now: () => now });
    const begun = await manager.pause({ kernels: ['k1'] });
    client.operations.set('op1', operation({ state: 'done' }));
    now = 10_000;
    expect((await manager.settled(begun.id)).state).toBe('done');
  });

  it('calls an operation failed that a restarted server does not know', async () => {
    client.stateAnswer = state(1, [row()], operation());
    await create();
    const settled = await manager.settled('op1');
    expect(settled.state).toBe('failed');
    expect(settled.error?.code).toBe('operation_interrupted');
  });

  it('does not let a late answer revive an operation that ended', async () => {
    await create();
    client.operations.set('op1', operation({ state: 'done' }));
    await manager.settled('op1');
    client.operations.set('op1', operation());
    events.emit('operation', {
      revision: 2,
      operation: 'op1',
      kind: 'pause',
      state: 'done',
      elapsed: 1,
      bytes_done: 0
    });
    await until(() => client.count('operation') === 2);
    expect(manager.operation('op1')?.state).toBe('done');
  });

  it('passes the wish to save documents on', async () => {
    await create();
    const wishes: IDocumentsRequest[] = [];
    manager.documentsRequested.connect((_, wish) => wishes.push(wish));
    events.emit('documents', {
      revision: 2,
      request: 'r1',
      kernels: ['k1'],
      timeout: 7
    });
    expect(wishes).toMatchObject([
      { request: 'r1', kernels: ['k1'], timeout: 7 }
    ]);
  });

  it('offers the newest good checkpoint that no known kernel holds', async () => {
    client.checkpointsAnswer = [
      checkpoint({ id: 'broken', damaged: 'incomplete' }),
      checkpoint({ id: 'forged', signature_ok: false }),
      checkpoint({ id: 'held', kernel_id: 'k1' }),
      checkpoint({ id: 'good' }),
      checkpoint({ id: 'older' })
    ];
    await create();
    await until(() => manager.checkpoints !== null);
    expect(manager.unattachedFor('work/a.ipynb')?.id).toBe('good');
    expect(manager.unattachedFor('work/b.ipynb')).toBeNull();
  });

  it('asks about a kernel that it does not know, and only then', async () => {
    await create();
    manager.expect(['k1']);
    await new Promise(resolve => setTimeout(resolve, 30));
    expect(client.count('state')).toBe(1);
    client.stateAnswer = state(2, [row(), row({ id: 'k2' })]);
    manager.expect(['k1', 'k2']);
    await until(() => manager.row('k2') !== null);
  });

  it('looks again at a kernel that is starting', async () => {
    const reason = { code: 'starting', message: '', params: {} };
    client.stateAnswer = state(1, [row({ pausable: false, reason })]);
    await create();
    client.stateAnswer = state(1, [row()]);
    await until(() => manager.row('k1')?.pausable === true);
  });

  it('is silent after it was disposed', async () => {
    await create();
    manager.dispose();
    events.emit('state', { revision: 2, kernel_id: 'k1', state: 'paused' });
    document.dispatchEvent(new Event('visibilitychange'));
    await new Promise(resolve => setTimeout(resolve, 30));
    expect(client.count('state')).toBe(1);
  });
});
