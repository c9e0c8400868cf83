/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

/**
 * The session context of a notebook, a console or anything else that has one; null otherwise.
 */
export function sessionContextOf(
  widget: Widget | null
): ISessionContext | null {
  const context = (widget as { sessionContext?: ISessionContext } | null)
    ?.sessionContext;
  return context && typeof context === 'object' && 'kernelChanged' in context
    ? context
    : null;
}

/**
 * The id of the kernel of a widget, or null.
 */
export function kernelIdOf(widget: Widget | null): string | null {
  return sessionContextOf(widget)?.session?.kernel?.id ?? null;
}

/**
 * All open widgets that use a kernel.
 */
export function widgetsOf(
  shell: JupyterFrontEnd.IShell,
  kernel: string
): Widget[] {
  return Array.from(shell.widgets('main')).filter(
    widget => kernelIdOf(widget) === kernel
  );
}

/**
 * The session the person looks at: the last notebook or console that was current.
 */
export class CurrentSession implements IDisposable {
  /**
   * Construct a new current session.
   */
  constructor(shell: JupyterFrontEnd.IShell) {
    this._shell = shell;
    shell.currentChanged?.connect(this._onCurrentChanged, this);
    this._onCurrentChanged();
  }

  /** Emitted when the session, its kernel or its path changes. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when a cell has run. */
  get executed(): ISignal<this, void> {
    return this._executed;
  }

  /** The widget, or null. */
  get widget(): Widget | null {
    return this._widget;
  }

  /** The session context, or null. */
  get context(): ISessionContext | null {
    return sessionContextOf(this._widget);
  }

  /** The id of the kernel, or null. */
  get kernel(): string | null {
    return kernelIdOf(this._widget);
  }

  /** The path of the document, or null. */
  get path(): string | null {
    return this.context?.path ?? null;
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Let go of the widget. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._shell.currentChanged?.disconnect(this._onCurrentChanged, this);
    this._release();
    Signal.clearData(this);
  }

  private _onCurrentChanged(): void {
    const widget = this._shell.currentWidget;
    if (widget === this._widget) {
      return;
    }
    this._release();
    this._widget = widget;
    widget?.disposed.connect(this._onDisposed, this);
    const context = this.context;
    context?.kernelChanged.connect(this._emit, this);
    context?.propertyChanged.connect(this._emit, this);
    context?.iopubMessage.connect(this._onMessage, this);
    this._emit();
  }

  private _onDisposed(): void {
    this._widget = null;
    this._emit();
  }

  private _release(): void {
    const context = this.context;
    context?.kernelChanged.disconnect(this._emit, this);
    context?.propertyChanged.disconnect(this._emit, this);
    context?.iopubMessage.disconnect(this._onMessage, this);
    this._widget?.disposed.disconnect(this._onDisposed, this);
    this._widget = null;
  }

  private _onMessage(_: unknown, msg: KernelMessage.IMessage): void {
    if (
      msg.header.msg_type === 'status' &&
      (msg as KernelMessage.IStatusMsg).content.execution_state === 'idle' &&
      (msg.parent_header as KernelMessage.IHeader).msg_type ===
        'execute_request'
    ) {
      this._executed.emit();
    }
  }

  private _emit(): void {
    this._changed.emit();
  }

  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _executed = new Signal<this, void>(this);
  private _widget: Widget | null = null;
  private _isDisposed = false;
}
