/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  infoIcon,
  offlineBoltIcon,
  ReactWidget,
  UseSignal
} from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import React from 'react';

import { formatTime, localeOf } from './format';
import { busyIcon, pausedIcon } from './icons';
import {
  blockedSentence,
  missedOutputSentence,
  noteSentence
} from './messages';
import { RequestLog, remainingCells, runRemaining } from './remaining';
import type { IPauseActions, IPauseManager } from './tokens';
import { isBusy, isPaused, progressSentence } from './view';

/**
 * The line on top of a notebook whose kernel is away, or has something to offer. Not a dialog: the notebook
 * can be read and edited meanwhile.
 */
export class NotebookNotice extends ReactWidget {
  /**
   * Construct a new notice for a notebook.
   */
  constructor(options: NotebookNotice.IOptions) {
    super();
    this._options = options;
    this._log = new RequestLog(options.panel.sessionContext);
    this.addClass('jp-Pause-notice');
    this.hide();
    options.manager.changed.connect(this._onChanged, this);
    options.panel.sessionContext.kernelChanged.connect(this._onChanged, this);
    this._log.changed.connect(this._onChanged, this);
    this._observer = new ResizeObserver(() => this._fit());
    this._onChanged();
  }

  /** Let go of everything. */
  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    const { manager, panel } = this._options;
    manager.changed.disconnect(this._onChanged, this);
    panel.sessionContext.kernelChanged.disconnect(this._onChanged, this);
    this._log.changed.disconnect(this._onChanged, this);
    this._log.dispose();
    this._observer.disconnect();
    Signal.clearData(this);
    super.dispose();
  }

  /** Run the cells that a pause kept from running. */
  async runRemaining(): Promise<void> {
    const { panel } = this._options;
    const cells = this._remaining();
    if (cells.length > 0) {
      await runRemaining(panel, cells);
    }
  }

  /** How many cells a pause kept from running. */
  get remaining(): number {
    return this._remaining().length;
  }

  /** Render the notice. */
  protected override render(): JSX.Element {
    return (
      <div ref={this._observe}>
        <UseSignal signal={this._viewChanged}>
          {() => this._notice() ?? <></>}
        </UseSignal>
      </div>
    );
  }

  private readonly _observe = (node: HTMLDivElement | null): void => {
    this._observer.disconnect();
    if (node) {
      this._observer.observe(node);
    }
  };

  private _notice(): JSX.Element | null {
    const { actions, manager, panel, trans } = this._options;
    const kernel = panel.sessionContext.session?.kernel?.id ?? null;
    const row = manager.row(kernel);
    if (
      manager.availability === 'unreachable' &&
      manager.state?.workspace?.state === 'pausing'
    ) {
      return null; // The paused screen says what has become of the whole workspace.
    }
    if (manager.availability === 'unreachable' && isPaused(row)) {
      return (
        <Line
          icon={pausedIcon}
          text={trans.__(
            'The Jupyter server does not answer. The kernel was paused and its variables are on disk; waiting for the server…'
          )}
        />
      );
    }
    if (manager.availability === 'unreachable' && manager.answeredAt !== null) {
      return (
        <Line
          icon={offlineBoltIcon}
          text={trans.__(
            'The Jupyter server does not answer. What you type here is saved when it is back.'
          )}
        />
      );
    }
    if (manager.availability !== 'ready') {
      return null;
    }
    if (row && isBusy(row)) {
      return (
        <Line
          icon={busyIcon}
          spin
          text={progressSentence(manager, row, trans)}
        />
      );
    }
    if (row && isPaused(row)) {
      const held = row.reason?.code === 'session_held';
      return (
        <Line
          icon={pausedIcon}
          text={
            held
              ? blockedSentence(row.reason, trans)
              : (noteSentence(row, trans) ??
                trans.__(
                  'The kernel is paused since %1. Its variables are kept on disk; cells wait until it is resumed.',
                  formatTime(row.since, localeOf(trans))
                ))
          }
          act={held ? undefined : trans.__('Resume')}
          onClick={() => void actions.resume(row.id)}
        />
      );
    }
    if (row?.reason?.code === 'restarted_while_paused' && row.checkpoint) {
      const { id } = row.checkpoint;
      return (
        <Line
          icon={pausedIcon}
          text={noteSentence(row, trans) ?? ''}
          act={trans.__('Resume from checkpoint')}
          onClick={() => void actions.resumeCheckpoint(id, row.path)}
        />
      );
    }
    const remaining = this._remaining();
    if (row && remaining.length > 0) {
      return (
        <Line
          icon={pausedIcon}
          text={trans._n(
            '%1 cell did not run because the kernel was paused.',
            '%1 cells did not run because the kernel was paused.',
            remaining.length
          )}
          act={trans._n(
            'Run the remaining %1 cell',
            'Run the remaining %1 cells',
            remaining.length
          )}
          onClick={() => void this.runRemaining()}
        />
      );
    }
    return this._missedOutput() ?? this._unattached();
  }

  /** Output that went to nobody. A page that was there before the gap may have got it with its old connection. */
  private _missedOutput(): JSX.Element | null {
    const { manager, panel, trans } = this._options;
    const row = manager.row(panel.sessionContext.session?.kernel?.id);
    const missed = row?.missed_output;
    if (!row || !missed || this._dismissed.has(row.id + missed.since)) {
      return null;
    }
    if (
      missed.cause === 'no_page' &&
      this._gapAtFirstSight.get(row.id) !== missed.since
    ) {
      return null;
    }
    return (
      <Line
        icon={infoIcon}
        text={missedOutputSentence(missed, trans)}
        dismiss={trans.__('Dismiss')}
        onDismiss={() => {
          this._dismissed.add(row.id + missed.since);
          this._onChanged();
        }}
      />
    );
  }

  /** Whether there was a gap already when this page first saw the kernel. */
  private _look(): void {
    const { manager, panel } = this._options;
    const row = manager.row(panel.sessionContext.session?.kernel?.id);
    if (row && !this._gapAtFirstSight.has(row.id)) {
      this._gapAtFirstSight.set(row.id, row.missed_output?.since ?? null);
    }
  }

  /** A checkpoint of this notebook whose session is not known any more. */
  private _unattached(): JSX.Element | null {
    const { actions, manager, panel, trans } = this._options;
    const path = panel.context.localPath;
    const checkpoint = manager.unattachedFor(path);
    const kernel = panel.sessionContext.session?.kernel?.id ?? null;
    if (!checkpoint || this._dismissed.has(checkpoint.id)) {
      return null;
    }
    const row = manager.row(kernel);
    if (row?.last_resume || row?.last_pause) {
      // This notebook's kernel has a history of its own: the older checkpoint is in the panel.
      return null;
    }
    return (
      <Line
        icon={pausedIcon}
        text={trans.__(
          'A checkpoint of this notebook from %1 is on disk.',
          checkpoint.created
            ? formatTime(checkpoint.created, localeOf(trans))
            : trans.__('an unknown time')
        )}
        act={trans.__('Resume')}
        onClick={() => void actions.resumeCheckpoint(checkpoint.id, path)}
        dismiss={trans.__('Dismiss')}
        onDismiss={() => {
          this._dismissed.add(checkpoint.id);
          this._onChanged();
        }}
      />
    );
  }

  /** The layout reads the least height from the style: follow the text when it wraps. */
  private _fit(): void {
    const height = this.node.firstElementChild?.getBoundingClientRect().height;
    const wanted = height ? `${Math.ceil(height)}px` : '';
    if (this.node.style.minHeight !== wanted) {
      this.node.style.minHeight = wanted;
      if (this.parent) {
        MessageLoop.postMessage(this.parent, Widget.Msg.FitRequest);
      }
    }
  }

  private _remaining() {
    const { manager, panel } = this._options;
    const row = manager.row(panel.sessionContext.session?.kernel?.id);
    return row && row.aborted_cells.length > 0
      ? remainingCells(
          panel,
          this._log,
          row.aborted_cells,
          row.aborted_notebook_cells
        )
      : [];
  }

  private _onChanged(): void {
    if (this.isDisposed || this._options.panel.isDisposed) {
      return;
    }
    this._look();
    this.setHidden(this._notice() === null);
    this._viewChanged.emit();
  }

  private readonly _options: NotebookNotice.IOptions;
  private readonly _log: RequestLog;
  private readonly _observer: ResizeObserver;
  private readonly _dismissed = new Set<string>();
  private readonly _gapAtFirstSight = new Map<string, string | null>();
  private readonly _viewChanged = new Signal<this, void>(this);
}

/**
 * A namespace for `NotebookNotice` statics.
 */
export namespace NotebookNotice {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The notebook. */
    panel: NotebookPanel;

    /** The live state. */
    manager: IPauseManager;

    /** What can be done. */
    actions: IPauseActions;

    /** The translations. */
    trans: TranslationBundle;
  }
}

function Line(props: {
  icon: typeof pausedIcon;
  spin?: boolean;
  text: string;
  act?: string;
  onClick?: () => void;
  dismiss?: string;
  onDismiss?: () => void;
}): JSX.Element {
  const Icon = props.icon;
  return (
    <div className="jp-Pause-noticeLine">
      <Icon.react
        tag="span"
        className={props.spin ? 'jp-Pause-spin' : undefined}
        width="16px"
        height="16px"
      />
      <span role="status" className="jp-Pause-noticeText">
        {props.text}
      </span>
      {props.act && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-accept jp-mod-styled"
          onClick={props.onClick}
        >
          {props.act}
        </button>
      )}
      {props.dismiss && (
        <button
          type="button"
          className="jp-Pause-button jp-mod-styled"
          onClick={props.onDismiss}
        >
          {props.dismiss}
        </button>
      )}
    </div>
  );
}
