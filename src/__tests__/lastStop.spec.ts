/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { StoppedKernel, StopReport } from '../api/records';
import { LastStopNotifier, stopText } from '../lastStop';
import type { IPauseManager } from '../tokens';
import { state } from './helpers';

const trans = nullTranslator.load('test');

function kernel(changes: Partial<StoppedKernel> = {}): StoppedKernel {
  return {
    kernel: 'k1',
    path: 'work/a.ipynb',
    name: null,
    saved: false,
    checkpoint: null,
    code: 'stopped_unsaved',
    losses: 0,
    interrupted: false,
    ...changes
  };
}

function stop(changes: Partial<StopReport> = {}): StopReport {
  return {
    at: '2026-11-30T10:00:00.000Z',
    cause: 'ordered',
    limit: 25,
    seconds: 25,
    kernels: [kernel()],
    ...changes
  };
}

describe('stopText', () => {
  it('names the notebook and the reason', () => {
    const text = stopText(stop(), trans);
    expect(text).toContain('variables of a.ipynb could not be saved');
    expect(text).toContain('not enough time');
  });

  it('says that an older checkpoint is there', () => {
    const kernels = [kernel({ checkpoint: 'c1' })];
    expect(stopText(stop({ kernels }), trans)).toContain('older checkpoint');
  });

  it('names several at once', () => {
    const kernels = [
      kernel(),
      kernel({ path: 'b.ipynb' }),
      kernel({ path: 'saved.ipynb', saved: true })
    ];
    const text = stopText(stop({ kernels }), trans);
    expect(text).toContain('2 notebooks could not be saved: a.ipynb, b.ipynb');
    expect(text).not.toContain('saved.ipynb');
  });

  it('is silent about what was saved, and about what a person did', () => {
    expect(
      stopText(stop({ kernels: [kernel({ saved: true })] }), trans)
    ).toBeNull();
    expect(stopText(stop({ cause: 'terminal' }), trans)).toBeNull();
  });
});

describe('LastStopNotifier', () => {
  it('tells once, also after a reload', () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value)
    };
    const manager = { state: { ...state(1), last_stop: stop() } };
    const changed = new Signal<object, void>(manager);
    const told = jest.spyOn(Notification, 'warning').mockReturnValue('id');
    const make = () =>
      new LastStopNotifier({
        manager: Object.assign(manager, {
          changed
        }) as unknown as IPauseManager,
        storage,
        trans
      });
    const first = make();
    changed.emit();
    expect(told).toHaveBeenCalledTimes(1);
    first.dispose();
    make().dispose();
    expect(told).toHaveBeenCalledTimes(1);
  });
});
