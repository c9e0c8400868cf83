/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { KernelRow, Operation } from './api/records';
import type { IPauseManager } from './tokens';

/**
 * What a person calls a session: the name of its file, else the kernel's name.
 */
export function sessionName(
  row: KernelRow | null,
  trans: TranslationBundle
): string {
  if (row?.path) {
    return PathExt.basename(row.path);
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
  return operation.kernels.length === 1
    ? sessionName(manager.row(operation.kernels[0]), trans)
    : trans._n('%1 kernel', '%1 kernels', operation.kernels.length);
}
