/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { DeviceMemory, KernelRow, PauseReport } from '../api/records';
import { formatBytes, formatTime, localeOf } from '../format';
import { triedOut } from '../sentences/shadow';

/**
 * S43: what one GPU said before the process ended and after. Both numbers, and no claim that it dropped where it did not.
 */
export function deviceMemory(
  device: DeviceMemory,
  trans: TranslationBundle
): string {
  const locale = localeOf(trans);
  const before = formatBytes(device.before, locale);
  if (device.after === null) {
    return trans.__('%1 in use before; afterwards unknown', before);
  }
  const after = formatBytes(device.after, locale);
  return device.after < device.before || device.before === 0
    ? trans.__('%1 in use before, %2 after', before, after)
    : trans.__('%1 in use before, %2 after: not less', before, after);
}

/**
 * What is kept while a kernel is paused, and since when.
 */
export function PausedReport(props: {
  row: KernelRow;
  trans: TranslationBundle;
}): JSX.Element {
  const { row, trans } = props;
  const locale = localeOf(trans);
  const report: PauseReport | null = row.last_pause;
  return (
    <dl className="jp-Pause-facts">
      <dt>{trans.__('Paused since')}</dt>
      <dd>{formatTime(row.since, locale)}</dd>
      {row.checkpoint && (
        <>
          <dt>{trans.__('Kept')}</dt>
          <dd>
            {trans.__(
              '%1 in a checkpoint',
              formatBytes(row.checkpoint.bytes, locale)
            )}
            {report?.snapshot && (
              <div>
                {trans.__(
                  '%1 in an exact snapshot',
                  formatBytes(report.snapshot_bytes ?? 0, locale)
                )}
              </div>
            )}
          </dd>
          <dt>{trans.__('Saved')}</dt>
          <dd>{formatTime(row.checkpoint.created, locale)}</dd>
        </>
      )}
      {report && (
        <>
          <dt>{trans.__('Memory freed')}</dt>
          <dd>
            {report.process_gone && report.rss_before !== null
              ? formatBytes(report.rss_before, locale)
              : trans.__('unknown')}
          </dd>
        </>
      )}
      {report?.shadow && (
        <>
          <dt>{trans.__('Tried out')}</dt>
          <dd>{triedOut(report.shadow, trans)}</dd>
        </>
      )}
      {report?.vram?.map(device => (
        <React.Fragment key={device.device}>
          <dt>{device.device}</dt>
          <dd>{deviceMemory(device, trans)}</dd>
        </React.Fragment>
      ))}
    </dl>
  );
}
