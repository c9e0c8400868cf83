/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { INotebookCellExecutor } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';

import { PauseActions } from '../actions';
import type { KernelRow } from '../api/records';
import { PauseCellExecutor } from '../executor';
import { PauseManager } from '../manager';
import { ScriptedClient, operation, refusal, row, state } from './helpers';

const trans = nullTranslator.load('jupyter_pause');

/** What a cell of a notebook is to an executor. */
function cell(name: string, source = 'x', type = 'code') {
  const model = {
    type,
    executionState: 'idle',
    sharedModel: { getSource: () => source }
  };
  return {
    model,
    options: {
      cell: { model, isDisposed: false, name },
      sessionContext: { session: { kernel: { id: 'k1' } } }
    } as unknown as INotebookCellExecutor.IRunCellOptions
  };
}

describe('PauseCellExecutor', () => {
  let client: ScriptedClient;
  let manager: PauseManager;
  let ran: string[];
  let asked: KernelRow[];
  let consent: boolean;
  let executor: PauseCellExecutor;

  const create = async (kernel: KernelRow) => {
    client.stateAnswer = state(1, [kernel]);
    manager = new PauseManager({
      client,
      throttle: 1,
      interval: 1e6,
      awayInterval: 1e6,
      watchInterval: 5
    });
    await manager.ready;
    executor = new PauseCellExecutor({
      manager,
      actions: new PauseActions({ manager, trans }),
      trans,
      run: async options => {
        ran.push((options.cell as unknown as { name: string }).name);
        return true;
      },
      ask: async kernel => {
        asked.push(kernel);
        return consent;
      }
    });
  };

  /** The resume that the executor will ask for ends like this, and leaves the kernel like that. */
  const resumeEnds = (ended: 'done' | 'failed', kernel: KernelRow) => {
    client.operations.set('op2', {
      ...operation({ kind: 'resume', id: 'op2', state: ended })
    });
    const { operation: ask } = client;
    client.operation = async id => {
      client.stateAnswer = state(3, [kernel]);
      return ask.call(client, id);
    };
  };

  beforeEach(() => {
    client = new ScriptedClient();
    ran = [];
    asked = [];
    consent = true;
  });

  afterEach(() => {
    manager.dispose();
  });

  it('runs cells of a live kernel without a question', async () => {
    await create(row());
    expect(await executor.runCell(cell('a').options)).toBe(true);
    expect(ran).toEqual(['a']);
    expect(asked).toEqual([]);
  });

  it('asks once for a whole batch, resumes once, and keeps the order', async () => {
    await create(row({ state: 'paused' }));
    resumeEnds('done', row({ state: 'ready' }));
    const results = await Promise.all(
      ['a', 'b', 'c'].map(name => executor.runCell(cell(name).options))
    );
    expect(results).toEqual([true, true, true]);
    expect(ran).toEqual(['a', 'b', 'c']);
    expect(asked.length).toBe(1);
    expect(client.count('resume')).toBe(1);
  });

  it('runs nothing without consent, and leaves no cell waiting', async () => {
    consent = false;
    await create(row({ state: 'paused' }));
    const { model, options } = cell('a');
    expect(await executor.runCell(options)).toBe(false);
    expect(ran).toEqual([]);
    expect(model.executionState).toBe('idle');
    expect(client.count('resume')).toBe(0);
  });

  it('shows a cell as waiting while the kernel comes back', async () => {
    await create(row({ state: 'paused' }));
    resumeEnds('done', row({ state: 'ready' }));
    const { model, options } = cell('a');
    const running = executor.runCell(options);
    expect(model.executionState).toBe('running');
    await running;
  });

  it('runs nothing when the resume failed', async () => {
    await create(row({ state: 'paused' }));
    resumeEnds('failed', row({ state: 'paused' }));
    const { model, options } = cell('a');
    expect(await executor.runCell(options)).toBe(false);
    expect(ran).toEqual([]);
    expect(model.executionState).toBe('idle');
  });

  it('runs nothing when the resume was refused', async () => {
    await create(row({ state: 'paused' }));
    client.resumeAnswers = [refusal('session_held')];
    expect(await executor.runCell(cell('a').options)).toBe(false);
    expect(ran).toEqual([]);
  });

  it('asks again for the next batch', async () => {
    consent = false;
    await create(row({ state: 'paused' }));
    await executor.runCell(cell('a').options);
    await executor.runCell(cell('b').options);
    expect(asked.length).toBe(2);
  });

  it('waits without a question when the person resumed already', async () => {
    await create(row({ state: 'resuming' }));
    const running = executor.runCell(cell('a').options);
    client.stateAnswer = state(2, [row({ state: 'ready' })]);
    await manager.refresh();
    expect(await running).toBe(true);
    expect(asked).toEqual([]);
    expect(client.count('resume')).toBe(0);
  });

  it('needs no kernel for text and empty cells', async () => {
    await create(row({ state: 'paused' }));
    await executor.runCell(cell('text', 'x', 'markdown').options);
    await executor.runCell(cell('empty', ' \n').options);
    expect(ran).toEqual(['text', 'empty']);
    expect(asked).toEqual([]);
  });

  it('runs after a pause that was cancelled, without a resume', async () => {
    await create(row({ state: 'pausing' }));
    const running = executor.runCell(cell('a').options);
    await Promise.resolve();
    client.stateAnswer = state(2, [row({ state: 'running' })]);
    await manager.refresh();
    expect(await running).toBe(true);
    expect(client.count('resume')).toBe(0);
  });
});
