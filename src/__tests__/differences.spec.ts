/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';

import {
  devicesOf,
  devicesSentence,
  differenceName,
  differenceSentence,
  differenceValue
} from '../differences';

const trans = nullTranslator.load('jupyter_pause');
const row = (
  kind: 'gpu' | 'gpu_place' | 'image' | undefined,
  saved: string | null,
  current: string | null
) => ({ name: kind ?? 'numpy', kind, saved, current });

describe('differences', () => {
  it.each([
    ['gpu', '1 x A100', '1 x L4', 'GPUs: 1 x A100 when saved, 1 x L4 now.'],
    ['gpu', '1 x A100', '', 'GPUs: 1 x A100 when saved, none now.'],
    ['gpu', '1 x A100', null, 'GPUs: 1 x A100 when saved, not known now.'],
    [
      'gpu_place',
      'A100 at 0',
      'A100 at 1',
      'Place of the GPUs: A100 at 0 when saved, A100 at 1 now.'
    ],
    ['image', 'a:1', null, 'Container image: a:1 when saved, not known now.']
  ] as const)('S18: %s, %s, %s', (kind, saved, current, sentence) => {
    expect(differenceSentence(row(kind, saved, current), trans)).toBe(sentence);
  });

  it('calls a package that is gone not there, and by its name', () => {
    const gone = row(undefined, '2.4.6', null);
    expect(differenceName(gone, trans)).toBe('numpy');
    expect(differenceValue(gone, null, trans)).toBe('not there');
  });

  it('names the devices of arrays once', () => {
    const rows = [
      { ...row('gpu', '1 x A100', ''), devices: ['mps', 'cuda'] },
      { ...row('image', 'a', 'b'), devices: ['cuda'] },
      row(undefined, '1', '2')
    ];
    expect(devicesOf(rows)).toEqual(['cuda', 'mps']);
    expect(devicesSentence(devicesOf(rows), trans)).toContain('(cuda, mps)');
    expect(devicesOf([row('gpu', 'a', 'b')])).toEqual([]);
  });
});
