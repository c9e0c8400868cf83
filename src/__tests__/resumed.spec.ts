/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';

import { deviceMemory } from '../panel/resumed';

const trans = nullTranslator.load('jupyter_pause');
const GIB = 2 ** 30;

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
