/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Terminal } from '@jupyterlab/services';
import type { Widget } from '@lumino/widgets';

/**
 * Connect open terminals again after their server was away. JupyterLab tries seven times, for some minutes at most.
 *
 * A terminal that did not come back is closed by JupyterLab itself once it has the new list, which is asked for first.
 */
export async function reconnectTerminals(
  shell: JupyterFrontEnd.IShell,
  terminals: Pick<Terminal.IManager, 'refreshRunning'>
): Promise<void> {
  const cut = Array.from(shell.widgets('main'), terminalOf).filter(
    connection => connection && connection.connectionStatus !== 'connected'
  ) as Terminal.ITerminalConnection[];
  if (cut.length === 0) {
    return;
  }
  try {
    await terminals.refreshRunning();
    await Promise.all(
      cut
        .filter(connection => !connection.isDisposed)
        .map(connection => connection.reconnect())
    );
  } catch (error) {
    // It shows itself as disconnected; its own menu entry connects it.
    console.warn('Reconnecting terminals failed', error);
  }
}

/** The connection of a terminal's widget; null for any other. */
function terminalOf(widget: Widget): Terminal.ITerminalConnection | null {
  const { content } = widget as {
    content?: { session?: Terminal.ITerminalConnection };
  };
  const session = content?.session;
  return session &&
    typeof session.reconnect === 'function' &&
    'connectionStatus' in session &&
    'name' in session
    ? session
    : null;
}
