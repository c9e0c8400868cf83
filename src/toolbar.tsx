/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  ReactWidget,
  ToolbarButtonComponent,
  UseSignal
} from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { IPauseActions, IPauseManager } from './tokens';
import { actView } from './view';

/**
 * The button in the toolbar of a notebook or a console: Pause, or Resume, by the state of its kernel. It is
 * never hidden; where nothing can be done it is disabled and says why.
 */
export class PauseButton extends ReactWidget {
  /**
   * Construct a new button.
   */
  constructor(options: PauseButton.IOptions) {
    super();
    this._options = options;
    this.addClass('jp-Pause-toolbarButton');
    options.manager.changed.connect(this._onChanged, this);
    options.context.kernelChanged.connect(this._onChanged, this);
  }

  /** Let go of the session and the manager. */
  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.manager.changed.disconnect(this._onChanged, this);
    this._options.context.kernelChanged.disconnect(this._onChanged, this);
    Signal.clearData(this);
    super.dispose();
  }

  /** Render the button. */
  protected override render(): JSX.Element {
    return (
      <UseSignal signal={this._viewChanged}>{() => this._button()}</UseSignal>
    );
  }

  private _button(): JSX.Element {
    const { manager, context, trans } = this._options;
    const view = actView(manager, context.session?.kernel?.id ?? null, trans);
    return (
      <ToolbarButtonComponent
        className={view.act === 'busy' ? 'jp-mod-busy' : undefined}
        icon={view.icon}
        label={view.label}
        tooltip={view.caption}
        disabledTooltip={view.caption}
        enabled={view.enabled}
        onClick={this._onClick}
        noFocusOnClick={false}
      />
    );
  }

  private readonly _onClick = (): void => {
    const { actions, context, manager, showPanel, trans } = this._options;
    const kernel = context.session?.kernel?.id ?? null;
    switch (actView(manager, kernel, trans).act) {
      case 'pause-workspace':
        void actions.pauseWorkspace();
        break;
      case 'pause':
        if (kernel) {
          void actions.pause([kernel]);
        }
        break;
      case 'resume':
        if (kernel) {
          void actions.resume(kernel);
        }
        break;
      case 'busy':
        showPanel();
        break;
    }
  };

  private _onChanged(): void {
    this._viewChanged.emit();
  }

  private readonly _options: PauseButton.IOptions;
  private readonly _viewChanged = new Signal<this, void>(this);
}

/**
 * A namespace for `PauseButton` statics.
 */
export namespace PauseButton {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The session of the document. */
    context: ISessionContext;

    /** The live state. */
    manager: IPauseManager;

    /** What a click does. */
    actions: IPauseActions;

    /** Show what will be restored. */
    showPanel: () => void;

    /** The translations. */
    trans: TranslationBundle;
  }
}
