/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { KernelProof, WorkspaceResumeReport } from '../api/workspace';
import { formatDuration, formatTime, localeOf } from '../format';
import { blockedSentence, phaseName, stateName } from '../messages';
import { pathName } from '../names';
import type { PausedScreenModel } from '../pausedscreen/model';
import { workspaceOutcome } from '../pausedscreen/report';
import type { IPauseActions, IPauseManager } from '../tokens';
import {
  blockedSentences,
  isWorkspaceScope,
  warningSentences,
  workspaceActView
} from '../view';
import { workspacePhaseName } from '../sentences/workspace';
import { Section } from './section';

/**
 * The whole workspace: its state, what a pause keeps, what stands in the way, and how it last came back.
 */
export function WorkspaceSections(props: {
  manager: IPauseManager;
  actions: IPauseActions;
  away: PausedScreenModel | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { manager, trans } = props;
  const workspace = manager.state?.workspace;
  if (!workspace) {
    return null;
  }
  return (
    <>
      <Section key="workspace" title={trans.__('This workspace')}>
        <WorkspaceFacts {...props} />
      </Section>
      {workspace.last_resume && (
        <Section
          key="workspace-resumed"
          title={trans.__('How this workspace came back')}
          open={workspace.state === 'ready'}
        >
          <WorkspaceProof report={workspace.last_resume} trans={trans} />
        </Section>
      )}
    </>
  );
}

function WorkspaceFacts(props: {
  manager: IPauseManager;
  actions: IPauseActions;
  away: PausedScreenModel | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { manager, actions, away, trans } = props;
  const workspace = manager.state?.workspace;
  if (!workspace) {
    return null;
  }
  const view = workspaceActView(manager, trans);
  // While the server is gone, the owner's word is newer than the server's last.
  const owner =
    manager.availability === 'ready' ? null : (away?.workspaceState ?? null);
  const step = owner ? (away?.phase ?? null) : workspace.phase;
  const phase = workspacePhaseName(step, trans) ?? phaseName(step, trans);
  const state = stateName(owner ?? workspace.state, trans);
  return (
    <>
      <dl className="jp-Pause-facts">
        <dt>{trans.__('Name')}</dt>
        <dd>
          {workspace.namespace
            ? trans.__('%1 in %2', workspace.name, workspace.namespace)
            : workspace.name}
        </dd>
        <dt>{trans.__('State')}</dt>
        <dd>{phase ? trans.__('%1: %2', state, phase) : state}</dd>
        <dt>{trans.__('A pause keeps')}</dt>
        <dd>{keepsSentence(workspace.stateful, trans)}</dd>
        <dt>{trans.__('Seen')}</dt>
        <dd>{seenSentence(workspace.observed_at, trans)}</dd>
        {workspace.snapshot && (
          <>
            <dt>{trans.__('Snapshot')}</dt>
            <dd>{workspace.snapshot}</dd>
          </>
        )}
      </dl>
      {workspace.waiting && (
        <p className="jp-Pause-warning">
          {blockedSentence(workspace.waiting, trans)}
        </p>
      )}
      {workspace.reason && (
        <p className="jp-Pause-warning">
          {blockedSentence(workspace.reason, trans)}
        </p>
      )}
      {/* What stood in the way of a pause is no news while the server is away. */}
      {isWorkspaceScope(manager) && manager.availability === 'ready' && (
        <>
          <Sentences sentences={blockedSentences(manager, trans)} />
          <Sentences sentences={warningSentences(manager, trans)} />
          <div className="jp-Pause-acts">
            {view.act === 'pause-workspace' && (
              <button
                type="button"
                className="jp-Pause-button jp-mod-styled"
                disabled={!view.enabled}
                title={view.caption}
                onClick={() => void actions.pauseWorkspace()}
              >
                {view.label}
              </button>
            )}
            {view.act === 'busy' && <span>{view.caption}</span>}
          </div>
        </>
      )}
    </>
  );
}

function Sentences(props: {
  sentences: readonly string[];
}): JSX.Element | null {
  return (
    <>
      {props.sentences.map(sentence => (
        <p key={sentence} className="jp-Pause-warning">
          {sentence}
        </p>
      ))}
    </>
  );
}

function keepsSentence(
  stateful: boolean | null,
  trans: TranslationBundle
): string {
  switch (stateful) {
    case true:
      return trans.__('memory of all processes (snapshot), files on volumes');
    case false:
      return trans.__('kernel checkpoints, files on volumes');
    default:
      return trans.__('unknown; files on volumes in any case');
  }
}

function seenSentence(
  observed: string | null,
  trans: TranslationBundle
): string {
  return observed === null
    ? trans.__('never')
    : trans.__(
        '%1 ago',
        formatDuration(
          Math.floor(Math.max(0, Date.now() - Date.parse(observed)) / 1000),
          trans
        )
      );
}

/**
 * The proof of a resume: what was compared, what the cluster says, what to look out for.
 */
export function WorkspaceProof(props: {
  report: WorkspaceResumeReport;
  trans: TranslationBundle;
}): JSX.Element {
  const { report, trans } = props;
  const unknown = trans.__('unknown');
  const duration = (value: number | null) =>
    value === null ? unknown : formatDuration(value, trans);
  return (
    <>
      <p
        className="jp-Pause-outcome"
        data-outcome={report.outcome}
        role="status"
      >
        {workspaceOutcome(report, trans)}
      </p>
      <dl className="jp-Pause-facts">
        <dt>{trans.__('When')}</dt>
        <dd>{formatTime(report.at, localeOf(trans))}</dd>
        <dt>{trans.__('Paused for')}</dt>
        <dd>{duration(report.paused_seconds)}</dd>
        <dt>{trans.__('By way of')}</dt>
        <dd>{viaName(report, trans)}</dd>
        <dt>{trans.__('Mark of the server')}</dt>
        <dd>
          {report.server_mark ? trans.__('the same') : trans.__('not the same')}
        </dd>
        <dt>{trans.__('The cluster says')}</dt>
        <dd>{confirmedSentence(report, trans)}</dd>
        {report.clock_drift_seconds !== null && (
          <>
            <dt>{trans.__('Clock is off by')}</dt>
            <dd>{duration(Math.abs(report.clock_drift_seconds))}</dd>
          </>
        )}
        {report.renewed.length > 0 && (
          <>
            <dt>{trans.__('Renewed')}</dt>
            <dd>{report.renewed.join(', ')}</dd>
          </>
        )}
      </dl>
      {report.kernels.length > 0 && (
        <KernelProofs kernels={report.kernels} trans={trans} />
      )}
      <Sentences
        sentences={report.warnings.map(reason =>
          blockedSentence(reason, trans)
        )}
      />
    </>
  );
}

function viaName(
  report: WorkspaceResumeReport,
  trans: TranslationBundle
): string {
  switch (report.via) {
    case 'snapshot':
      return report.snapshot
        ? trans.__('snapshot %1', report.snapshot)
        : trans.__('snapshot');
    case 'checkpoint':
      return trans.__('checkpoint');
    default:
      return trans.__('nothing');
  }
}

function confirmedSentence(
  report: WorkspaceResumeReport,
  trans: TranslationBundle
): string {
  switch (report.confirmed) {
    case true:
      return trans.__('restored from that snapshot');
    case false:
      return trans.__('started without a snapshot');
    default:
      return trans.__('nothing about it');
  }
}

function KernelProofs(props: {
  kernels: readonly KernelProof[];
  trans: TranslationBundle;
}): JSX.Element {
  const { kernels, trans } = props;
  return (
    <table className="jp-Pause-table">
      <caption>{trans.__('Kernels')}</caption>
      <thead>
        <tr>
          <th scope="col">{trans.__('Notebook')}</th>
          <th scope="col">{trans.__('Mark in memory')}</th>
          <th scope="col">{trans.__('Compared')}</th>
        </tr>
      </thead>
      <tbody>
        {kernels.map(kernel => (
          <tr key={kernel.kernel}>
            <th scope="row">
              {kernel.path ? pathName(kernel.path, trans) : kernel.kernel}
            </th>
            <td>{markName(kernel.mark, trans)}</td>
            <td>{comparedSentence(kernel, trans)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function comparedSentence(
  kernel: KernelProof,
  trans: TranslationBundle
): string {
  if (kernel.mismatched.length > 0) {
    return trans.__('not the same: %1', kernel.mismatched.join(', '));
  }
  return kernel.compared === 0
    ? trans.__('nothing')
    : trans._n('%1 value, the same', '%1 values, the same', kernel.compared);
}

function markName(mark: boolean | null, trans: TranslationBundle): string {
  switch (mark) {
    case true:
      return trans.__('the same');
    case false:
      return trans.__('not the same');
    default:
      return trans.__('could not be asked');
  }
}
