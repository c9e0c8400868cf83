/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import type { ConsolePanel } from '@jupyterlab/console';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { PauseBadge } from '../badge';
import type { CurrentSession } from '../sessions';
import {
  CommandIDs,
  IPauseActions,
  IPauseManager,
  TRANSLATION_DOMAIN
} from '../tokens';
import { PauseButton } from '../toolbar';
import { ICurrentSession, IPauseSettings } from './manager';
import type { PausedScreenModel } from '../pausedscreen/model';
import type { PauseSettings } from './settings';
import { IWorkspaceAway } from './workspace';

/**
 * The buttons in the toolbars of notebooks and consoles. Their places are in the schema.
 */
export const toolbarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:toolbar',
  description: 'The Pause button of notebooks and consoles.',
  autoStart: true,
  requires: [IPauseManager, IPauseActions, IToolbarWidgetRegistry],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    toolbars: IToolbarWidgetRegistry,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const create = (panel: NotebookPanel | ConsolePanel) =>
      new PauseButton({
        context: panel.sessionContext,
        manager,
        actions,
        trans,
        showPanel: () => showPanel(app)
      });
    toolbars.addFactory<NotebookPanel>('Notebook', 'jupyter-pause', create);
    toolbars.addFactory<ConsolePanel>('ConsolePanel', 'jupyter-pause', create);
  }
};

/**
 * The badge in the status bar, or, where there is none, in the top bar.
 */
export const badgePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:badge',
  description:
    'The live state of the current kernel in the status bar or the top bar.',
  autoStart: true,
  requires: [IPauseManager, ICurrentSession, IPauseSettings],
  optional: [IStatusBar, IToolbarWidgetRegistry, IWorkspaceAway, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    session: CurrentSession,
    settings: PauseSettings,
    statusBar: IStatusBar | null,
    toolbars: IToolbarWidgetRegistry | null,
    away: PausedScreenModel | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const create = () =>
      new PauseBadge({
        manager,
        session,
        away,
        trans,
        onClick: () => showPanel(app)
      });
    if (statusBar) {
      const activeStateChanged = new Signal<object, void>(settings);
      settings.changed.connect(() => activeStateChanged.emit());
      statusBar.registerStatusItem('jupyter-pause:badge', {
        item: create(),
        align: 'left',
        rank: 3,
        priority: 1,
        isActive: () => settings.showBadge,
        activeStateChanged
      });
      // The schema asks for an item in the top bar in every application.
      toolbars?.addFactory('TopBar', 'jupyter-pause', () => {
        const nothing = new Widget();
        nothing.hide();
        return nothing;
      });
      return;
    }
    toolbars?.addFactory('TopBar', 'jupyter-pause', () => {
      const badge = create();
      badge.addClass('jp-mod-topbar');
      const apply = () => badge.setHidden(!settings.showBadge);
      settings.changed.connect(apply);
      badge.disposed.connect(() => settings.changed.disconnect(apply));
      apply();
      return badge;
    });
  }
};

function showPanel(app: JupyterFrontEnd): void {
  if (app.commands.hasCommand(CommandIDs.showPanel)) {
    void app.commands.execute(CommandIDs.showPanel);
  }
}
