/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';
import React from 'react';

import { row } from '../../__tests__/helpers';
import { Rendered } from '../../__tests__/rendered';
import { answer, report, workspace } from '../../__tests__/workspaces';
import type { KernelRow } from '../../api/records';
import { ColdOffer } from '../colddialog';
import type { ColdStart } from '../coldstart';
import { farewellOf } from '../farewell';
import type { PausedScreenModel } from '../model';
import { Screen } from '../view';
import { coldCommand } from '../words';

const trans = nullTranslator.load('jupyter_pause');
const NOW = Date.parse('2026-11-30T12:00:00.000Z');

describe('Screen', () => {
  let shown: Rendered | null = null;
  afterEach(() => shown?.dispose());

  const done: string[] = [];
  const show = async (
    changes: Partial<PausedScreenModel>,
    kernels: KernelRow[] = [row()],
    stateful = true
  ) => {
    const model = {
      state: 'paused',
      enteredAt: NOW - 90_000,
      farewell: farewellOf(
        { ...answer({ state: 'paused', stateful }), kernels },
        null,
        null,
        NOW
      ),
      canResume: true,
      canLook: true,
      elsewhere: false,
      resume: () => {
        done.push('resume');
        return Promise.resolve();
      },
      acknowledge: () => done.push('acknowledge'),
      reason: null,
      phase: null,
      heardAt: null,
      askedAt: null,
      usual: null,
      cancellable: null,
      report: null,
      operation: null,
      ...changes
    } as unknown as PausedScreenModel;
    shown = await Rendered.of(
      <Screen
        model={model}
        actions={{
          loadCheckpoints: () => done.push('load'),
          startCold: () => done.push('cold'),
          cancel: () => done.push('cancel'),
          setCollapsed: () => done.push('collapse')
        }}
        now={() => NOW}
        page="https://hub.test/workspace/connect/ann/work/jl/lab"
        trans={trans}
      />
    );
    return shown;
  };

  beforeEach(() => {
    done.length = 0;
  });

  it('says what is kept, since when, and how to come back after a reload', async () => {
    const screen = await show({});
    expect(screen.text).toContain('This workspace is paused');
    expect(screen.text).toContain('Memory of all processes, in a snapshot');
    expect(screen.text).toContain('no checkpoint of it is known here');
    expect(screen.text).toContain('1 min 30 s');
    expect(screen.node.querySelector('a')?.href).toBe(
      'https://hub.test/workspaces/ann/work'
    );
    screen.press('Resume');
    expect(done).toEqual(['resume']);
  });

  it('counts a paused kernel as kept, also where the server went before it told since when', async () => {
    const screen = await show({}, [row({ state: 'paused' })], false);
    expect(screen.text).toContain('Kernel checkpoint of a.ipynb');
    expect(screen.text).not.toContain('no checkpoint');
  });

  it('names the reason for waiting, and the way on without the memory', async () => {
    const screen = await show({
      state: 'waiting',
      canResume: false,
      reason: {
        code: 'unschedulable',
        message: '',
        params: { detail: '0/3 nodes are available' }
      }
    });
    expect(screen.text).toContain('0/3 nodes are available');
    expect(screen.buttons).toContain('Look now');
    screen.press('Start without the memory…');
    expect(done).toEqual(['cold']);
  });

  it('shows each step of a start on another machine, with its time, and a way out', async () => {
    const screen = await show({
      state: 'cold',
      canResume: false,
      askedAt: NOW - 60_000,
      cold: {
        step: 'waiting',
        since: NOW - 20_000,
        cancellable: true,
        cancel: () => done.push('stop')
      } as unknown as ColdStart
    });
    expect(screen.text).toContain('Starting on another machine');
    expect(screen.text).toContain('Step 2 of 3');
    expect(screen.text).toContain('This step20 s');
    expect(screen.text).toContain('Since the request1 min');
    screen.press('Cancel');
    expect(done).toEqual(['stop']);
  });

  it('never speaks of a snapshot to start without where there is none', async () => {
    const screen = await show({ state: 'waiting' }, [row()], false);
    expect(screen.buttons).not.toContain('Start without the memory…');
  });

  it('speaks of the window of JupyterHub only to who opened it', async () => {
    const starting = { state: 'starting', canResume: false } as const;
    expect((await show(starting)).text).not.toContain('JupyterHub');
    shown?.dispose();
    const screen = await show({ ...starting, elsewhere: true });
    expect(screen.text).toContain('Go on in the window of JupyterHub.');
  });

  it('offers the checkpoints where it came back fresh', async () => {
    const screen = await show({
      state: 'fresh',
      canResume: false,
      report: report({
        outcome: 'fresh',
        kernels: [
          {
            kernel: 'k1',
            path: 'a.ipynb',
            mark: false,
            compared: 0,
            mismatched: [],
            checkpoint: '0'.repeat(32)
          }
        ]
      })
    });
    expect(screen.text).not.toContain('Do not reload');
    screen.press('Load the checkpoints');
    screen.press('Go on without');
    expect(done).toEqual(['load', 'acknowledge']);
  });
});

describe('ColdOffer', () => {
  let shown: Rendered | null = null;
  afterEach(() => shown?.dispose());

  const command = coldCommand(workspace());
  const show = async (
    changes: Partial<React.ComponentProps<typeof ColdOffer>>
  ) => {
    shown = await Rendered.of(
      <ColdOffer
        sizes={[]}
        problem={null}
        command={command}
        choose={() => undefined}
        trans={trans}
        {...changes}
      />
    );
    return shown;
  };

  it('offers other machines, says what is lost by that, and has the command for the same one', async () => {
    const chosen: string[] = [];
    const offer = await show({
      sizes: [
        { id: 'l4', name: 'One L4', about: '24 GB' },
        { id: 'cpu', name: 'No GPU', about: '' }
      ],
      choose: size => chosen.push(size)
    });
    expect(offer.text).toContain('One L4 24 GB');
    expect(offer.text).toContain('lost for good');
    expect(offer.text).toContain(
      'jupyter pause resume --namespace ann work --without-memory'
    );
    const radios = offer.node.querySelectorAll<HTMLInputElement>('input');
    expect(Array.from(radios, radio => radio.checked)).toEqual([true, false]);
    radios[1].click();
    expect(chosen).toEqual(['cpu']);
  });

  it('says why there is no choice, in the words of the platform too', async () => {
    const offer = await show({
      problem: {
        code: 'door_refused',
        message: '',
        params: { detail: 'PVC is not mountable' }
      }
    });
    expect(offer.text).toContain('PVC is not mountable');
    expect(offer.text).not.toContain('On another machine');
    expect(offer.text).toContain('--without-memory');
  });
});
