/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { closeIcon, deleteIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { KernelRow } from '../api/records';
import { pauseIcon, resumeIcon } from '../icons';
import type { CurrentSession } from '../sessions';
import {
  CommandIDs,
  IPauseActions,
  IPauseManager,
  TRANSLATION_DOMAIN
} from '../tokens';
import { isWorkspaceScope, kernelActView, workspaceActView } from '../view';
import { ICurrentSession } from './manager';

/**
 * The commands, and their places in the palette. Menus are in the schema.
 */
export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pause:commands',
  description: 'Commands to pause, resume, cancel and delete.',
  autoStart: true,
  requires: [IPauseManager, IPauseActions, ICurrentSession],
  optional: [ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    manager: IPauseManager,
    actions: IPauseActions,
    session: CurrentSession,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const context: ICommandContext = { app, manager, actions, session, trans };
    addKernelCommands(context);
    addWorkspaceCommand(context);
    addCheckpointCommands(context);
    const update = () => {
      for (const id of KERNEL_COMMANDS) {
        app.commands.notifyCommandChanged(id);
      }
    };
    manager.changed.connect(update);
    session.changed.connect(update);
    for (const command of KERNEL_COMMANDS) {
      palette?.addItem({ command, category: trans.__('Kernel Operations') });
    }
  }
};

const KERNEL_COMMANDS = [
  CommandIDs.pauseWorkspace,
  CommandIDs.pause,
  CommandIDs.resume,
  CommandIDs.pauseAll,
  CommandIDs.cancel
];

interface ICommandContext {
  app: JupyterFrontEnd;
  manager: IPauseManager;
  actions: IPauseActions;
  session: CurrentSession;
  trans: TranslationBundle;
}

const KERNEL_ITEM_CLASS = 'jp-mod-kernel';

/** The kernel that a command is about: named, clicked on, or the current one. */
function kernelOf(
  { app, session }: ICommandContext,
  args: ReadonlyPartialJSONObject
): string | null {
  if (typeof args.kernel === 'string' && args.kernel) {
    return args.kernel;
  }
  if (args.contextMenu) {
    const node = app.contextMenuHitTest(element =>
      element.classList.contains(KERNEL_ITEM_CLASS)
    );
    return node?.dataset['context'] ?? null;
  }
  return session.kernel;
}

function kernelArgs(trans: TranslationBundle) {
  return {
    type: 'object' as const,
    properties: {
      kernel: {
        type: 'string' as const,
        description: trans.__('The id of the kernel; the current one if absent')
      },
      contextMenu: {
        type: 'boolean' as const,
        description: trans.__('Whether to take the kernel under the pointer')
      }
    }
  };
}

function addKernelCommands(context: ICommandContext): void {
  const { app, manager, actions, trans } = context;
  const rowOf = (args: ReadonlyPartialJSONObject): KernelRow | null =>
    manager.row(kernelOf(context, args));
  const viewOf = (args: ReadonlyPartialJSONObject) =>
    kernelActView(manager, kernelOf(context, args), trans);

  app.commands.addCommand(CommandIDs.pause, {
    label: trans.__('Pause Kernel'),
    caption: args => {
      const view = viewOf(args);
      return view.act === 'pause'
        ? view.caption
        : trans.__('This kernel is not running');
    },
    icon: pauseIcon,
    describedBy: { args: kernelArgs(trans) },
    isEnabled: args => {
      const view = viewOf(args);
      return view.act === 'pause' && view.enabled;
    },
    execute: async args => {
      const kernel = kernelOf(context, args);
      if (kernel) {
        await actions.pause([kernel]);
      }
    }
  });

  app.commands.addCommand(CommandIDs.resume, {
    label: trans.__('Resume Kernel'),
    caption: args => {
      const view = viewOf(args);
      return view.act === 'resume'
        ? view.caption
        : trans.__('This kernel is not paused');
    },
    icon: resumeIcon,
    describedBy: { args: kernelArgs(trans) },
    isEnabled: args => {
      const view = viewOf(args);
      return view.act === 'resume' && view.enabled;
    },
    execute: async args => {
      const kernel = kernelOf(context, args);
      if (kernel) {
        await actions.resume(kernel);
      }
    }
  });

  app.commands.addCommand(CommandIDs.pauseAll, {
    label: trans.__('Pause All Kernels'),
    caption: trans.__('Save the variables of every kernel that can be paused'),
    icon: pauseIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    isEnabled: () =>
      manager.availability === 'ready' && manager.state?.can_pause === true,
    execute: async () => {
      await actions.pause(null);
    }
  });

  app.commands.addCommand(CommandIDs.cancel, {
    label: trans.__('Cancel Pause or Resume'),
    caption: trans.__('Possible until the process of the kernel ends'),
    icon: closeIcon,
    describedBy: { args: kernelArgs(trans) },
    isEnabled: args => {
      const row = rowOf(args);
      return !!row && manager.operationOf(row.id)?.cancellable === true;
    },
    execute: async args => {
      const row = rowOf(args);
      const operation = row && manager.operationOf(row.id);
      if (operation) {
        await actions.cancel(operation.id);
      }
    }
  });
}

/** Only where an owner can pause the whole pod; a laptop has no such command. */
function addWorkspaceCommand({
  app,
  manager,
  actions,
  trans
}: ICommandContext): void {
  const viewOf = () => workspaceActView(manager, trans);
  app.commands.addCommand(CommandIDs.pauseWorkspace, {
    label: trans.__('Pause This Workspace'),
    caption: () => viewOf().caption,
    icon: pauseIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    isVisible: () => isWorkspaceScope(manager),
    isEnabled: () => {
      const view = viewOf();
      return (
        isWorkspaceScope(manager) &&
        view.act === 'pause-workspace' &&
        view.enabled
      );
    },
    execute: async () => {
      await actions.pauseWorkspace();
    }
  });
}

function addCheckpointCommands(context: ICommandContext): void {
  const { app, manager, actions, trans } = context;
  const args = {
    type: 'object' as const,
    properties: {
      checkpoint: {
        type: 'string' as const,
        description: trans.__('The id of the checkpoint')
      },
      path: {
        type: 'string' as const,
        description: trans.__('The notebook to open it with')
      }
    }
  };
  const item = () =>
    app.contextMenuHitTest(element =>
      element.classList.contains('jp-mod-checkpoint')
    )?.dataset['context'];
  const idOf = (given: ReadonlyPartialJSONObject): string | null =>
    typeof given.checkpoint === 'string' && given.checkpoint
      ? given.checkpoint
      : ((given.contextMenu ? item() : null) ?? null);

  app.commands.addCommand(CommandIDs.resumeCheckpoint, {
    label: trans.__('Resume Checkpoint'),
    caption: trans.__('Start a kernel with the variables of this checkpoint'),
    icon: resumeIcon,
    describedBy: { args },
    isEnabled: given =>
      manager.availability === 'ready' && idOf(given) !== null,
    execute: async given => {
      const id = idOf(given);
      const known = manager.checkpoints?.find(entry => entry.id === id);
      if (id) {
        await actions.resumeCheckpoint(
          id,
          typeof given.path === 'string' ? given.path : known?.path
        );
      }
    }
  });

  app.commands.addCommand(CommandIDs.deleteCheckpoint, {
    label: trans.__('Delete Checkpoint…'),
    caption: trans.__('Delete what a checkpoint holds for good'),
    icon: deleteIcon,
    describedBy: { args },
    isEnabled: given =>
      manager.availability === 'ready' && idOf(given) !== null,
    execute: async given => {
      const id = idOf(given);
      if (id) {
        await actions.deleteCheckpoint(id);
      }
    }
  });
}
