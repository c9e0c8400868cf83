/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Difference } from './api/records';

/**
 * What differs: a package or module by its name, the machine in words.
 */
export function differenceName(
  difference: Difference,
  trans: TranslationBundle
): string {
  switch (difference.kind) {
    case 'gpu':
      return trans.__('GPUs');
    case 'gpu_place':
      return trans.__('Place of the GPUs');
    case 'image':
      return trans.__('Container image');
    default:
      return difference.name;
  }
}

/**
 * One of its two values. Of a package, nothing is "not there"; of the machine it is "not known", never the same.
 */
export function differenceValue(
  difference: Difference,
  value: string | null,
  trans: TranslationBundle
): string {
  if (!difference.kind) {
    return value ?? trans.__('not there');
  }
  return value === null ? trans.__('not known') : value || trans.__('none');
}

/**
 * Kinds of devices that hold arrays of the checkpoint, where their machine is another one.
 */
export function devicesOf(differences: readonly Difference[]): string[] {
  return Array.from(
    new Set(differences.flatMap(difference => difference.devices ?? []))
  ).sort();
}

/**
 * What becomes of arrays on a device that is not there.
 */
export function devicesSentence(
  devices: readonly string[],
  trans: TranslationBundle
): string {
  return trans.__(
    'The checkpoint holds arrays on a device (%1). Where that device is not there, they come back in main memory if their library can do that, and else are named as lost.',
    devices.join(', ')
  );
}

/**
 * A difference in one sentence, for a resume that has gone through.
 */
export function differenceSentence(
  difference: Difference,
  trans: TranslationBundle
): string {
  return trans.__(
    '%1: %2 when saved, %3 now.',
    differenceName(difference, trans),
    differenceValue(difference, difference.saved, trans),
    differenceValue(difference, difference.current, trans)
  );
}
