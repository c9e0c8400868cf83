/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Button, refreshIcon } from '@jupyterlab/ui-components';
import React from 'react';

import type { Inventory, KernelRow, SnapshotOutlook } from '../api/records';
import {
  formatBytes,
  formatDuration,
  formatSize,
  formatTime,
  localeOf
} from '../format';
import { availabilitySentence, errorSentence, noteSentence } from '../messages';
import { stateName } from '../messages';
import { sessionName } from '../names';
import { snapshotReason } from '../sentences/snapshots';
import type { IPauseActions } from '../tokens';
import {
  kernelActView,
  hasProcess,
  isBusy,
  progressSentence,
  stateIcon
} from '../view';
import type { PanelModel } from './model';

/**
 * Which session, its state, what can be done now, and what it will cost.
 */
export function Summary(props: {
  model: PanelModel;
  actions: IPauseActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, actions, trans } = props;
  const { manager, row, session } = model;
  const away = availabilitySentence(manager.availability, trans);
  const Icon = stateIcon(row);
  return (
    <section
      className="jp-Pause-summary"
      aria-label={trans.__('The current session')}
    >
      <div className="jp-Pause-heading">
        <Icon.react
          tag="span"
          className={isBusy(row) ? 'jp-Pause-spin' : undefined}
          width="20px"
          height="20px"
        />
        <div className="jp-Pause-headingText">
          <span className="jp-Pause-name">
            {row
              ? sessionName(row, trans)
              : session.context?.session
                ? session.context.session.name ||
                  session.context.kernelDisplayName
                : trans.__('No kernel')}
          </span>
          <span className="jp-Pause-state">
            {row
              ? isBusy(row)
                ? progressSentence(manager, row, trans)
                : stateName(row.state, trans)
              : session.kernel
                ? trans.__('Unknown')
                : trans.__('Open a notebook to see what will be restored.')}
          </span>
        </div>
        <Button
          minimal
          small
          title={trans.__('Look again')}
          aria-label={trans.__('Look again')}
          aria-busy={model.loading}
          onClick={() => void model.refresh()}
        >
          <refreshIcon.react tag="span" width="16px" height="16px" />
        </Button>
      </div>
      {away !== null && (
        <p id="jp-Pause-why" className="jp-Pause-warning" role="status">
          {away}
        </p>
      )}
      {row && (
        <>
          <Notes row={row} trans={trans} />
          <Acts model={model} row={row} actions={actions} trans={trans} />
          {model.error !== null && away === null && (
            <p className="jp-Pause-warning">
              {errorSentence(model.error, trans)}
            </p>
          )}
          {model.inventory && hasProcess(row) && (
            <Costs model={model} inventory={model.inventory} trans={trans} />
          )}
        </>
      )}
      {!row && session.kernel && away === null && (
        <p>{trans.__('The server does not know this kernel yet.')}</p>
      )}
    </section>
  );
}

function Notes(props: {
  row: KernelRow;
  trans: TranslationBundle;
}): JSX.Element | null {
  const note = noteSentence(props.row, props.trans);
  return note ? <p className="jp-Pause-warning">{note}</p> : null;
}

function Acts(props: {
  model: PanelModel;
  row: KernelRow;
  actions: IPauseActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, row, actions, trans } = props;
  const view = kernelActView(model.manager, row.id, trans);
  const operation = model.manager.operationOf(row.id);
  return (
    <div className="jp-Pause-acts">
      {view.act !== 'busy' && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-accept jp-mod-styled"
          disabled={!view.enabled}
          aria-describedby={view.enabled ? undefined : 'jp-Pause-why'}
          title={view.caption}
          onClick={() =>
            void (view.act === 'pause'
              ? actions.pause([row.id])
              : actions.resume(row.id))
          }
        >
          {view.label}
        </button>
      )}
      {operation?.state === 'needs_decision' && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-accept jp-mod-styled"
          onClick={() => void actions.answer(operation)}
        >
          {trans.__('Decide…')}
        </button>
      )}
      {operation && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-reject jp-mod-styled"
          disabled={!operation.cancellable}
          title={
            operation.cancellable
              ? trans.__('Stop this; nothing is lost')
              : trans.__('It is too late to cancel')
          }
          onClick={() => void actions.cancel(operation.id)}
        >
          {trans.__('Cancel')}
        </button>
      )}
      {row.reason?.code === 'restarted_while_paused' && row.checkpoint && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          onClick={() =>
            void actions.resumeCheckpoint(row.checkpoint!.id, row.path)
          }
        >
          {trans.__('Resume from checkpoint')}
        </button>
      )}
      {!view.enabled && model.manager.availability === 'ready' && (
        <p id="jp-Pause-why" className="jp-Pause-why">
          {view.caption}
        </p>
      )}
    </div>
  );
}

/**
 * Whether the whole process goes to disk too, or why not.
 */
function outlookSentence(
  outlook: SnapshotOutlook,
  trans: TranslationBundle
): string {
  return outlook.usable
    ? trans.__('yes: threads, generators and child processes come back too')
    : outlook.reasons.map(reason => snapshotReason(reason, trans)).join(' ');
}

/**
 * Size, time and place, with what they are based on; unknown says unknown.
 */
function Costs(props: {
  model: PanelModel;
  inventory: Inventory;
  trans: TranslationBundle;
}): JSX.Element {
  const { inventory, model, trans } = props;
  const { estimate, checkpoint_place: place } = inventory;
  const locale = localeOf(trans);
  const unknown = trans.__('unknown');
  const duration = (value: number | null) =>
    value === null ? unknown : formatDuration(value, trans);
  const age = inventory.age + Math.max(0, (Date.now() - model.loadedAt) / 1000);
  const tooSmall =
    place !== null &&
    place.free !== null &&
    estimate.bytes !== null &&
    place.free < estimate.bytes;
  return (
    <>
      <dl className="jp-Pause-facts">
        <dt>{trans.__('To be saved')}</dt>
        <dd>
          {estimate.bytes === null
            ? unknown
            : formatSize(estimate.bytes, inventory.complete, trans)}
        </dd>
        <dt>{trans.__('Pause takes')}</dt>
        <dd>{duration(estimate.pause_seconds)}</dd>
        <dt>{trans.__('Resume takes')}</dt>
        <dd>{duration(estimate.resume_seconds)}</dd>
        <dt>{trans.__('Estimate')}</dt>
        <dd>
          {estimate.basis === 'measured'
            ? trans.__('measured by earlier pauses here')
            : trans.__('assumed, nothing was measured yet')}
        </dd>
        {inventory.snapshot && (
          <>
            <dt>{trans.__('Exact snapshot')}</dt>
            <dd>{outlookSentence(inventory.snapshot, trans)}</dd>
          </>
        )}
        {place && (
          <>
            <dt>{trans.__('Saved in')}</dt>
            <dd className="jp-Pause-path">{place.directory}</dd>
            <dt>{trans.__('Room there')}</dt>
            <dd>
              {place.free === null
                ? unknown
                : place.total === null
                  ? formatBytes(place.free, locale)
                  : trans.__(
                      '%1 of %2',
                      formatBytes(place.free, locale),
                      formatBytes(place.total, locale)
                    )}
            </dd>
          </>
        )}
      </dl>
      {place && !place.writable && (
        <p className="jp-Pause-warning">
          {trans.__(
            'This folder cannot be written, so nothing can be paused. Check who owns it.'
          )}
        </p>
      )}
      {tooSmall && (
        <p className="jp-Pause-warning">
          {trans.__('There is not enough room on that disk. Free some first.')}
        </p>
      )}
      <p className="jp-Pause-age">
        {inventory.busy
          ? trans.__(
              'The kernel runs a cell. This was seen %1 ago (%2); it may have changed since.',
              formatDuration(age, trans),
              formatTime(inventory.taken_at, locale)
            )
          : inventory.complete
            ? trans.__('Seen %1 ago.', formatDuration(age, trans))
            : trans.__(
                'Seen %1 ago; sizes are still being measured.',
                formatDuration(age, trans)
              )}
      </p>
    </>
  );
}
