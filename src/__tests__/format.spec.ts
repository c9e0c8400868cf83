/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';

import { formatBytes, formatDuration, formatSize, localeOf } from '../format';

const trans = nullTranslator.load('jupyter_pause');

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [1023, '1,023 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [300 * 1024 * 1024, '300 MiB'],
    [1.25 * 1024 ** 3, '1.25 GiB'],
    [5000 * 1024 ** 4, '5,000 TiB']
  ])('%d', (bytes, text) => {
    expect(formatBytes(bytes, 'en')).toBe(text);
  });

  it('follows the language', () => {
    expect(formatBytes(1536, 'de')).toBe('1,5 KiB');
  });
});

describe('formatSize', () => {
  it('says what is not known, and what is only a lower bound', () => {
    expect(formatSize(null, true, trans)).toBe('size unknown');
    expect(formatSize(2048, false, trans)).toBe('at least 2 KiB');
    expect(formatSize(2048, true, trans)).toBe('2 KiB');
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0 s'],
    [0.44, '0.4 s'],
    [9.99, '10 s'],
    [59.4, '59 s'],
    [185, '3 min 5 s'],
    [3600, '1 h 0 min'],
    [90000, '1 d 1 h']
  ])('%d', (seconds, text) => {
    expect(formatDuration(seconds, trans)).toBe(text);
  });
});

describe('localeOf', () => {
  it('makes a language tag of a locale name, or leaves it to the browser', () => {
    const of = (locale: string) =>
      localeOf({ ...trans, locale } as unknown as typeof trans);
    expect(of('de_DE')).toBe('de-DE');
    expect(of('not a locale')).toBeUndefined();
    expect(of('')).toBeUndefined();
  });
});
