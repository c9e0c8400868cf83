/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { ConnectionOwner, OutageKeeper } from '../connection';
import { PauseManager } from '../manager';
import { ScriptedClient, refusal, row, state } from './helpers';

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
  const run = async (kernel: ReturnType<typeof row>) => {
    const client = new ScriptedClient();
    client.stateAnswer = state(1, [kernel]);
    const flag = { isConnected: true };
    const manager = new PauseManager({ client, awayInterval: 1e6 });
    await manager.ready;
    const keeper = new OutageKeeper(manager, new ConnectionOwner(flag));
    const seen = [flag.isConnected];
    client.stateAnswer = refusal('server_unreachable', 0);
    await manager.refresh();
    seen.push(flag.isConnected);
    client.stateAnswer = state(1, [kernel]);
    await manager.refresh();
    seen.push(flag.isConnected);
    keeper.dispose();
    manager.dispose();
    return seen;
  };

  it('keeps the application quiet while a server with paused sessions is away', async () => {
    expect(await run(row({ state: 'paused' }))).toEqual([true, false, true]);
  });

  it('leaves any other outage to the application', async () => {
    expect(await run(row())).toEqual([true, true, true]);
  });

  it('gives the flag back when it is disposed during an outage', async () => {
    const client = new ScriptedClient();
    client.stateAnswer = state(1, [row({ state: 'paused' })]);
    const flag = { isConnected: true };
    const manager = new PauseManager({ client, awayInterval: 1e6 });
    await manager.ready;
    const keeper = new OutageKeeper(manager, new ConnectionOwner(flag));
    client.stateAnswer = refusal('server_unreachable', 0);
    await manager.refresh();
    keeper.dispose();
    expect(flag.isConnected).toBe(true);
    manager.dispose();
  });
});
