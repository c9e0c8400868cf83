/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { KernelRow } from '../api/records';
import type { IConnectionFlag } from '../connection';
import { ConnectionOwner } from '../connection';
import { PauseManager } from '../manager';
import { OutageKeeper } from '../outage';
import { ScriptedClient, refusal, row, state, until } from './helpers';

describe('ConnectionOwner', () => {
  it('gives the flag back with the last reason, once each', () => {
    const flag = { isConnected: true };
    const owner = new ConnectionOwner(flag);
    const first = owner.hold();
    const second = owner.hold();
    first.dispose();
    first.dispose();
    expect(flag.isConnected).toBe(false);
    second.dispose();
    expect(flag.isConnected).toBe(true);
  });
});

describe('OutageKeeper', () => {
  let client: ScriptedClient;
  let manager: PauseManager;
  let keeper: OutageKeeper;
  let flag: IConnectionFlag;

  const create = async (kernel: KernelRow, limit?: number) => {
    client = new ScriptedClient();
    client.stateAnswer = state(1, [kernel]);
    manager = new PauseManager({ client, awayInterval: 1e6 });
    await manager.ready;
    flag = { isConnected: true };
    keeper = new OutageKeeper({
      manager,
      connection: new ConnectionOwner(flag),
      shell: { widgets: () => [][Symbol.iterator]() } as never,
      limit
    });
  };

  const goAway = async () => {
    client.stateAnswer = refusal('server_unreachable', 0);
    await manager.refresh();
  };

  afterEach(() => {
    keeper.dispose();
    manager.dispose();
  });

  it('keeps the application quiet while a server with paused sessions is away', async () => {
    await create(row({ state: 'paused' }));
    await goAway();
    expect(flag.isConnected).toBe(false);
    client.stateAnswer = state(1);
    await manager.refresh();
    expect(flag.isConnected).toBe(true);
  });

  it('does nothing for a kernel that is paused by a server that answers', async () => {
    await create(row({ state: 'paused' }));
    await manager.refresh();
    expect(flag.isConnected).toBe(true);
  });

  it('leaves any other outage to the application', async () => {
    await create(row());
    await goAway();
    expect(flag.isConnected).toBe(true);
  });

  it('gives the flag back when it is disposed during an outage', async () => {
    await create(row({ state: 'paused' }));
    await goAway();
    keeper.dispose();
    expect(flag.isConnected).toBe(true);
  });

  it('gives the flag back when the time is up', async () => {
    await create(row({ state: 'paused' }), 10);
    await goAway();
    await until(() => flag.isConnected);
    expect(keeper.holds).toBe(false);
  });
});
