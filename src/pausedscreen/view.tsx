/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import {
  errorIcon,
  infoIcon,
  offlineBoltIcon
} from '@jupyterlab/ui-components';
import React, { useEffect, useId, useState } from 'react';

import { formatDuration } from '../format';
import { busyIcon, pausedIcon } from '../icons';
import { progressParts } from '../view';
import { Copy } from './copy';
import type { PausedScreenModel, ScreenState } from './model';
import { keptLines, reasonText, sentenceOf, titleOf } from './words';

/**
 * What a person can do here.
 */
export interface IScreenActions {
  /** Bring the checkpoints back into the kernels, once the workspace is fresh. */
  loadCheckpoints: () => void;

  /** Say what starting without the memory means, and how it is done. */
  startCold: () => void;

  /** Cancel the pause. */
  cancel: (operation: string) => void;

  /** Make it a line, or a screen again. */
  setCollapsed: (collapsed: boolean) => void;
}

interface IProps {
  model: PausedScreenModel;
  actions: IScreenActions;
  now: () => number;
  page: string;
  trans: TranslationBundle;
}

/**
 * The screen.
 */
export function Screen(props: IProps): JSX.Element {
  const { model, actions, trans } = props;
  const id = useId();
  const { farewell, state } = model;
  const reason = reasonText(model.reason, trans);
  return (
    <div className="jp-Pause-screenCard" data-jp-pause-screen={state}>
      <h2 className="jp-Pause-screenTitle" id={`${id}-title`} tabIndex={-1}>
        <StateIcon state={state} />
        <span>{titleOf(state, trans)}</span>
      </h2>
      <p role="status">
        <span className="jp-Pause-visuallyHidden">
          {titleOf(state, trans)}.{' '}
        </span>
        {sentenceOf(model, trans)}
        {reason && (
          <span className="jp-Pause-screenReason jp-Pause-warning">
            {reason}
          </span>
        )}
      </p>
      <Facts {...props} />
      <div className="jp-Pause-acts">
        <Acts {...props} />
        <button
          type="button"
          className="jp-Pause-button jp-Pause-screenToggle jp-mod-styled"
          onClick={() => actions.setCollapsed(true)}
        >
          {trans.__('Read what is open')}
        </button>
      </div>
      {farewell && state !== 'fresh' && <AfterReload {...props} />}
    </div>
  );
}

/**
 * The screen as one line, while the person reads.
 */
export function Banner(props: IProps): JSX.Element {
  const { model, actions, trans } = props;
  const preparing = model.state === 'preparing';
  return (
    <div className="jp-Pause-screenLine" data-jp-pause-screen={model.state}>
      <StateIcon state={model.state} />
      <span role="status" className="jp-Pause-noticeText">
        {titleOf(model.state, trans)}
      </span>
      <span className="jp-Pause-detail" aria-hidden="true">
        {preparing ? (
          model.operation && progressParts(model.operation, trans).join(', ')
        ) : (
          <Elapsed since={sinceOf(model)} now={props.now} trans={trans} />
        )}
      </span>
      <Acts {...props} />
      {!preparing && (
        <button
          type="button"
          className="jp-Pause-button jp-Pause-screenToggle jp-mod-styled"
          onClick={() => actions.setCollapsed(false)}
        >
          {trans.__('Show more')}
        </button>
      )}
    </div>
  );
}

/** What can be done in this state. */
function Acts(props: IProps): JSX.Element {
  const { model, actions, trans } = props;
  const { state } = model;
  const cold =
    model.farewell?.workspace.door.kind === 'kubeflow' &&
    model.farewell.workspace.stateful === true &&
    (state === 'failed' || state === 'waiting');
  const loadable =
    state === 'fresh' &&
    model.report?.kernels.some(kernel => kernel.checkpoint !== null);
  const { cancellable, cold: starting } = model;
  return (
    <>
      {starting?.cancellable && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          onClick={() => starting.cancel()}
        >
          {trans.__('Cancel')}
        </button>
      )}
      {cancellable && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          onClick={() => actions.cancel(cancellable)}
        >
          {trans.__('Cancel')}
        </button>
      )}
      {model.canResume && state !== 'failed' && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-accept jp-mod-styled"
          onClick={() => void model.resume()}
        >
          {trans.__('Resume')}
        </button>
      )}
      {(state === 'failed' || state === 'unknown' || state === 'waiting') && (
        <button
          type="button"
          className={
            state === 'failed'
              ? 'jp-Pause-button jp-mod-accept jp-mod-styled'
              : 'jp-Pause-button jp-mod-styled'
          }
          onClick={() => void model.retry()}
        >
          {state === 'waiting' ? trans.__('Look now') : trans.__('Try again')}
        </button>
      )}
      {cold && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          onClick={actions.startCold}
        >
          {trans.__('Start without the memory…')}
        </button>
      )}
      {loadable && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-accept jp-mod-styled"
          onClick={actions.loadCheckpoints}
        >
          {trans.__('Load the checkpoints')}
        </button>
      )}
      {state === 'fresh' && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          onClick={() => model.acknowledge()}
        >
          {trans.__('Go on without')}
        </button>
      )}
    </>
  );
}

/** What was kept, for how long it has gone on, and how long it usually takes. */
function Facts(props: IProps): JSX.Element | null {
  const { model, now, trans } = props;
  const { farewell, state } = model;
  if (!farewell) {
    return null;
  }
  const { workspace } = farewell;
  const unknown = trans.__('unknown');
  return (
    <dl className="jp-Pause-facts">
      <dt>{trans.__('Workspace')}</dt>
      <dd>
        {workspace.namespace
          ? trans.__('%1 in %2', workspace.name, workspace.namespace)
          : workspace.name}
      </dd>
      {state !== 'fresh' && (
        <>
          <dt>
            {state === 'leaving' ? trans.__('Will be kept') : trans.__('Kept')}
          </dt>
          <dd>
            <ul className="jp-Pause-screenKept">
              {keptLines(farewell, trans).map(line => (
                <li key={line}>{line}</li>
              ))}
            </ul>
          </dd>
          <dt>{elapsedName(state, trans)}</dt>
          <dd>
            <Elapsed since={sinceOf(model)} now={now} trans={trans} />
          </dd>
          {model.cold && (
            <>
              <dt>{trans.__('This step')}</dt>
              <dd>
                <Elapsed since={model.cold.since} now={now} trans={trans} />
              </dd>
            </>
          )}
          <dt>{trans.__('A resume usually takes')}</dt>
          <dd>
            {model.usual === null
              ? unknown
              : trans.__(
                  '%1 (measured in this browser)',
                  formatDuration(model.usual, trans)
                )}
          </dd>
        </>
      )}
      {(state === 'unknown' || state === 'failed') && (
        <>
          <dt>{trans.__('Last heard')}</dt>
          <dd>
            {model.heardAt === null ? (
              unknown
            ) : (
              <Elapsed since={model.heardAt} now={now} ago trans={trans} />
            )}
          </dd>
        </>
      )}
    </dl>
  );
}

function elapsedName(state: ScreenState, trans: TranslationBundle): string {
  switch (state) {
    case 'leaving':
      return trans.__('Elapsed');
    case 'paused':
      return trans.__('Paused for');
    case 'waiting':
      return trans.__('Waited');
    case 'failed':
    case 'unknown':
      return trans.__('Since');
    default:
      return trans.__('Since the request');
  }
}

/** From when the time that is shown counts. */
export function sinceOf(model: PausedScreenModel): number {
  switch (model.state) {
    case 'preparing':
    case 'leaving':
      return model.farewell?.leftAt ?? model.enteredAt;
    case 'asking':
    case 'cold':
    case 'starting':
    case 'restoring':
    case 'proving':
      return model.askedAt ?? model.enteredAt;
    default:
      return model.enteredAt;
  }
}

/** Do not reload; if you must, this link works, and this command. */
function AfterReload(props: IProps): JSX.Element | null {
  const { model, page, trans } = props;
  const door = model.farewell?.workspace.door;
  if (!door) {
    return null;
  }
  const link = door.page ? new URL(door.page, page).href : null;
  return (
    <div className="jp-Pause-screenReload">
      <p>
        <strong>{trans.__('Do not reload this page.')}</strong>{' '}
        {trans.__(
          'It comes back by itself, with everything that is open. A reload would find no server.'
        )}
      </p>
      {link && (
        <p>
          {trans.__('This link works also after a reload:')}{' '}
          <a href={link} target="_blank" rel="noreferrer">
            {link}
          </a>{' '}
          <Copy text={link} label={trans.__('Copy link')} trans={trans} />
        </p>
      )}
      {door.command && (
        <p>
          {trans.__('From a laptop:')} <code>{door.command}</code>{' '}
          <Copy
            text={door.command}
            label={trans.__('Copy command')}
            trans={trans}
          />
        </p>
      )}
    </div>
  );
}

/** A time that goes on; it is seen, not announced. */
function Elapsed(props: {
  since: number;
  now: () => number;
  ago?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { since, now, trans } = props;
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (document.visibilityState === 'visible') {
        tick(value => value + 1);
      }
    }, 1000);
    return () => window.clearInterval(timer);
  }, []);
  const seconds = Math.floor(Math.max(0, now() - since) / 1000);
  const text = formatDuration(seconds, trans);
  return <>{props.ago ? trans.__('%1 ago', text) : text}</>;
}

function StateIcon(props: { state: ScreenState }): JSX.Element {
  const Icon = iconOf(props.state);
  return (
    <Icon.react
      tag="span"
      className={
        Icon === busyIcon
          ? 'jp-Pause-screenIcon jp-Pause-spin'
          : 'jp-Pause-screenIcon'
      }
      width="20px"
      height="20px"
    />
  );
}

function iconOf(state: ScreenState): LabIcon {
  switch (state) {
    case 'paused':
      return pausedIcon;
    case 'failed':
      return errorIcon;
    case 'unknown':
      return offlineBoltIcon;
    case 'fresh':
      return infoIcon;
    default:
      return busyIcon;
  }
}
