/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Kernel, Terminal } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';

import type { KernelRow } from './api/records';
import { sessionContextOf, widgetsOf } from './sessions';
import { reconnectTerminals } from './terminals';
import type { Availability, IKernelChange, IPauseManager } from './tokens';

/**
 * Milliseconds a kernel that is back may take to answer on an open connection.
 */
const PATIENCE = 10_000;

/**
 * Brings the connections of open documents back to life: after a resume, and after the server was away.
 *
 * JupyterLab alone is not enough: a connection closed with 1000 or 1001 is never tried again, others wait
 * up to half a minute.
 */
export class Reconnector implements IDisposable {
  /**
   * Construct a new reconnector.
   */
  constructor(options: Reconnector.IOptions) {
    this._manager = options.manager;
    this._shell = options.shell;
    this._terminals = options.terminals;
    this._manager.kernelChanged.connect(this._onKernelChanged, this);
    this._manager.availabilityChanged.connect(this._onAvailability, this);
  }

  /** Whether it is disposed. */
  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Stop. */
  dispose(): void {
    this._isDisposed = true;
    this._manager.kernelChanged.disconnect(this._onKernelChanged, this);
    this._manager.availabilityChanged.disconnect(this._onAvailability, this);
  }

  private _onKernelChanged(_: unknown, change: IKernelChange): void {
    const { previous, row } = change;
    if (row && previous && cameBack(previous, row)) {
      const moved =
        row.last_resume?.ports_changed === true &&
        row.last_resume.at !== previous.last_resume?.at;
      for (const kernel of this._connections(row.id)) {
        void revive(kernel, moved);
      }
    }
  }

  private _onAvailability(_: unknown, availability: Availability): void {
    const before = this._availability;
    this._availability = availability;
    if (availability !== 'ready' || before !== 'unreachable') {
      return;
    }
    void reconnectTerminals(this._shell, this._terminals);
    for (const row of this._manager.state?.kernels ?? []) {
      for (const kernel of this._connections(row.id)) {
        if (kernel.connectionStatus !== 'connected') {
          void reconnect(kernel);
        }
      }
    }
  }

  private _connections(id: string): Kernel.IKernelConnection[] {
    return widgetsOf(this._shell, id)
      .map(widget => sessionContextOf(widget)?.session?.kernel)
      .filter((kernel): kernel is Kernel.IKernelConnection => !!kernel);
  }

  private readonly _manager: IPauseManager;
  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _terminals: Terminal.IManager;
  private _availability: Availability = 'starting';
  private _isDisposed = false;
}

/**
 * A namespace for `Reconnector` statics.
 */
export namespace Reconnector {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** The live state. */
    manager: IPauseManager;

    /** Where the documents are. */
    shell: JupyterFrontEnd.IShell;

    /** The terminals of the server. */
    terminals: Terminal.IManager;
  }
}

/**
 * Whether a kernel has a process again that it had not before.
 */
export function cameBack(previous: KernelRow, row: KernelRow): boolean {
  const away: KernelRow['state'][] = ['paused', 'resuming', 'waiting'];
  const back: KernelRow['state'][] = ['ready', 'running'];
  return away.includes(previous.state) && back.includes(row.state);
}

/**
 * Make sure that a connection to a kernel that came back works.
 *
 * An open connection on unchanged ports is kept when the kernel answers on it: answers to cells that
 * waited for the resume travel on it, and a new connection would race them.
 */
export async function revive(
  kernel: Kernel.IKernelConnection,
  moved: boolean,
  patience = PATIENCE
): Promise<void> {
  if (kernel.isDisposed) {
    return;
  }
  if (!moved && kernel.connectionStatus === 'connected') {
    const answered = await Promise.race([
      kernel.requestKernelInfo().then(
        () => true,
        () => false
      ),
      new Promise<boolean>(resolve =>
        window.setTimeout(() => resolve(false), patience)
      )
    ]);
    if (answered || kernel.isDisposed) {
      return;
    }
  }
  await reconnect(kernel);
}

async function reconnect(kernel: Kernel.IKernelConnection): Promise<void> {
  if (kernel.isDisposed) {
    return;
  }
  try {
    await kernel.reconnect();
  } catch (error) {
    // JupyterLab shows the connection's state; the next change of ours tries again.
    console.warn('Reconnecting failed', error);
  }
}
