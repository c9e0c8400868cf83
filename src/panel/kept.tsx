/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { Checkpoint, KernelRow } from '../api/records';
import { formatBytes, formatTime, localeOf } from '../format';
import { codeSentence } from '../messages';
import { pathName, sessionName } from '../names';
import type { IPauseActions, IPauseManager } from '../tokens';
import { isPaused } from '../view';

/**
 * All paused sessions, and all checkpoints on disk.
 */
export function Kept(props: {
  manager: IPauseManager;
  actions: IPauseActions;
  open: (path: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { manager, actions, open, trans } = props;
  const paused = manager.state?.kernels.filter(isPaused) ?? [];
  const checkpoints = manager.checkpoints;
  return (
    <>
      <h4>{trans.__('Paused sessions')}</h4>
      {paused.length === 0 ? (
        <p className="jp-Pause-none">{trans.__('None.')}</p>
      ) : (
        <ul className="jp-Pause-list">
          {paused.map(row => (
            <PausedRow
              key={row.id}
              row={row}
              actions={actions}
              open={open}
              trans={trans}
            />
          ))}
        </ul>
      )}
      <h4>{trans.__('Checkpoints')}</h4>
      {checkpoints === null ? (
        <p className="jp-Pause-none">{trans.__('Not known yet.')}</p>
      ) : checkpoints.length === 0 ? (
        <p className="jp-Pause-none">{trans.__('None on disk.')}</p>
      ) : (
        <ul className="jp-Pause-list">
          {checkpoints.map(checkpoint => (
            <CheckpointRow
              key={checkpoint.id}
              checkpoint={checkpoint}
              actions={actions}
              trans={trans}
            />
          ))}
        </ul>
      )}
    </>
  );
}

function PausedRow(props: {
  row: KernelRow;
  actions: IPauseActions;
  open: (path: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { row, actions, open, trans } = props;
  const locale = localeOf(trans);
  const held = row.reason?.code === 'session_held';
  const name = sessionName(row, trans);
  return (
    <li>
      <div className="jp-Pause-listText">
        {row.path ? (
          <button
            type="button"
            className="jp-Pause-link"
            title={row.path}
            onClick={() => open(row.path!)}
          >
            {name}
          </button>
        ) : (
          <span>{name}</span>
        )}
        <span className="jp-Pause-detail">
          {row.reason && (held || row.reason.code === 'kernelspec_missing')
            ? codeSentence(row.reason.code, row.reason.params, trans)
            : trans.__('since %1', formatTime(row.since, locale))}
        </span>
      </div>
      <button
        type="button"
        className="jp-Pause-button jp-mod-styled jp-mod-accept"
        disabled={held}
        aria-label={trans.__('Resume %1', name)}
        onClick={() => void actions.resume(row.id)}
      >
        {trans.__('Resume')}
      </button>
    </li>
  );
}

function CheckpointRow(props: {
  checkpoint: Checkpoint;
  actions: IPauseActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { checkpoint, actions, trans } = props;
  const locale = localeOf(trans);
  const name = checkpoint.path
    ? pathName(checkpoint.path, trans)
    : trans.__('unknown notebook');
  const created = checkpoint.created
    ? formatTime(checkpoint.created, locale)
    : trans.__('unknown time');
  const damage = checkpoint.damaged
    ? codeSentence(checkpoint.damaged, {}, trans)
    : !checkpoint.signature_ok
      ? codeSentence('signature_mismatch', {}, trans)
      : null;
  return (
    <li>
      <div className="jp-Pause-listText">
        <span title={checkpoint.path ?? ''}>{name}</span>
        <span className="jp-Pause-detail">
          {trans.__('%1, %2', created, formatBytes(checkpoint.bytes, locale))}
        </span>
        {checkpoint.in_use && (
          <span className="jp-Pause-detail">
            {trans.__('a paused kernel needs it')}
          </span>
        )}
        {damage && <span className="jp-Pause-warning">{damage}</span>}
      </div>
      {!checkpoint.in_use && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          disabled={damage !== null}
          aria-label={trans.__(
            'Resume the checkpoint of %1 from %2',
            name,
            created
          )}
          onClick={() =>
            void actions.resumeCheckpoint(checkpoint.id, checkpoint.path)
          }
        >
          {trans.__('Resume')}
        </button>
      )}
      <button
        type="button"
        className="jp-Pause-button jp-mod-styled jp-mod-reject"
        aria-label={trans.__(
          'Delete the checkpoint of %1 from %2',
          name,
          created
        )}
        onClick={() => void actions.deleteCheckpoint(checkpoint.id)}
      >
        {trans.__('Delete')}
      </button>
    </li>
  );
}
