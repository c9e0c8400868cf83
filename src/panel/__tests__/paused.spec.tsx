/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';
import React from 'react';

import { row } from '../../__tests__/helpers';
import { Rendered } from '../../__tests__/rendered';
import type { PauseReport } from '../../api/records';
import { deviceMemory, PausedReport } from '../paused';

const trans = nullTranslator.load('jupyter_pause');
const GIB = 2 ** 30;
const TIME = '2026-11-30T10:00:00.000Z';

const report = (changes: Partial<PauseReport> = {}): PauseReport => ({
  kernel: 'k1',
  at: TIME,
  checkpoint: 'c1',
  bytes: 2048,
  seconds: 1.5,
  rss_before: 3 * GIB,
  process_gone: true,
  ...changes
});

describe('S43: memory of a GPU after a pause', () => {
  it.each([
    [20 * GIB, 3 * GIB, '20 GiB in use before, 3 GiB after'],
    [20 * GIB, 20 * GIB, '20 GiB in use before, 20 GiB after: not less'],
    [0, 0, '0 B in use before, 0 B after'],
    [20 * GIB, null, '20 GiB in use before; afterwards unknown']
  ])('says both numbers: %p, %p', (before, after, said) => {
    expect(deviceMemory({ device: 'GPU 0', before, after }, trans)).toBe(said);
  });
});

describe('PausedReport', () => {
  let shown: Rendered | null = null;
  afterEach(() => shown?.dispose());

  const show = async (last_pause: PauseReport | null) => {
    const checkpoint = {
      id: 'c1',
      created: TIME,
      bytes: 2048,
      via: 'checkpoint' as const
    };
    const paused = row({ state: 'paused', checkpoint, last_pause });
    shown = await Rendered.of(<PausedReport row={paused} trans={trans} />);
    return shown.text;
  };

  it('says what is kept, by both ways, what was freed and what was tried out', async () => {
    const text = await show(
      report({
        snapshot: 's1',
        snapshot_bytes: 40 * 2 ** 20,
        shadow: {
          state: 'not_checked',
          code: 'time',
          params: {},
          seconds: 60,
          compared: 0,
          objects: 0,
          unseen: 0,
          unchecked: []
        }
      })
    );
    expect(text).toContain('2 KiB in a checkpoint');
    expect(text).toContain('40 MiB in an exact snapshot');
    expect(text).toContain('3 GiB');
    expect(text).toContain('not checked: it took longer');
  });

  it('claims no freed memory where the process was not seen to end', async () => {
    expect(await show(report({ process_gone: false }))).toContain('unknown');
  });

  it('says only what it knows after a restart of the server', async () => {
    const text = await show(null);
    expect(text).toContain('2 KiB in a checkpoint');
    expect(text).not.toContain('Memory freed');
  });
});
