/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

/**
 * Why something is lost, rebuilt or unknown. Codes of ours become sentences; anything else (the message of
 * an object that refused to be saved, for one) is shown as it is.
 */
export function reasonSentence(
  reason: string,
  trans: TranslationBundle
): string {
  switch (reason) {
    case 'not_known':
    case 'unknown':
      return trans.__('not known');
    default:
      return reason;
  }
}
