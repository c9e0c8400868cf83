/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import {
  checkIcon,
  errorIcon,
  kernelIcon,
  offlineBoltIcon
} from '@jupyterlab/ui-components';

import type { Phase, Reason, State } from './api/records';
import { formatDuration } from './format';
import { busyIcon, pausedIcon } from './icons';
import { phaseName, stateName } from './messages';
import type { PausedScreenModel } from './pausedscreen/model';
import { sinceOf } from './pausedscreen/view';
import { reasonText } from './pausedscreen/words';
import type { IPauseManager } from './tokens';
import { workspaceOperation } from './view';
import { workspacePhaseName } from './sentences/workspace';

/**
 * What the badge shows.
 */
export interface IBadgeView {
  readonly icon: LabIcon;
  readonly busy: boolean;
  readonly state: State;
  readonly text: string;
  readonly title: string;
  readonly announce: string;
}

/**
 * What the badge shows of the whole workspace, or null while there is nothing to say beyond its kernels.
 *
 * The server's word counts while it answers; the paused screen's, which asks the owner, while it does not.
 */
export function workspaceBadge(
  manager: IPauseManager,
  away: PausedScreenModel | null,
  trans: TranslationBundle
): IBadgeView | null {
  const seen =
    manager.availability === 'ready'
      ? fromServer(manager)
      : fromAway(away, Date.now());
  if (!seen) {
    return null;
  }
  const word =
    seen.state === 'waiting'
      ? trans.__('Waiting for capacity')
      : stateName(seen.state, trans);
  const phase =
    workspacePhaseName(seen.phase, trans) ?? phaseName(seen.phase, trans);
  const text = phase ? trans.__('%1: %2', word, phase) : word;
  const parts = [text];
  if (seen.seconds !== null) {
    const age = formatDuration(seen.seconds, trans);
    parts.push(
      seen.state === 'unknown' ? trans.__('last known %1 ago', age) : age
    );
  }
  const reason = reasonText(seen.reason, trans);
  const title = trans.__('This workspace: %1', parts.join(', '));
  return {
    icon: iconOf(seen.state),
    busy: iconOf(seen.state) === busyIcon,
    state: seen.state,
    text:
      (seen.state === 'waiting' || seen.state === 'unknown') &&
      seen.seconds !== null
        ? parts.join(', ')
        : text,
    title: reason ? `${title}. ${reason}` : title,
    // Steps and seconds would be chatter; the states are news.
    announce: trans.__('This workspace: %1', word)
  };
}

interface ISeen {
  readonly state: State;
  readonly phase: Phase | null;
  readonly reason: Reason | null;

  /** How long it has been so; for `unknown` how old the last word is; null when that is not known. */
  readonly seconds: number | null;
}

function fromServer(manager: IPauseManager): ISeen | null {
  const workspace = manager.state?.workspace;
  const operation = workspaceOperation(manager);
  if (!workspace) {
    return null;
  }
  const state =
    operation?.kind === 'pause'
      ? 'pausing'
      : operation?.kind === 'resume'
        ? 'resuming'
        : workspace.state;
  if (state === 'running') {
    return null;
  }
  const since = state === 'unknown' ? workspace.observed_at : workspace.since;
  return {
    state,
    phase: operation?.phase ?? workspace.phase,
    reason: workspace.waiting ?? workspace.reason,
    seconds: since === null ? null : age(Date.parse(since), Date.now())
  };
}

function fromAway(away: PausedScreenModel | null, now: number): ISeen | null {
  const state = away?.workspaceState ?? null;
  if (!away || !state) {
    return null;
  }
  const since = state === 'unknown' ? away.heardAt : sinceOf(away);
  return {
    state,
    phase: away.phase ?? phaseOf(away),
    reason: away.reason,
    seconds: since === null ? null : age(since, now)
  };
}

function phaseOf(away: PausedScreenModel): Phase | null {
  switch (away.state) {
    case 'starting':
    case 'restoring':
    case 'proving':
      return away.state;
    default:
      return null;
  }
}

function age(since: number, now: number): number {
  return Math.floor(Math.max(0, now - since) / 1000);
}

function iconOf(state: State): LabIcon {
  switch (state) {
    case 'pausing':
    case 'resuming':
    case 'waiting':
      return busyIcon;
    case 'paused':
      return pausedIcon;
    case 'failed':
      return errorIcon;
    case 'ready':
      return checkIcon;
    case 'unknown':
      return offlineBoltIcon;
    default:
      return kernelIcon;
  }
}
