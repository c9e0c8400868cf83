/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { ShadowReport } from '../api/records';
import type { Sentences } from './table';
import { sentenceIn } from './table';

/** Why a checkpoint was not loaded once before its kernel ended. */
const NOT_TRIED: Sentences = {
  off: trans => trans.__('it is switched off (PauseApp.shadow_load)'),
  time: trans =>
    trans.__('it took longer than PauseApp.shadow_load_timeout allows'),
  memory: trans => trans.__('there was not enough memory for it'),
  stopping: trans => trans.__('the server was being stopped'),
  fallback: trans =>
    trans.__('it is the second net of a pause of the whole workspace'),
  orphaned: trans => trans.__('the kernel saved itself without a server'),
  no_interpreter: trans =>
    trans.__('the Python of the kernel could not be started a second time'),
  not_reached: trans => trans.__('the pause ended before its turn')
};

/**
 * What is known of a checkpoint from loading it once in a throw-away process. What was not checked is said.
 */
export function triedOut(
  report: ShadowReport,
  trans: TranslationBundle
): string {
  if (report.state === 'not_checked') {
    return trans.__('not checked: %1', whyNot(report, trans));
  }
  const compared = trans._n(
    'loaded once, one variable compared',
    'loaded once, %1 variables compared',
    report.compared
  );
  const names = report.unchecked.map(loss => loss.path).join(', ');
  const parts = [
    compared,
    report.code ? trans.__('not to its end: %1', whyNot(report, trans)) : '',
    names ? trans.__('not checked: %1', names) : ''
  ];
  return parts.filter(part => part).join('; ');
}

function whyNot(report: ShadowReport, trans: TranslationBundle): string {
  return (
    sentenceIn([NOT_TRIED], report.code ?? '', report.params, trans) ??
    trans.__('the process for it could not be used')
  );
}
