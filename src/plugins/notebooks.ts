/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookCellExecutor, INotebookTracker } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { DocumentSaver } from '../documents';
import { PauseCellExecutor } from '../executor';
import { NotebookNotice } from '../notice';
import { LastStopNotifier } from '../lastStop';
import { OperationNotifier } from '../notifications';
import { Reconnector } from '../reconnect';
import { PausedSessions } from '../running';
import { widgetsOf } from '../sessions';
import {
  CommandIDs,
  IPauseActions,
  IPauseManager,
  TRANSLATION_DOMAIN
} from '../tokens';
import { openSession } from '../names';
import { IPauseSettings } from './manager';
import type { PauseSettings } from './settings';

/**
 * Runs cells; asks "Resume and run?" when the kernel is paused.
 *
 * JupyterLab's own provider is disabled in package.json, and its notebooks need one: whoever disables this
 * plugin enables `@jupyterlab/notebook-extension:cell-executor` again.
 */
export const executorPlugin: JupyterFrontEndPlugin<INotebookCellExecutor> = {
  id: 'jupyter-pause:executor',
  description:
    'Runs notebook cells, and offers to resume the kernel first when it is paused.',
  autoStart: true,
  provides: INotebookCellExecutor,
  requires: [IPauseManager, IPauseActions],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    translator: ITranslator | null
  ): INotebookCellExecutor =>
    new PauseCellExecutor({
      manager,
      actions,
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN)
    })
};

/**
 * The line on top of a notebook whose kernel is paused.
 */
export const noticePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:notice',
  description:
    'Offers Resume, and to run the remaining cells, on top of a notebook.',
  autoStart: true,
  requires: [IPauseManager, IPauseActions, INotebookTracker],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    tracker: INotebookTracker,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const notices = new WeakMap<NotebookPanel, NotebookNotice>();
    const add = (panel: NotebookPanel) => {
      if (!notices.has(panel)) {
        const notice = new NotebookNotice({ panel, manager, actions, trans });
        notices.set(panel, notice);
        panel.contentHeader.addWidget(notice);
      }
    };
    tracker.widgetAdded.connect((_, panel) => add(panel));
    tracker.forEach(add);

    const current = () =>
      tracker.currentWidget ? notices.get(tracker.currentWidget) : undefined;
    app.commands.addCommand(CommandIDs.runRemaining, {
      label: trans.__('Run Cells That a Pause Kept From Running'),
      caption: trans.__('In the order of the notebook'),
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () => (current()?.remaining ?? 0) > 0,
      execute: () => current()?.runRemaining()
    });
  }
};

/**
 * Connects open documents again after a resume or an outage.
 */
export const reconnectPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:reconnect',
  description: 'Connects open documents again after a resume or an outage.',
  autoStart: true,
  requires: [IPauseManager],
  activate: (app: JupyterFrontEnd, manager: IPauseManager): void => {
    const reconnector = new Reconnector({
      manager,
      shell: app.shell,
      terminals: app.serviceManager.terminals
    });
    window.addEventListener('unload', () => reconnector.dispose());
  }
};

/**
 * Saves open documents before a pause.
 */
export const documentsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:documents',
  description: 'Saves open documents when a pause is about to begin.',
  autoStart: true,
  requires: [IPauseManager],
  activate: (app: JupyterFrontEnd, manager: IPauseManager): void => {
    const saver = new DocumentSaver({
      manager,
      shell: app.shell,
      contents: app.serviceManager.contents
    });
    window.addEventListener('unload', () => saver.dispose());
  }
};

/**
 * One notification per pause or resume.
 */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:notifications',
  description:
    'Shows the progress of pause and resume, and asks what must be asked.',
  autoStart: true,
  requires: [IPauseManager, IPauseActions, IPauseSettings],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    settings: PauseSettings,
    translator: ITranslator | null
  ): void => {
    const showPanel = () => {
      if (app.commands.hasCommand(CommandIDs.showPanel)) {
        void app.commands.execute(CommandIDs.showPanel);
      }
    };
    const notifier = new OperationNotifier({
      manager,
      actions,
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN),
      showPanel,
      quiet: () => !settings.notify,
      onLoss: () => {
        if (settings.openPanelOnLoss) {
          showPanel();
        }
      },
      // Only one page should ask: the one that began it, or, for `%pause`, one that shows the notebook.
      shouldAsk: operation =>
        actions.beganHere(operation.id) ||
        (operation.cause === 'magic' &&
          document.visibilityState === 'visible' &&
          operation.kernels.some(
            kernel => widgetsOf(app.shell, kernel).length > 0
          ))
    });
    window.addEventListener('unload', () => notifier.dispose());
  }
};

/**
 * Tells once what a stop of the server could not save.
 */
export const lastStopPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:last-stop',
  description: 'Tells once what a stop of the server could not save.',
  autoStart: true,
  requires: [IPauseManager],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    manager: IPauseManager,
    translator: ITranslator | null
  ): void => {
    const notifier = new LastStopNotifier({
      manager,
      storage: window.localStorage,
      trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN)
    });
    window.addEventListener('unload', () => notifier.dispose());
  }
};

/**
 * The section "Paused" of the Running panel.
 */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:running',
  description: 'Lists paused sessions and checkpoints in the Running panel.',
  autoStart: true,
  requires: [IPauseManager, IPauseActions],
  // A page of Notebook has no such panel; its tree has.
  optional: [IRunningSessionManagers, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    managers: IRunningSessionManagers | null,
    translator: ITranslator | null
  ): void => {
    managers?.add(
      new PausedSessions({
        manager,
        actions,
        sessions: app.serviceManager.sessions,
        trans: (translator ?? nullTranslator).load(TRANSLATION_DOMAIN),
        open: path => openSession(app.commands, path)
      })
    );
  }
};
