/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import type { IDisposable } from '@lumino/disposable';

/**
 * Milliseconds that a notification may take to be drawn. It never is while the person wants not to be disturbed.
 */
const DRAWING = 60_000;

/**
 * The options of an update.
 */
type Update = Parameters<typeof Notification.update>[0];

/**
 * Updates notifications so that the last word is what is on the screen.
 *
 * JupyterLab loads what draws them with the first one. An update that comes before it is drawn reaches the list behind
 * the bell but not the screen (JupyterLab 4.6: notificationplugin.tsx makes it a second toast of the same id, and
 * that is dropped), where the first word then stays for good. So the latest such update is sent again once it is drawn.
 */
export class ToastUpdater implements IDisposable {
  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Wait for nothing any more. */
  dispose(): void {
    this._isDisposed = true;
    this._early.clear();
    this._stopWatching();
  }

  /** Update a notification; false when it was closed. */
  update(update: Update): boolean {
    this._early.delete(update.id);
    const isOpen = Notification.update(update);
    if (isOpen && !isDrawn(update.id) && !this._isDisposed) {
      this._early.set(update.id, update);
      this._watch();
    }
    return isOpen;
  }

  private _watch(): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => {
      this._early.clear();
      this._stopWatching();
    }, DRAWING);
    if (!this._observer) {
      this._observer = new MutationObserver(() => this._sendAgain());
      this._observer.observe(document.body, { childList: true, subtree: true });
    }
  }

  private _sendAgain(): void {
    for (const [id, update] of [...this._early]) {
      if (isDrawn(id)) {
        this._early.delete(id);
        Notification.update(update);
      }
    }
    if (this._early.size === 0) {
      this._stopWatching();
    }
  }

  private _stopWatching(): void {
    clearTimeout(this._timer);
    this._observer?.disconnect();
    this._observer = null;
  }

  private readonly _early = new Map<string, Update>();
  private _observer: MutationObserver | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}

/** A toast's element has the id of its notification. */
function isDrawn(id: string): boolean {
  return document.getElementById(id) !== null;
}
