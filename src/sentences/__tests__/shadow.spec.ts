/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';

import type { ShadowReport } from '../../api/records';
import { triedOut } from '../shadow';

const trans = nullTranslator.load('jupyter_pause');
const CHECKED: ShadowReport = {
  state: 'checked',
  code: null,
  params: {},
  seconds: 0.6,
  compared: 12,
  objects: 3,
  unseen: 0,
  unchecked: []
};

describe('triedOut', () => {
  it('says how much was compared', () => {
    expect(triedOut(CHECKED, trans)).toBe('loaded once, 12 variables compared');
  });

  it('names what could not be checked', () => {
    const loss = {
      name: 'db',
      path: 'cfg["db"]',
      type: 't',
      reason: '',
      cell: null
    };
    expect(triedOut({ ...CHECKED, unchecked: [loss] }, trans)).toBe(
      'loaded once, 12 variables compared; not checked: cfg["db"]'
    );
  });

  it.each([
    ['off', 'not checked: it is switched off (PauseApp.shadow_load)'],
    ['a newer code', 'not checked: the process for it could not be used']
  ])('says why nothing was checked: %s', (code, said) => {
    expect(triedOut({ ...CHECKED, state: 'not_checked', code }, trans)).toBe(
      said
    );
  });

  it('says where it came to an end', () => {
    expect(triedOut({ ...CHECKED, code: 'time' }, trans)).toContain(
      'not to its end: it took longer'
    );
  });
});
