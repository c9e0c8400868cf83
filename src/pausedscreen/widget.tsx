/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import React from 'react';

import type { PausedScreenModel } from './model';
import { Banner, Screen } from './view';

/**
 * The screen over the documents while the whole workspace is away.
 *
 * The documents beneath stay as they are: they can be read after one click, and go on by themselves later. While the screen
 * covers them they are `inert`, so that neither Tab nor a screen reader wanders into what cannot be seen.
 */
export class PausedScreen extends ReactWidget {
  /**
   * Construct a new screen; it shows itself.
   */
  constructor(options: PausedScreen.IOptions) {
    super();
    this._options = options;
    this.id = 'jp-pause-screen';
    this.addClass('jp-Pause-screen');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute(
      'aria-label',
      options.trans.__('The paused workspace')
    );
    this.node.addEventListener('keydown', this._onKey);
    options.model.changed.connect(this._onChanged, this);
    this._observer = new ResizeObserver(() => this._place());
    this.hide();
  }

  /** Whether it is one line only. */
  get collapsed(): boolean {
    return this._collapsed;
  }
  set collapsed(value: boolean) {
    if (this._collapsed === value) {
      return;
    }
    this._collapsed = value;
    this._show();
    if (this.isVisible) {
      // The button that was clicked is gone.
      requestAnimationFrame(() =>
        this._focus(value ? '.jp-Pause-screenToggle' : 'h2')
      );
    }
  }

  /** Let go of the documents. */
  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.model.changed.disconnect(this._onChanged, this);
    this._observer.disconnect();
    this._cover(false);
    Signal.clearData(this);
    super.dispose();
  }

  /** Follow the place of the documents. */
  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    const area = this._options.area();
    if (area) {
      this._observer.observe(area);
    }
    window.addEventListener('resize', this._place);
    this._onChanged();
  }

  /** Nothing to follow any more. */
  protected override onBeforeDetach(message: Message): void {
    window.removeEventListener('resize', this._place);
    super.onBeforeDetach(message);
  }

  /** Render the screen. */
  protected override render(): JSX.Element {
    const { actions, model, now, page, trans } = this._options;
    const props = {
      model,
      now,
      page,
      trans,
      actions: {
        ...actions,
        setCollapsed: (value: boolean) => {
          this.collapsed = value;
        }
      }
    };
    return (
      <UseSignal signal={this._viewChanged}>
        {() =>
          model.state === 'hidden' ? (
            <></>
          ) : this._collapsed ? (
            <Banner {...props} />
          ) : (
            <Screen {...props} />
          )
        }
      </UseSignal>
    );
  }

  private _onChanged(): void {
    const { state } = this._options.model;
    const covering = state !== 'hidden' && state !== 'preparing';
    if (covering === this._covering) {
      if (this.isHidden === (state === 'hidden')) {
        this._viewChanged.emit();
      } else {
        this._show();
      }
      return;
    }
    this._covering = covering;
    this._collapsed = !covering;
    if (covering) {
      this._before = document.activeElement;
    }
    this._show();
    if (covering) {
      requestAnimationFrame(() => this._focus('h2'));
    } else {
      this._giveFocusBack();
    }
  }

  private _show(): void {
    const { model } = this._options;
    this.setHidden(model.state === 'hidden');
    this.toggleClass('jp-mod-collapsed', this._collapsed);
    this._cover(!this.isHidden && !this._collapsed);
    this._place();
    this._viewChanged.emit();
  }

  private _cover(covered: boolean): void {
    const area = this._options.area();
    if (area) {
      area.inert = covered;
    }
  }

  private _focus(selector: string): void {
    if (this.isVisible) {
      this.node.querySelector<HTMLElement>(selector)?.focus();
    }
  }

  private _giveFocusBack(): void {
    const before = this._before;
    this._before = null;
    const nowhere =
      document.activeElement === document.body ||
      this.node.contains(document.activeElement);
    if (nowhere && before instanceof HTMLElement && before.isConnected) {
      before.focus();
    }
  }

  private readonly _onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && !this._collapsed) {
      event.stopPropagation();
      this.collapsed = true;
    }
  };

  /** Lie exactly over the documents. */
  private readonly _place = (): void => {
    const area = this._options.area();
    const rect = area?.getBoundingClientRect();
    if (!rect || this.isHidden) {
      return;
    }
    const { style } = this.node;
    style.left = `${rect.left}px`;
    style.width = `${rect.width}px`;
    style.bottom = `${Math.max(0, window.innerHeight - rect.bottom)}px`;
    style.top = this._collapsed ? 'auto' : `${rect.top}px`;
  };

  private readonly _options: PausedScreen.IOptions;
  private readonly _viewChanged = new Signal<this, void>(this);
  private readonly _observer: ResizeObserver;
  private _collapsed = true;
  private _covering = false;
  private _before: Element | null = null;
}

/**
 * A namespace for `PausedScreen` statics.
 */
export namespace PausedScreen {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** What to show. */
    model: PausedScreenModel;

    /** What can be done. */
    actions: {
      loadCheckpoints: () => void;
      startCold: () => void;
      cancel: (operation: string) => void;
    };

    /** The element with the documents, which the screen covers. */
    area: () => HTMLElement | null;

    /** The clock (milliseconds since the epoch). */
    now: () => number;

    /** The address of the page. */
    page: string;

    /** The translations. */
    trans: TranslationBundle;
  }
}

/**
 * The element with the documents, in JupyterLab or Notebook.
 */
export function documentArea(): HTMLElement | null {
  return (
    document.getElementById('jp-main-dock-panel') ??
    document.getElementById('main-panel')
  );
}

/**
 * Put the screen on the page.
 */
export function attachScreen(screen: PausedScreen): void {
  Widget.attach(screen, document.body);
}
