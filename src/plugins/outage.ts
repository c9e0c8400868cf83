/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import type { ConnectionOwner } from '../connection';
import { OutageKeeper } from '../outage';
import { IPauseManager } from '../tokens';
import { IConnectionOwner } from './connection';

/**
 * Milliseconds. On a hub only JupyterLab's own dialog can start a stopped server again, so it must come in the end.
 */
const HUB_LIMIT = 60_000;

/**
 * Keeps JupyterLab from reporting an error while paused kernels wait for their server.
 */
export const outagePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:outage',
  description:
    'Keeps JupyterLab from reporting an error while paused kernels wait for their server.',
  autoStart: true,
  requires: [IPauseManager, IConnectionOwner],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    connection: ConnectionOwner
  ): void => {
    const { paths, shell } = app as JupyterFrontEnd & {
      paths?: JupyterFrontEnd.IPaths;
    };
    const keeper = new OutageKeeper({
      manager,
      connection,
      shell,
      limit: paths?.urls.hubPrefix ? HUB_LIMIT : undefined
    });
    window.addEventListener('unload', () => keeper.dispose());
  }
};
