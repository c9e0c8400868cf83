/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import { PauseActions } from '../actions';
import { PauseManager } from '../manager';
import {
  ScriptedClient,
  operation,
  refusal,
  row,
  state,
  until
} from './helpers';

const trans = nullTranslator.load('jupyter_pause');

/** Press a button of the open dialog once it says what is expected. */
async function press(label: string, ...expected: string[]): Promise<void> {
  const find = () =>
    Array.from(
      document.querySelectorAll<HTMLElement>('.jp-Dialog button')
    ).find(button => button.textContent === label);
  await until(() => !!find());
  await until(() => {
    const text = document.querySelector('.jp-Dialog')!.textContent!;
    return expected.every(part => text.includes(part));
  });
  find()!.click();
  await until(() => document.querySelector('.jp-Dialog') === null);
}

describe('PauseActions', () => {
  let client: ScriptedClient;
  let manager: PauseManager;
  let actions: PauseActions;
  const losses = [
    { name: 'cfg', path: 'cfg["lock"]', type: 'lock', reason: 'no', cell: 4 }
  ];

  beforeEach(async () => {
    client = new ScriptedClient();
    manager = new PauseManager({ client, throttle: 1, watchInterval: 1e6 });
    await manager.ready;
    actions = new PauseActions({ manager, trans });
  });

  afterEach(() => {
    manager.dispose();
    Notification.dismiss();
  });

  it('pauses without a question when nothing would be lost', async () => {
    const begun = await actions.pause(['k1']);
    expect(begun?.id).toBe('op1');
    expect(actions.beganHere('op1')).toBe(true);
    expect(document.querySelector('.jp-Dialog')).toBeNull();
  });

  it('names the losses, and pauses only with consent', async () => {
    client.pauseAnswers = [refusal('would_lose', 422, { losses })];
    const pausing = actions.pause(['k1']);
    await press('Pause anyway', 'cfg["lock"]', 'made by cell [4]');
    expect((await pausing)?.id).toBe('op1');
    const sent = client.calls.filter(([call]) => call === 'pause');
    expect(sent.map(([, options]) => options)).toEqual([
      { kernels: ['k1'], onLoss: 'refuse' },
      { kernels: ['k1'], onLoss: 'accept' }
    ]);
  });

  it('takes a button that is pressed twice for one that is pressed once', async () => {
    client.pauseAnswers = [refusal('would_lose', 422, { losses })];
    const pressed = [actions.pause(['k1']), actions.pause(['k1'])];
    await press('Pause anyway', 'cfg["lock"]');
    const ids = (await Promise.all(pressed)).map(begun => begun?.id);
    expect(ids).toEqual(['op1', 'op1']);
    expect(client.calls.filter(([call]) => call === 'pause')).toHaveLength(2);
    // It can be pressed again afterwards.
    await actions.pause(['k1']);
    expect(client.calls.filter(([call]) => call === 'pause')).toHaveLength(3);
  });

  it('does nothing when the person cancels', async () => {
    client.pauseAnswers = [refusal('would_lose', 422, { losses })];
    const pausing = actions.pause(['k1']);
    await press('Cancel');
    expect(await pausing).toBeNull();
    expect(client.count('pause')).toBe(1);
  });

  it('asks before every pause if the person wants that', async () => {
    actions = new PauseActions({ manager, trans, alwaysConfirm: () => true });
    const pausing = actions.pause(['k1']);
    await press('Cancel', 'Pause a.ipynb?');
    expect(await pausing).toBeNull();
    expect(client.count('pause')).toBe(0);
  });

  it('shows what differs before a resume', async () => {
    const differences = [{ name: 'numpy', saved: '2.0', current: null }];
    client.resumeAnswers = [
      refusal('environment_differs', 422, { differences })
    ];
    const resuming = actions.resume('k1');
    await press('Resume anyway', 'numpy', 'not there');
    expect((await resuming)?.id).toBe('op2');
    const last = client.calls.filter(([call]) => call === 'resume').pop();
    expect(last?.[1]).toMatchObject({ on_difference: 'accept' });
  });

  it('joins an operation that is at work', async () => {
    client.stateAnswer = state(2, [row()], operation({ id: 'running' }));
    client.pauseAnswers = [
      refusal('operation_in_progress', 409, { operation: 'running' })
    ];
    expect((await actions.pause(['k1']))?.id).toBe('running');
    expect(Notification.manager.count).toBe(0);
  });

  it('says in one sentence what went wrong', async () => {
    client.pauseAnswers = [refusal('unwritable')];
    expect(await actions.pause(['k1'])).toBeNull();
    expect(Notification.manager.notifications[0].message).toContain(
      'checkpoint folder cannot be written'
    );
  });

  it('answers the question of an operation once', async () => {
    const asking = operation({
      state: 'needs_decision',
      question: {
        code: 'would_lose',
        decisions: ['accept', 'refuse'],
        losses,
        differences: []
      }
    });
    client.stateAnswer = state(2, [row()], asking);
    await manager.refresh();
    const answers = [actions.answer(asking), actions.answer(asking)];
    await press('Cancel');
    await Promise.all(answers);
    const decisions = client.calls.filter(([call]) => call === 'decide');
    expect(decisions).toEqual([['decide', 'op1', 'refuse']]);
  });

  it('deletes a checkpoint only after asking, and asks again when it is needed', async () => {
    const forced: boolean[] = [];
    client.deleteCheckpoint = async (_, force) => {
      forced.push(force);
      if (!force) {
        throw refusal('checkpoint_in_use');
      }
    };
    const deleting = actions.deleteCheckpoint('c1');
    await press('Delete');
    await press('Delete all the same');
    expect(await deleting).toBe(true);
    expect(forced).toEqual([false, true]);
  });
});
