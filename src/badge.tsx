/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import React from 'react';

import { formatDuration } from './format';
import {
  availabilitySentence,
  noteSentence,
  phaseName,
  stateName
} from './messages';
import { sessionName } from './names';
import type { CurrentSession } from './sessions';
import type { PausedScreenModel } from './pausedscreen/model';
import type { IPauseManager } from './tokens';
import { workspaceBadge } from './workspaceBadge';
import { isBusy, progressSentence, stateIcon, whyNotPausable } from './view';

/**
 * Milliseconds between two looks at a time that goes on.
 */
const TICK = 5_000;

/**
 * The state of the current session, in the status bar or the top bar: icon and text, never colour alone.
 *
 * It shows our state, never the kernel's execution state: a kernel that is away has none.
 */
export class PauseBadge extends ReactWidget {
  /**
   * Construct a new badge.
   */
  constructor(options: PauseBadge.IOptions) {
    super();
    this._options = options;
    this.addClass('jp-Pause-badge');
    options.manager.changed.connect(this._onChanged, this);
    options.session.changed.connect(this._onChanged, this);
    options.away?.changed.connect(this._onChanged, this);
    this._timer = window.setInterval(() => {
      const { manager, away, trans } = this._options;
      if (workspaceBadge(manager, away, trans)) {
        this._onChanged();
      }
    }, TICK);
  }

  /** Let go of everything. */
  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.manager.changed.disconnect(this._onChanged, this);
    this._options.session.changed.disconnect(this._onChanged, this);
    this._options.away?.changed.disconnect(this._onChanged, this);
    window.clearInterval(this._timer);
    Signal.clearData(this);
    super.dispose();
  }

  /** Render the badge. */
  protected override render(): JSX.Element {
    return (
      <UseSignal signal={this._viewChanged}>{() => this._badge()}</UseSignal>
    );
  }

  private _badge(): JSX.Element {
    const { onClick, trans } = this._options;
    const view = this._view();
    const Icon = view.icon;
    return (
      <>
        <div
          className="jp-Pause-badgeButton"
          role="button"
          tabIndex={0}
          title={view.title}
          aria-label={trans.__(
            'Pause: %1. Show what will be restored',
            view.text
          )}
          data-jp-pause-state={view.state}
          onClick={onClick}
          onKeyDown={event => {
            if (event.key === 'Enter' || event.key === ' ') {
              event.preventDefault();
              onClick();
            }
          }}
        >
          <Icon.react
            tag="span"
            className={view.busy ? 'jp-Pause-spin' : undefined}
            width="16px"
            height="16px"
          />
          <span className="jp-Pause-badgeText">{view.text}</span>
        </div>
        <span role="status" className="jp-Pause-visuallyHidden">
          {view.announce}
        </span>
      </>
    );
  }

  private _view() {
    const { manager, session, trans } = this._options;
    const { availability, answeredAt, state } = manager;
    const workspace = workspaceBadge(manager, this._options.away, trans);
    if (workspace) {
      return workspace;
    }
    const row = manager.row(session.kernel);
    const paused = state?.kernels.filter(
      item => item.state === 'paused'
    ).length;
    const icon = stateIcon(row);
    const busy = isBusy(row);
    const name = sessionName(row, trans);
    if (availability !== 'ready') {
      const age =
        answeredAt === null
          ? null
          : formatDuration((Date.now() - answeredAt) / 1000, trans);
      const known =
        row && age
          ? trans.__('last known %1 ago: %2', age, stateName(row.state, trans))
          : null;
      const sentence = availabilitySentence(availability, trans) ?? '';
      const away =
        availability === 'missing'
          ? trans.__('Pause not available')
          : trans.__('Unknown');
      return {
        icon: stateIcon(null),
        busy: false,
        state: 'unknown',
        text: away,
        title: known ? trans.__('%1 (%2)', sentence, known) : sentence,
        announce: availability === 'starting' ? '' : away
      };
    }
    if (!row) {
      const text = paused
        ? trans._n('%1 paused', '%1 paused', paused)
        : trans.__('No kernel');
      return {
        icon,
        busy: false,
        state: 'none',
        text,
        title:
          whyNotPausable(session.kernel, null, trans) ?? trans.__('No kernel'),
        announce: ''
      };
    }
    const word = stateName(row.state, trans);
    const phase = busy ? phaseName(row.phase, trans) : null;
    const why =
      row.state === 'running' || row.state === 'unknown'
        ? whyNotPausable(session.kernel, row, trans)
        : null;
    const text =
      row.state === 'running' && why ? trans.__('Not pausable') : word;
    const detail = busy
      ? progressSentence(manager, row, trans)
      : (why ?? noteSentence(row, trans) ?? word);
    return {
      icon,
      busy,
      state: row.state,
      text: phase ? trans.__('%1: %2', text, phase) : text,
      title: trans.__('%1: %2', name, detail),
      // Steps inside an operation would be chatter; the states are news.
      announce: trans.__('%1: %2', name, text)
    };
  }

  private _onChanged(): void {
    this._viewChanged.emit();
  }

  private readonly _options: PauseBadge.IOptions;
  private readonly _timer: number;
  private readonly _viewChanged = new Signal<this, void>(this);
}

/**
 * A namespace for `PauseBadge` statics.
 */
export namespace PauseBadge {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** The session to show. */
    session: CurrentSession;

    /** The workspace while its server is gone, where there is one. */
    away: PausedScreenModel | null;

    /** What a click does. */
    onClick: () => void;

    /** The translations. */
    trans: TranslationBundle;
  }
}
