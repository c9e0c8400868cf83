/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import { checkIcon, errorIcon, kernelIcon } from '@jupyterlab/ui-components';

import type { KernelRow, Operation } from './api/records';
import { formatBytes, formatDuration, localeOf } from './format';
import { busyIcon, pauseIcon, pausedIcon, resumeIcon } from './icons';
import {
  availabilitySentence,
  blockedSentence,
  phaseName,
  stateName
} from './messages';
import type { IPauseManager } from './tokens';
import { workspacePhaseName } from './sentences/workspace';

/**
 * What the button of one session does now.
 */
export interface IActView {
  /** What a click does; `busy` cancels nothing and starts nothing: it shows the panel. */
  readonly act: 'pause' | 'pause-workspace' | 'resume' | 'busy';

  /** The text of the button. */
  readonly label: string;

  /** The tooltip: what it does, or why it cannot. */
  readonly caption: string;

  /** Its icon. */
  readonly icon: LabIcon;

  /** Whether it can be used. */
  readonly enabled: boolean;
}

/**
 * Whether a kernel is between two states.
 */
export function isBusy(row: KernelRow | null): boolean {
  return (
    row?.state === 'pausing' ||
    row?.state === 'resuming' ||
    row?.state === 'waiting'
  );
}

/**
 * Whether a kernel has a process that can be looked into.
 */
export function hasProcess(row: KernelRow | null): boolean {
  return (
    row?.state === 'running' ||
    row?.state === 'ready' ||
    row?.state === 'pausing'
  );
}

/**
 * Whether a kernel is away, with something to come back from.
 */
export function isPaused(row: KernelRow | null): boolean {
  return (
    row?.state === 'paused' || (row?.state === 'failed' && !!row.checkpoint)
  );
}

/**
 * What the button of a session shows.
 *
 * @param kernel - the id of its kernel, or null.
 */
export function actView(
  manager: IPauseManager,
  kernel: string | null,
  trans: TranslationBundle
): IActView {
  const row = manager.row(kernel);
  const away = availabilitySentence(manager.availability, trans);
  if (isBusy(row)) {
    const pausing = row?.state === 'pausing';
    return {
      act: 'busy',
      label: pausing ? trans.__('Pausing…') : trans.__('Resuming…'),
      caption: away ?? progressSentence(manager, row as KernelRow, trans),
      icon: busyIcon,
      enabled: away === null
    };
  }
  if (isPaused(row)) {
    const held = row?.reason?.code === 'session_held';
    return {
      act: 'resume',
      label: trans.__('Resume'),
      caption:
        away ??
        (held
          ? blockedSentence(row?.reason ?? null, trans)
          : trans.__('Bring the kernel back with its variables')),
      icon: resumeIcon,
      enabled: away === null && !held
    };
  }
  if (isWorkspaceScope(manager)) {
    return workspaceActView(manager, trans);
  }
  return kernelActView(manager, kernel, trans);
}

/**
 * Whether the pause button pauses the whole workspace here.
 */
export function isWorkspaceScope(manager: IPauseManager): boolean {
  return manager.state?.scope === 'workspace' && !!manager.state.workspace;
}

/**
 * The operation that works on the whole workspace now, or null.
 */
export function workspaceOperation(manager: IPauseManager): Operation | null {
  const { state } = manager;
  const named = state?.workspace?.operation ?? state?.operation?.id ?? null;
  const operation = manager.operation(named);
  return operation?.scope === 'workspace' &&
    (operation.state === 'running' || operation.state === 'needs_decision')
    ? operation
    : null;
}

/**
 * What a click does with the whole workspace: why it cannot be paused, or what to know before.
 */
export function workspaceActView(
  manager: IPauseManager,
  trans: TranslationBundle
): IActView {
  const away = availabilitySentence(manager.availability, trans);
  const operation = workspaceOperation(manager);
  const workspace = manager.state?.workspace;
  const moving =
    workspace?.state === 'pausing' || workspace?.state === 'resuming';
  if (operation || moving) {
    const pausing = operation
      ? operation.kind === 'pause'
      : workspace?.state === 'pausing';
    return {
      act: 'busy',
      label: pausing ? trans.__('Pausing…') : trans.__('Resuming…'),
      caption:
        away ??
        [
          pausing
            ? trans.__('This workspace is being paused')
            : trans.__('This workspace is being resumed'),
          ...(operation ? progressParts(operation, trans) : [])
        ].join(', '),
      icon: busyIcon,
      enabled: away === null
    };
  }
  const blocked = blockedSentences(manager, trans);
  const why = away ?? (blocked.length > 0 ? blocked.join(' ') : null);
  return {
    act: 'pause-workspace',
    label: trans.__('Pause this workspace'),
    caption:
      why ??
      [
        trans.__(
          'Keep what it holds and give its compute back: server, kernels and terminals'
        ),
        ...warningSentences(manager, trans)
      ].join('. '),
    icon: pauseIcon,
    enabled: why === null
  };
}

/**
 * Why the whole workspace cannot be paused; empty when it can.
 */
export function blockedSentences(
  manager: IPauseManager,
  trans: TranslationBundle
): string[] {
  const { state } = manager;
  if (!state || state.can_pause) {
    return [];
  }
  return state.blocked_by.length > 0
    ? state.blocked_by.map(reason => blockedSentence(reason, trans))
    : [trans.__('This workspace cannot be paused now.')];
}

/**
 * What to know before the click.
 */
export function warningSentences(
  manager: IPauseManager,
  trans: TranslationBundle
): string[] {
  return (manager.state?.workspace?.warnings ?? []).map(reason =>
    blockedSentence(reason, trans)
  );
}

/**
 * What a click does with one kernel, whatever the button's own scope is.
 */
export function kernelActView(
  manager: IPauseManager,
  kernel: string | null,
  trans: TranslationBundle
): IActView {
  const row = manager.row(kernel);
  if (isBusy(row) || isPaused(row)) {
    return actView(manager, kernel, trans);
  }
  const why =
    availabilitySentence(manager.availability, trans) ??
    whyNotPausable(kernel, row, trans);
  return {
    act: 'pause',
    label: trans.__('Pause'),
    caption:
      why ??
      trans.__('Save the variables to disk and free the memory of the kernel'),
    icon: pauseIcon,
    enabled: why === null
  };
}

/**
 * Why a kernel that runs cannot be paused, or null.
 */
export function whyNotPausable(
  kernel: string | null,
  row: KernelRow | null,
  trans: TranslationBundle
): string | null {
  if (!kernel) {
    return trans.__('There is no kernel to pause. Start one first.');
  }
  if (!row) {
    return trans.__('The server does not know this kernel yet.');
  }
  if (!row.pausable) {
    return blockedSentence(row.reason, trans);
  }
  return row.state === 'unknown'
    ? trans.__('The state of this kernel is not known. Wait for the server.')
    : null;
}

/**
 * How far the operation of a kernel is: `Pausing: saving, 12 MiB of 300 MiB, 4 s`.
 */
export function progressSentence(
  manager: IPauseManager,
  row: KernelRow,
  trans: TranslationBundle
): string {
  const operation = manager.operationOf(row.id);
  const state = stateName(row.state, trans);
  const parts = operation
    ? progressParts(operation, trans)
    : [phaseName(row.phase, trans)].filter((part): part is string => !!part);
  return parts.length === 0
    ? state
    : trans.__('%1: %2', state, parts.join(', '));
}

/**
 * Phase, bytes and elapsed time of an operation, those that are known.
 */
export function progressParts(
  operation: Operation,
  trans: TranslationBundle
): string[] {
  const parts: string[] = [];
  if (operation.state === 'needs_decision') {
    parts.push(trans.__('waits for your decision'));
  } else {
    const phase =
      (operation.scope === 'workspace'
        ? workspacePhaseName(operation.phase, trans)
        : null) ?? phaseName(operation.phase, trans);
    if (phase) {
      parts.push(phase);
    }
  }
  const locale = localeOf(trans);
  if (operation.bytes_total) {
    parts.push(
      trans.__(
        '%1 of %2',
        formatBytes(operation.bytes_done, locale),
        formatBytes(operation.bytes_total, locale)
      )
    );
  } else if (operation.bytes_done) {
    parts.push(formatBytes(operation.bytes_done, locale));
  }
  parts.push(formatDuration(operation.elapsed, trans));
  return parts;
}

/**
 * The icon of a state.
 */
export function stateIcon(row: KernelRow | null): LabIcon {
  if (!row) {
    return kernelIcon;
  }
  if (isBusy(row)) {
    return busyIcon;
  }
  switch (row.state) {
    case 'paused':
      return pausedIcon;
    case 'failed':
      return errorIcon;
    case 'ready':
      return checkIcon;
    default:
      return kernelIcon;
  }
}
