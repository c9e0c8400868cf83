/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { JupyterLab } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';

import { PauseActions } from '../actions';
import { PauseClient } from '../api/client';
import { NotebookAttacher } from '../attach';
import { PauseManager } from '../manager';
import { CurrentSession } from '../sessions';
import { IPauseActions, IPauseManager, TRANSLATION_DOMAIN } from '../tokens';
import { PauseSettings, SETTINGS_ID } from './settings';

/**
 * The session the person looks at.
 */
export const ICurrentSession = new Token<CurrentSession>(
  'jupyter-pause:ICurrentSession',
  'The notebook or console that the person looks at, with its kernel.'
);

/**
 * What the person chose.
 */
export const IPauseSettings = new Token<PauseSettings>(
  'jupyter-pause:IPauseSettings',
  'The settings of jupyter-pause, with defaults.'
);

/**
 * The live state. Everything else depends on it; it depends on nothing optional.
 */
export const managerPlugin: JupyterFrontEndPlugin<IPauseManager> = {
  id: SETTINGS_ID,
  description:
    'Keeps the live state of paused and pausable kernels, from server events with slow polling as a safety net.',
  autoStart: true,
  provides: IPauseManager,
  optional: [JupyterLab.IInfo],
  activate: (
    app: JupyterFrontEnd,
    info: JupyterLab.IInfo | null
  ): IPauseManager => {
    const { events, serverSettings } = app.serviceManager;
    const manager = new PauseManager({
      client: new PauseClient(serverSettings),
      events: events.stream,
      standby: () => info?.isConnected === false
    });
    // Kernels are started by JupyterLab, not by us: look at them as soon as it knows them.
    const { kernels } = app.serviceManager;
    const look = () => {
      manager.expect(Array.from(kernels.running(), kernel => kernel.id));
    };
    kernels.runningChanged.connect(look);
    void manager.ready.then(look);
    // Whoever notices an outage first: then ask at once, not half a minute later.
    app.serviceManager.connectionFailure.connect(() => {
      void manager.refresh();
    });
    return manager;
  }
};

/**
 * What the person chose.
 */
export const settingsPlugin: JupyterFrontEndPlugin<PauseSettings> = {
  id: 'jupyter-pause:settings',
  description: 'Reads the settings of jupyter-pause.',
  autoStart: true,
  provides: IPauseSettings,
  optional: [ISettingRegistry],
  activate: (
    _: JupyterFrontEnd,
    registry: ISettingRegistry | null
  ): PauseSettings => new PauseSettings(registry)
};

/**
 * The session the person looks at.
 */
export const sessionPlugin: JupyterFrontEndPlugin<CurrentSession> = {
  id: 'jupyter-pause:current-session',
  description: 'Follows the notebook or console that the person looks at.',
  autoStart: true,
  provides: ICurrentSession,
  requires: [IPauseManager],
  activate: (app: JupyterFrontEnd, manager: IPauseManager): CurrentSession => {
    const session = new CurrentSession(app.shell);
    session.changed.connect(() => {
      if (session.kernel) {
        manager.expect([session.kernel]);
      }
    });
    // `ready` ends with the first cell, and no event says so.
    session.executed.connect(() => {
      if (manager.row(session.kernel)?.state === 'ready') {
        void manager.refresh();
      }
    });
    return session;
  }
};

/**
 * Pause and resume with the questions that belong to them.
 */
export const actionsPlugin: JupyterFrontEndPlugin<IPauseActions> = {
  id: 'jupyter-pause:actions',
  description: 'Pause and resume with the questions that belong to them.',
  autoStart: true,
  provides: IPauseActions,
  requires: [IPauseManager, IPauseSettings],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    settings: PauseSettings,
    translator: ITranslator | null
  ): IPauseActions => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    return new PauseActions({
      manager,
      trans,
      alwaysConfirm: () => settings.alwaysConfirm,
      attacher: new NotebookAttacher({
        shell: app.shell,
        commands: app.commands,
        manager,
        trans
      })
    });
  }
};
