/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Contents, Kernel } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { save } from '../documents';
import { PauseManager } from '../manager';
import { pathName } from '../names';
import { progressOf } from '../notifications';
import { placeNote, sortItems } from '../panel/items';
import { cameBack, revive } from '../reconnect';
import { RequestLog } from '../remaining';
import { actView, progressParts } from '../view';
import { ScriptedClient, operation, refusal, row, state } from './helpers';

const trans = nullTranslator.load('jupyter_pause');

describe('actView', () => {
  const viewOf = async (
    answer: ScriptedClient['stateAnswer'],
    kernel: string | null = 'k1'
  ) => {
    const client = new ScriptedClient();
    client.stateAnswer = answer;
    const manager = new PauseManager({ client });
    await manager.ready;
    const { act, enabled, caption } = actView(manager, kernel, trans);
    manager.dispose();
    return { act, enabled, caption };
  };

  it.each([
    ['running', 'pause', true],
    ['ready', 'pause', true],
    ['paused', 'resume', true],
    ['pausing', 'busy', true],
    ['resuming', 'busy', true],
    ['waiting', 'busy', true],
    ['unknown', 'pause', false]
  ] as const)('%s', async (value, act, enabled) => {
    const view = await viewOf(state(1, [row({ state: value })]));
    expect(view).toMatchObject({ act, enabled });
  });

  it('is disabled with the reason, never gone', async () => {
    const reason = { code: 'not_python', message: '', params: {} };
    const view = await viewOf(state(1, [row({ pausable: false, reason })]));
    expect(view.enabled).toBe(false);
    expect(view.caption).toContain('Only Python');
    expect((await viewOf(state(1), null)).caption).toContain('no kernel');
    const missing = await viewOf(refusal('server_part_missing', 404));
    expect(missing).toMatchObject({ act: 'pause', enabled: false });
    expect(missing.caption).toContain('server extension enable');
  });

  it('does not resume what another server holds', async () => {
    const reason = { code: 'session_held', message: '', params: {} };
    const view = await viewOf(
      state(1, [row({ state: 'paused', pausable: false, reason })])
    );
    expect(view).toMatchObject({ act: 'resume', enabled: false });
  });
});

describe('progress', () => {
  it('shows phase, bytes and time, those that are known', () => {
    const some = operation({ bytes_done: 1024, bytes_total: 2048, elapsed: 3 });
    expect(progressParts(some, trans)).toEqual([
      'saving',
      '1 KiB of 2 KiB',
      '3 s'
    ]);
    expect(progressOf(some)).toBe(0.5);
    const none = operation({ phase: null, elapsed: 12 });
    expect(progressParts(none, trans)).toEqual(['12 s']);
    expect(progressOf(none)).toBeUndefined();
  });
});

describe('items', () => {
  const item = (name: string, fate: string, bytes: number | null) =>
    ({ name, fate, bytes, details: {} }) as never;

  it('come losses first, then by size', () => {
    const names = sortItems([
      item('small', 'in checkpoint', 1),
      item('big', 'in checkpoint', 9),
      item('kept', 'kept', 99),
      item('mystery', 'unknown', null),
      item('lost', 'lost', 0)
    ]).map(({ name }) => name);
    expect(names).toEqual(['lost', 'mystery', 'big', 'small', 'kept']);
  });

  it('say what a folder is for', () => {
    const details = { uses: ['home', 'checkpoint folder'], storage: 'network' };
    expect(placeNote({ details } as never, trans)).toBe(
      'home folder, checkpoint folder, network storage'
    );
    expect(placeNote({ details: {} } as never, trans)).toBeNull();
  });
});

describe('names', () => {
  it('are those of files, and of consoles', () => {
    expect(pathName('work/a.ipynb', trans)).toBe('a.ipynb');
    expect(
      pathName('console-2-03695414-f528-476a-8fce-8b0fa10acbbd', trans)
    ).toBe('Console 2');
  });
});

describe('save', () => {
  const context = (changes: object) =>
    ({
      isReady: true,
      model: { dirty: true, readOnly: false },
      ...changes
    }) as unknown as DocumentRegistry.Context;

  /** A disk on which the file was written at that time. */
  const disk = (modified = '2026-11-30T10:00:00Z') =>
    ({
      get: async () => ({ last_modified: modified })
    }) as unknown as Contents.IManager;

  it('needs no write when nothing was typed', async () => {
    const clean = { model: { dirty: false, readOnly: false } };
    expect(await save(context(clean), disk(), 1000)).toBe(true);
  });

  it('writes what was typed', async () => {
    const model = { dirty: true, readOnly: false };
    const dirty = context({
      model,
      save: async () => {
        model.dirty = false;
      }
    });
    expect(await save(dirty, disk(), 1000)).toBe(true);
  });

  it('leaves a file alone that another tab has just written', async () => {
    const known = { last_modified: '2026-11-30T10:00:00Z' };
    let saves = 0;
    const mine = context({
      model: { dirty: true, readOnly: false },
      contentsModel: known,
      save: async () => {
        saves += 1;
      }
    });
    expect(await save(mine, disk('2026-11-30T10:00:02Z'), 1000)).toBe(false);
    expect(saves).toBe(0);
    await save(mine, disk('2026-11-30T10:00:00Z'), 1000);
    expect(saves).toBe(1);
  });

  it('says so when it fails, is late, or may not write', async () => {
    const error = jest.spyOn(console, 'error').mockImplementation(() => {});
    const failing = { save: () => Promise.reject(new Error('disk full')) };
    expect(await save(context(failing), disk(), 1000)).toBe(false);
    const hanging = { save: () => new Promise(() => {}) };
    expect(await save(context(hanging), disk(), 5)).toBe(false);
    const locked = { model: { dirty: true, readOnly: true } };
    expect(await save(context(locked), disk(), 1000)).toBe(false);
    error.mockRestore();
  });
});

describe('revive', () => {
  const kernel = (changes: object) => {
    const calls: string[] = [];
    return {
      calls,
      connection: {
        isDisposed: false,
        connectionStatus: 'connected',
        requestKernelInfo: async () => {
          calls.push('info');
        },
        reconnect: async () => {
          calls.push('reconnect');
        },
        ...changes
      } as unknown as Kernel.IKernelConnection
    };
  };

  it('keeps a connection that works: answers travel on it', async () => {
    const { calls, connection } = kernel({});
    await revive(connection, false);
    expect(calls).toEqual(['info']);
  });

  it('connects anew when ports changed, when it is lost, and when nobody answers', async () => {
    const moved = kernel({});
    await revive(moved.connection, true);
    expect(moved.calls).toEqual(['reconnect']);
    const lost = kernel({ connectionStatus: 'disconnected' });
    await revive(lost.connection, false);
    expect(lost.calls).toEqual(['reconnect']);
    const silent = kernel({ requestKernelInfo: () => new Promise(() => {}) });
    await revive(silent.connection, false, 5);
    expect(silent.calls).toEqual(['reconnect']);
  });

  it('is for kernels that have a process again', () => {
    const from = (before: string, after: string) =>
      cameBack(row({ state: before as never }), row({ state: after as never }));
    expect(from('resuming', 'ready')).toBe(true);
    expect(from('paused', 'running')).toBe(true);
    expect(from('pausing', 'running')).toBe(false);
    expect(from('ready', 'running')).toBe(false);
  });
});

describe('RequestLog', () => {
  const send = (
    signal: Signal<object, unknown>,
    id: string,
    cellId: string | undefined,
    type = 'execute_request'
  ) =>
    signal.emit({
      direction: 'send',
      msg: {
        header: { msg_id: id, msg_type: type },
        metadata: cellId ? { cellId } : {}
      }
    });

  it('finds the cells behind requests, without those that ran since', () => {
    const anyMessage = new Signal<object, unknown>({});
    const kernelChanged = new Signal<object, unknown>({});
    const context = {
      kernelChanged,
      session: { kernel: { anyMessage } }
    } as unknown as ISessionContext;
    const log = new RequestLog(context);
    send(anyMessage, 'm1', 'first');
    send(anyMessage, 'm2', 'second');
    send(anyMessage, 'm3', 'third');
    send(anyMessage, 'm4', undefined);
    send(anyMessage, 'm5', 'third', 'complete_request');
    expect(log.cellsOf(['m2', 'm3', 'm4', 'other'], [])).toEqual([
      'second',
      'third'
    ]);
    send(anyMessage, 'm6', 'second');
    expect(log.cellsOf(['m2', 'm3'], [])).toEqual(['third']);
    log.dispose();
    send(anyMessage, 'm7', 'third');
    expect(log.cellsOf(['m3'], [])).toEqual(['third']);
  });
});
