/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ServerState } from '../api/records';
import type { WorkspaceResumeReport, WorkspaceRow } from '../api/workspace';
import { row, state } from './helpers';

const TIME = '2026-11-30T10:00:00.000Z';

/** A workspace that runs. */
export function workspace(changes: Partial<WorkspaceRow> = {}): WorkspaceRow {
  return {
    namespace: 'ann',
    name: 'work',
    state: 'running',
    phase: null,
    since: TIME,
    observed_at: TIME,
    stateful: true,
    pod: 'ws-work-0',
    snapshot: null,
    waiting: null,
    reason: null,
    warnings: [],
    operation: null,
    outcome: null,
    last_resume: null,
    timeline: {},
    door: {
      kind: 'kubeflow',
      api: '/workspaces/api/v1/workspaces/ann/work',
      page: '/workspaces/ann/work',
      command: 'jupyter pause resume --namespace ann work'
    },
    ...changes
  };
}

/** How it came back. */
export function report(
  changes: Partial<WorkspaceResumeReport> = {}
): WorkspaceResumeReport {
  return {
    at: '2026-11-30T11:00:00.000Z',
    outcome: 'restored',
    via: 'snapshot',
    snapshot: 'snap-1',
    server_mark: true,
    confirmed: true,
    kernels: [],
    paused_seconds: 3600,
    clock_drift_seconds: 0,
    renewed: [],
    warnings: [],
    ...changes
  };
}

/** The server's answer with a workspace. */
export function answer(changes: Partial<WorkspaceRow> = {}): ServerState {
  return {
    ...state(1, [row()]),
    mode: 'cluster',
    scope: 'workspace',
    owner: 'kubeflow',
    workspace: workspace(changes)
  };
}
