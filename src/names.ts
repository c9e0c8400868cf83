/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { CommandRegistry } from '@lumino/commands';

import type { KernelRow, Operation } from './api/records';
import type { IPauseManager } from './tokens';

/**
 * JupyterLab gives consoles a path of their own making.
 */
const CONSOLE = /(?:^|\/)console-(\d+)-[0-9a-f-]{36}$/;

/**
 * What a person calls a path: the name of the file, or the number of the console.
 */
export function pathName(path: string, trans: TranslationBundle): string {
  const number = CONSOLE.exec(path)?.[1];
  return number ? trans.__('Console %1', number) : PathExt.basename(path);
}

/**
 * Open what a session belongs to.
 */
export function openSession(commands: CommandRegistry, path: string): void {
  const command = CONSOLE.test(path) ? 'console:open' : 'docmanager:open';
  if (commands.hasCommand(command)) {
    void commands.execute(command, { path });
  }
}

/**
 * What a person calls a session: the name of its file, else the kernel's name.
 */
export function sessionName(
  row: KernelRow | null,
  trans: TranslationBundle
): string {
  if (row?.path) {
    return pathName(row.path, trans);
  }
  if (row?.name) {
    return trans.__('%1 kernel', row.name);
  }
  return trans.__('the kernel');
}

/**
 * What a person calls the sessions of an operation.
 */
export function operationName(
  operation: Operation,
  manager: IPauseManager,
  trans: TranslationBundle
): string {
  if (operation.scope === 'workspace') {
    return trans.__('this workspace');
  }
  return operation.kernels.length === 1
    ? sessionName(manager.row(operation.kernels[0]), trans)
    : trans._n('%1 kernel', '%1 kernels', operation.kernels.length);
}
