/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';
import { DisposableDelegate } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';

import type { ConnectionOwner } from '../connection';
import type { Reason } from '../api/records';
import type { IDoorEnvironment, ISize } from '../owners';
import { DoorError, openDoor } from '../owners';
import { offerColdStart } from '../pausedscreen/colddialog';
import { FarewellStore } from '../pausedscreen/farewell';
import type { IClock } from '../pausedscreen/model';
import { PausedScreenModel } from '../pausedscreen/model';
import { announceResume, loadCheckpoints } from '../pausedscreen/report';
import {
  attachScreen,
  documentArea,
  PausedScreen
} from '../pausedscreen/widget';
import { coldCommand } from '../pausedscreen/words';
import {
  CommandIDs,
  IPauseActions,
  IPauseManager,
  TRANSLATION_DOMAIN
} from '../tokens';
import { workspaceOperation } from '../view';
import { IConnectionOwner } from './connection';
import { IPauseSettings } from './manager';
import type { PauseSettings } from './settings';

/**
 * The workspace as this tab knows it, also while its server is gone.
 */
export const IWorkspaceAway = new Token<PausedScreenModel>(
  'jupyter-pause:IWorkspaceAway',
  'The state of a workspace that is paused as a whole, also while its server is gone.'
);

/**
 * Follows a workspace that is paused as a whole.
 */
export const workspacePlugin: JupyterFrontEndPlugin<PausedScreenModel> = {
  id: 'jupyter-pause:workspace',
  description:
    'Follows a workspace that is paused as a whole, and resumes it through its owner.',
  autoStart: true,
  provides: IWorkspaceAway,
  requires: [IPauseManager, IConnectionOwner],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    connection: ConnectionOwner
  ): PausedScreenModel => {
    const base = new URL(
      app.serviceManager.serverSettings.baseUrl,
      window.location.href
    );
    const environment = (): IDoorEnvironment => ({
      fetch: (url, init) => window.fetch(url, init),
      open: (url, name) => window.open(url, name),
      page: window.location.href,
      basePath: base.pathname,
      cookies: () => document.cookie
    });
    const model = new PausedScreenModel({
      open: farewell => openDoor(farewell.workspace.door, environment()),
      store: new FarewellStore(
        storage('sessionStorage'),
        storage('localStorage'),
        base.pathname
      ),
      clock: CLOCK,
      visible: () => document.visibilityState === 'visible',
      refresh: () => manager.refresh(),
      hold: () => connection.hold()
    });
    const tell = () => {
      // Before the first answer nothing is known, also not that the server is gone.
      if (manager.availability !== 'starting') {
        model.serverSays({
          answers: manager.availability === 'ready',
          state: manager.state,
          operation: workspaceOperation(manager),
          checkpoints: manager.checkpoints
        });
      }
    };
    // What was just saved is in no row of a kernel that goes on: ask while the server still answers.
    const saved = new Throttler(() => manager.refreshCheckpoints(), {
      limit: 1000,
      edge: 'leading'
    });
    manager.operationChanged.connect((_, operation) => {
      if (
        operation.scope === 'workspace' &&
        operation.kind === 'pause' &&
        (operation.phase === 'saving' || operation.phase === 'draining')
      ) {
        void saved.invoke();
      }
    });
    const wake = () => model.wake();
    manager.changed.connect(tell);
    document.addEventListener('visibilitychange', wake);
    window.addEventListener('unload', () => {
      document.removeEventListener('visibilitychange', wake);
      saved.dispose();
      model.dispose();
    });
    tell();
    return model;
  }
};

/**
 * The screen over the documents while the workspace is away.
 */
export const pausedScreenPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:paused-screen',
  description:
    'The screen over the documents while the whole workspace is away: what was kept, and Resume.',
  autoStart: true,
  requires: [IWorkspaceAway, IPauseManager, IPauseActions],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: PausedScreenModel,
    manager: IPauseManager,
    actions: IPauseActions,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const startCold = async (problem: Reason | null = null): Promise<void> => {
      const workspace = model.farewell?.workspace;
      if (!workspace) {
        return;
      }
      const [sizes, unknown] = isCrashing(model.reason)
        ? [[], { code: 'cold_crashes', message: '', params: {} }]
        : await sizesOf(model);
      const size = await offerColdStart(
        { sizes, problem: problem ?? unknown, command: coldCommand(workspace) },
        trans
      );
      const refused = size === null ? null : await model.startOn(size);
      if (refused && refused.code !== 'cold_cancelled') {
        await startCold(refused);
      }
    };
    const screen = new PausedScreen({
      model,
      actions: {
        startCold: () => void startCold(),
        cancel: operation => void actions.cancel(operation),
        loadCheckpoints: () => {
          const { report } = model;
          model.acknowledge();
          if (report) {
            void loadCheckpoints(report, manager, actions);
          }
        }
      },
      area: documentArea,
      now: () => CLOCK.now(),
      page: window.location.href,
      trans
    });
    void app.started.then(() => attachScreen(screen));
  }
};

/**
 * Says how a workspace came back.
 */
export const resumeReportPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:resume-report',
  description: 'Says how a workspace came back.',
  autoStart: true,
  requires: [IWorkspaceAway, IPauseManager, IPauseActions, IPauseSettings],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: PausedScreenModel,
    manager: IPauseManager,
    actions: IPauseActions,
    settings: PauseSettings,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const showPanel = () => {
      if (app.commands.hasCommand(CommandIDs.showPanel)) {
        void app.commands.execute(CommandIDs.showPanel);
      }
    };
    model.cameBack.connect((_, report) => {
      announceResume({
        report,
        quiet: !settings.notify,
        showPanel,
        loadCheckpoints: () => void loadCheckpoints(report, manager, actions),
        trans
      });
      if (report.outcome !== 'restored' && settings.openPanelOnLoss) {
        showPanel();
      }
    });
  }
};

/** Its pod runs, for moments: the platform would want a snapshot of it before it is paused again. */
function isCrashing(reason: Reason | null): boolean {
  return reason?.params?.why === 'CrashLoopBackOff';
}

/** What the workspace may be started on instead, or why nobody knows. */
async function sizesOf(
  model: PausedScreenModel
): Promise<[ISize[], Reason | null]> {
  try {
    const sizes = await model.sizes();
    return [
      sizes,
      sizes.length > 0
        ? null
        : { code: 'no_other_size', message: '', params: {} }
    ];
  } catch (error) {
    return [
      [],
      {
        code: 'sizes_unknown',
        message: '',
        params:
          error instanceof DoorError && error.detail
            ? { detail: error.detail }
            : {}
      }
    ];
  }
}

const CLOCK: IClock = {
  now: () => Date.now(),
  after: (milliseconds, call) => {
    const timer = window.setTimeout(call, milliseconds);
    return new DisposableDelegate(() => window.clearTimeout(timer));
  }
};

/** A browser may forbid even to look whether there is one. */
function storage(name: 'sessionStorage' | 'localStorage'): Storage | null {
  try {
    return window[name];
  } catch {
    return null;
  }
}
