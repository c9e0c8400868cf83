/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { WorkspaceResumeReport } from '../api/workspace';
import { formatDuration } from '../format';
import type { IPauseActions, IPauseManager } from '../tokens';

/**
 * Milliseconds that a good end stays on the screen.
 */
const GOOD_END = 8_000;

/**
 * How a workspace came back, in one or two sentences; "restored" only where the report says so.
 */
export function workspaceOutcome(
  report: WorkspaceResumeReport,
  trans: TranslationBundle
): string {
  switch (report.outcome) {
    case 'restored':
      return report.paused_seconds === null
        ? trans.__('Restored: this workspace is back as it was.')
        : trans.__(
            'Restored: this workspace is back as it was, after %1.',
            formatDuration(report.paused_seconds, trans)
          );
    case 'partial':
      return report.via === 'checkpoint'
        ? trans.__(
            'Partial: the pod is new; kernel checkpoints brought variables back. What did not come back is in the panel.'
          )
        : trans.__(
            'Partial: this workspace is back, but not everything is as it was. What is not is in the panel.'
          );
    default:
      return trans.__(
        'Fresh: the same files, but new processes. What was in memory did not come back.'
      );
  }
}

/**
 * Tell the person once.
 */
export function announceResume(options: {
  report: WorkspaceResumeReport;
  quiet: boolean;
  showPanel: () => void;
  loadCheckpoints: () => void;
  trans: TranslationBundle;
}): void {
  const { report, quiet, showPanel, trans } = options;
  const text = workspaceOutcome(report, trans);
  const details: Notification.IAction = {
    label: trans.__('Details'),
    callback: () => showPanel()
  };
  if (report.outcome === 'restored') {
    if (!quiet) {
      Notification.success(text, { autoClose: GOOD_END, actions: [details] });
    }
  } else if (report.outcome === 'partial') {
    Notification.warning(text, { autoClose: false, actions: [details] });
  }
  // Fresh is said by the screen, which stays until it was read.
}

/**
 * Bring the checkpoints back into the kernels that they are of, one after the other.
 *
 * A session that this server knows as paused is resumed in place; another's checkpoint gets a kernel for its notebook.
 */
export async function loadCheckpoints(
  report: WorkspaceResumeReport,
  manager: IPauseManager,
  actions: IPauseActions
): Promise<void> {
  await manager.refresh();
  for (const kernel of report.kernels) {
    if (kernel.checkpoint === null) {
      continue;
    }
    const operation =
      manager.row(kernel.kernel)?.state === 'paused'
        ? await actions.resume(kernel.kernel)
        : await actions.resumeCheckpoint(kernel.checkpoint, kernel.path);
    if (operation) {
      await manager.settled(operation.id);
    }
  }
}
