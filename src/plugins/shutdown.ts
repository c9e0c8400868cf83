/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { ShutDown } from '../shutdown/shutdown';
import { CommandIDs, IPauseManager, TRANSLATION_DOMAIN } from '../tokens';

/**
 * The command behind File > Shut Down, in JupyterLab and in Notebook.
 */
const STOCK = 'filemenu:shutdown';

/**
 * File > Shut Down keeps what is paused.
 *
 * JupyterLab's own command deletes every session before it stops the server, and nothing of it can be replaced: a
 * command cannot be registered twice, and its place in the palette cannot be taken back. So its call is led to ours,
 * wherever it comes from; where there is nothing to keep, ours calls it.
 */
export const shutDownPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:shut-down',
  description: 'Keeps paused kernels when the server is shut down.',
  autoStart: true,
  requires: [IPauseManager],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    translator: ITranslator | null
  ): void => {
    const { commands, serviceManager, shell } = app;
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const shutDown = new ShutDown({
      manager,
      services: serviceManager,
      shell,
      contents: serviceManager.contents,
      name: app.name,
      trans
    });
    const execute = commands.execute.bind(commands);
    commands.addCommand(CommandIDs.shutDown, {
      label: trans.__('Shut Down and Keep What Is Paused'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async args => {
        if (!(await shutDown.run())) {
          await execute(STOCK, args);
        }
      }
    });
    commands.execute = (id, args) =>
      execute(id === STOCK ? CommandIDs.shutDown : id, args);
  }
};
