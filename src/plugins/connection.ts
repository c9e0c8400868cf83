/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IConnectionStatus } from '@jupyterlab/services';
import { Token } from '@lumino/coreutils';

import { ConnectionOwner } from '../connection';

/**
 * The one owner of the application's connection flag.
 */
export const IConnectionOwner = new Token<ConnectionOwner>(
  'jupyter-pause:IConnectionOwner',
  'Says to the application that its server is expected to be away.'
);

/**
 * Everything of ours that holds the application's flag does so here, or two reasons would undo each other.
 */
export const connectionPlugin: JupyterFrontEndPlugin<ConnectionOwner> = {
  id: 'jupyter-pause:connection',
  description:
    'Says to the application that its server is expected to be away.',
  autoStart: true,
  provides: IConnectionOwner,
  optional: [IConnectionStatus],
  activate: (
    _: JupyterFrontEnd,
    connection: IConnectionStatus | null
  ): ConnectionOwner =>
    // An application without the flag has nothing that could complain.
    new ConnectionOwner(connection ?? { isConnected: true })
};
