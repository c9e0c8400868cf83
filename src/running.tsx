/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IRunningSessions } from '@jupyterlab/running';
import type { Session } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import { deleteIcon, closeIcon } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { Checkpoint, KernelRow } from './api/records';
import { formatBytes, formatTime, localeOf } from './format';
import { pausedIcon, resumeIcon } from './icons';
import { pathName, sessionName } from './names';
import type { IPauseActions, IPauseManager } from './tokens';
import { isPaused } from './view';

/**
 * The section "Paused" of the Running panel: paused sessions, and checkpoints that no session holds.
 */
export class PausedSessions implements IRunningSessions.IManager, IDisposable {
  /**
   * Construct a new section.
   */
  constructor(options: PausedSessions.IOptions) {
    this._options = options;
    const { trans } = options;
    this.name = trans.__('Paused');
    this.shutdownAllLabel = trans.__('Forget All');
    this.shutdownAllConfirmationText = trans.__(
      'End all paused sessions? Their checkpoints stay on disk and can be resumed from the Pause panel.'
    );
    options.manager.changed.connect(this._onChanged, this);
  }

  /** The title of the section. */
  readonly name: string;

  /** The label of the button that ends all sessions. */
  readonly shutdownAllLabel: string;

  /** What is asked before all sessions are ended. */
  readonly shutdownAllConfirmationText: string;

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Emitted when the list changes. */
  get runningChanged(): ISignal<this, void> {
    return this._runningChanged;
  }

  /** The icon of the button that ends one. */
  get shutdownItemIcon(): LabIcon {
    return closeIcon;
  }

  /** What the button that ends one does. */
  readonly shutdownLabel = (item: IRunningSessions.IRunningItem): string =>
    item instanceof Private.CheckpointItem
      ? this._options.trans.__('Delete Checkpoint…')
      : this._options.trans.__('End Session, Keep Checkpoint');

  /** Let go of the manager. */
  dispose(): void {
    this._isDisposed = true;
    this._options.manager.changed.disconnect(this._onChanged, this);
    Signal.clearData(this);
  }

  /** The items. */
  running(): IRunningSessions.IRunningItem[] {
    const { manager } = this._options;
    const rows = manager.state?.kernels ?? [];
    const known = new Set(rows.map(row => row.id));
    return [
      ...rows
        .filter(isPaused)
        .map(row => new Private.SessionItem(row, this._options)),
      ...(manager.checkpoints ?? [])
        .filter(
          checkpoint =>
            !checkpoint.in_use && !known.has(checkpoint.kernel_id ?? '')
        )
        .map(
          checkpoint => new Private.CheckpointItem(checkpoint, this._options)
        )
    ];
  }

  /** End all paused sessions; the checkpoints stay. */
  shutdownAll(): void {
    for (const item of this.running()) {
      if (item instanceof Private.SessionItem) {
        item.shutdown();
      }
    }
  }

  /** Ask again. */
  refreshRunning(): void {
    void this._options.manager.refresh();
    void this._options.manager.refreshCheckpoints();
  }

  private _onChanged(): void {
    this._runningChanged.emit();
  }

  private readonly _options: PausedSessions.IOptions;
  private readonly _runningChanged = new Signal<this, void>(this);
  private _isDisposed = false;
}

/**
 * A namespace for `PausedSessions` statics.
 */
export namespace PausedSessions {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** What can be done. */
    actions: IPauseActions;

    /** The sessions of the server. */
    sessions: Session.IManager;

    /** Open a document. */
    open: (path: string) => void;

    /** The translations. */
    trans: TranslationBundle;
  }
}

/**
 * The name of an item with the button that resumes it.
 */
function ResumeLabel(props: {
  name: string;
  title: string;
  disabled: boolean;
  onClick: () => void;
}): JSX.Element {
  return (
    <span className="jp-Pause-runningLabel">
      <span className="jp-Pause-runningName">{props.name}</span>
      <button
        type="button"
        className="jp-Pause-iconButton"
        title={props.title}
        aria-label={props.title}
        disabled={props.disabled}
        onClick={event => {
          // The item opens the notebook on a click.
          event.stopPropagation();
          props.onClick();
        }}
      >
        <resumeIcon.react tag="span" width="16px" height="16px" />
      </button>
    </span>
  );
}

namespace Private {
  /** A paused session. */
  export class SessionItem implements IRunningSessions.IRunningItem {
    constructor(row: KernelRow, options: PausedSessions.IOptions) {
      this._row = row;
      this._options = options;
      this.context = row.id;
    }

    /** Also a kernel item: the context menu offers Resume on it. */
    readonly className = 'jp-mod-kernel jp-mod-paused';

    readonly context: string;

    open(): void {
      if (this._row.path) {
        this._options.open(this._row.path);
      }
    }

    /** The session ends; the server keeps its checkpoint. */
    shutdown(): void {
      void this._shutdown();
    }

    icon(): LabIcon {
      return pausedIcon;
    }

    label(): JSX.Element {
      const { actions, trans } = this._options;
      const name = sessionName(this._row, trans);
      return (
        <ResumeLabel
          name={name}
          title={trans.__('Resume %1', name)}
          disabled={this._row.reason?.code === 'session_held'}
          onClick={() => void actions.resume(this._row.id)}
        />
      );
    }

    labelTitle(): string {
      const { trans } = this._options;
      const locale = localeOf(trans);
      return trans.__(
        '%1\nPaused since %2, %3 on disk. Click to open it.',
        this._row.path ?? this._row.name ?? '',
        formatTime(this._row.since, locale),
        this._row.checkpoint
          ? formatBytes(this._row.checkpoint.bytes, locale)
          : trans.__('nothing')
      );
    }

    private async _shutdown(): Promise<void> {
      const { sessions, manager } = this._options;
      await sessions.refreshRunning();
      for (const session of Array.from(sessions.running())) {
        if (session.kernel?.id === this._row.id) {
          await sessions.shutdown(session.id);
        }
      }
      await manager.refresh();
      await manager.refreshCheckpoints();
    }

    private readonly _row: KernelRow;
    private readonly _options: PausedSessions.IOptions;
  }

  /** A checkpoint that no session holds. */
  export class CheckpointItem implements IRunningSessions.IRunningItem {
    constructor(checkpoint: Checkpoint, options: PausedSessions.IOptions) {
      this._checkpoint = checkpoint;
      this._options = options;
      this.context = checkpoint.id;
    }

    readonly className = 'jp-mod-checkpoint';

    readonly context: string;

    open(): void {
      if (this._checkpoint.path) {
        this._options.open(this._checkpoint.path);
      }
    }

    /** Never without asking. */
    shutdown(): void {
      void this._options.actions.deleteCheckpoint(this._checkpoint.id);
    }

    icon(): LabIcon {
      return this._checkpoint.damaged ? deleteIcon : pausedIcon;
    }

    label(): JSX.Element {
      const { actions, trans } = this._options;
      const { id, path, damaged, signature_ok } = this._checkpoint;
      const name = path ? pathName(path, trans) : trans.__('unknown notebook');
      return (
        <ResumeLabel
          name={trans.__('%1 (checkpoint)', name)}
          title={trans.__('Resume the checkpoint of %1', name)}
          disabled={!!damaged || !signature_ok}
          onClick={() => void actions.resumeCheckpoint(id, path)}
        />
      );
    }

    labelTitle(): string {
      const { trans } = this._options;
      return trans.__(
        '%1\nCheckpoint from %2, %3. Click to open the notebook.',
        this._checkpoint.path ?? '',
        this._checkpoint.created
          ? formatTime(this._checkpoint.created, localeOf(trans))
          : trans.__('an unknown time'),
        formatBytes(this._checkpoint.bytes, localeOf(trans))
      );
    }

    private readonly _checkpoint: Checkpoint;
    private readonly _options: PausedSessions.IOptions;
  }
}
