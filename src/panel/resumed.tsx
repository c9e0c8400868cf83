/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { ResumeReport } from '../api/records';
import { differenceSentence } from '../differences';
import { formatBytes, formatDuration, formatTime, localeOf } from '../format';
import { snapshotReason } from '../sentences/snapshots';
import { LossList } from './losses';

/**
 * How the last resume ended, in one word.
 */
export function outcomeSentence(
  report: ResumeReport,
  trans: TranslationBundle
): string {
  switch (report.outcome) {
    case 'restored':
      return trans.__('Restored: everything that was saved is back.');
    case 'partial':
      return trans.__('Partial: what is listed below did not come back.');
    default:
      return trans.__('Fresh: a new, empty kernel. Nothing was brought back.');
  }
}

/**
 * The proof of a resume: by what, what was compared, what was not right.
 */
export function ResumedReport(props: {
  report: ResumeReport;
  trans: TranslationBundle;
}): JSX.Element {
  const { report, trans } = props;
  const { proof } = report;
  const locale = localeOf(trans);
  const bad = [
    ...proof.mismatched,
    ...(proof.buffers?.state === 'mismatch' ? proof.buffers.variables : [])
  ];
  return (
    <>
      <p
        className="jp-Pause-outcome"
        data-outcome={report.outcome}
        role="status"
      >
        {outcomeSentence(report, trans)}
      </p>
      {report.fallback && (
        <p className="jp-Pause-warning">
          {trans.__(
            'By its checkpoint, since the exact snapshot could not be used: %1',
            snapshotReason(report.fallback, trans)
          )}
        </p>
      )}
      {(report.differences ?? []).map(difference => (
        <p key={difference.name} className="jp-Pause-detail">
          {differenceSentence(difference, trans)}
        </p>
      ))}
      <dl className="jp-Pause-facts">
        <dt>{trans.__('When')}</dt>
        <dd>{formatTime(report.at, locale)}</dd>
        <dt>{trans.__('By way of')}</dt>
        <dd>
          {report.via === 'snapshot'
            ? trans.__('snapshot')
            : report.via === 'checkpoint'
              ? trans.__('checkpoint')
              : trans.__('nothing')}
        </dd>
        {report.checkpoint_created && (
          <>
            <dt>{trans.__('Saved')}</dt>
            <dd>{formatTime(report.checkpoint_created, locale)}</dd>
          </>
        )}
        {report.seconds !== null && (
          <>
            <dt>{trans.__('Took')}</dt>
            <dd>{formatDuration(report.seconds, trans)}</dd>
          </>
        )}
        {report.outcome !== 'fresh' && (
          <>
            <dt>{trans.__('Signature')}</dt>
            <dd>
              {proof.signature
                ? trans.__('verified')
                : trans.__('not verified')}
            </dd>
            <dt>{trans.__('Compared')}</dt>
            <dd>
              {report.via === 'snapshot'
                ? trans.__('the whole memory of the process')
                : trans._n(
                    '%1 variable with what was recorded',
                    '%1 variables with what was recorded',
                    proof.compared
                  )}
            </dd>
            {report.via !== 'snapshot' && (
              <>
                <dt>{trans.__('Buffers')}</dt>
                <dd>{buffersSentence(report, trans)}</dd>
              </>
            )}
          </>
        )}
        {proof.mark !== null && (
          <>
            <dt>{trans.__('Mark in memory')}</dt>
            <dd>
              {proof.mark ? trans.__('the same') : trans.__('not the same')}
            </dd>
          </>
        )}
      </dl>
      {bad.length > 0 && (
        <p className="jp-Pause-warning">
          {trans.__(
            'Not the same as when saved, do not trust: %1',
            bad.join(', ')
          )}
        </p>
      )}
      {report.ports_changed && (
        <p>
          {trans.__(
            'Its network ports were taken, so it came back on new ones; the notebooks were connected again.'
          )}
        </p>
      )}
      {report.losses.length > 0 && (
        <>
          <h4>{trans.__('Did not come back')}</h4>
          <LossList losses={report.losses} trans={trans} />
        </>
      )}
      {report.rebuilt.length > 0 && (
        <p>{trans.__('Made anew: %1', report.rebuilt.join(', '))}</p>
      )}
    </>
  );
}

function buffersSentence(
  report: ResumeReport,
  trans: TranslationBundle
): string {
  const buffers = report.proof.buffers;
  const locale = localeOf(trans);
  switch (buffers?.state) {
    case 'checking':
      return trans.__(
        'being checked, %1 of %2',
        formatBytes(buffers.bytes_done, locale),
        formatBytes(buffers.bytes_total, locale)
      );
    case 'ok':
      return trans.__(
        'read back, %1 all right',
        formatBytes(buffers.bytes_total, locale)
      );
    case 'mismatch':
      return trans.__('damaged');
    case 'skipped':
      return trans.__('not checked');
    default:
      return trans.__('none');
  }
}
