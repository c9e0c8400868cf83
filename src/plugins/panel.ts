/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { pausedIcon } from '../icons';
import { openSession } from '../names';
import { PanelModel } from '../panel/model';
import { PausePanel } from '../panel/widget';
import type { PausedScreenModel } from '../pausedscreen/model';
import type { CurrentSession } from '../sessions';
import {
  CommandIDs,
  IPauseActions,
  IPauseManager,
  TRANSLATION_DOMAIN
} from '../tokens';
import { ICurrentSession } from './manager';
import { IWorkspaceAway } from './workspace';

/**
 * The side panel "What will be restored".
 */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:panel',
  description: 'The side panel that shows what will be restored.',
  autoStart: true,
  requires: [IPauseManager, IPauseActions, ICurrentSession],
  optional: [
    ILabShell,
    ILayoutRestorer,
    ICommandPalette,
    IWorkspaceAway,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    session: CurrentSession,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    away: PausedScreenModel | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const panel = new PausePanel({
      model: new PanelModel({ manager, session, away }),
      actions,
      trans,
      open: path => openSession(app.commands, path)
    });
    app.shell.add(panel, 'right', { rank: 850, type: 'Pause' });
    restorer?.add(panel, panel.id);

    app.commands.addCommand(CommandIDs.showPanel, {
      label: trans.__('Show What Will Be Restored'),
      caption: trans.__('Variables, files and losses of the current kernel'),
      icon: pausedIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        if (!labShell && 'expandRight' in app.shell) {
          // Notebook 7 keeps its side areas closed until they are asked for.
          (
            app.shell as unknown as { expandRight: (id: string) => void }
          ).expandRight(panel.id);
        }
        app.shell.activateById(panel.id);
      }
    });
    palette?.addItem({
      command: CommandIDs.showPanel,
      category: trans.__('Kernel Operations')
    });
  }
};
