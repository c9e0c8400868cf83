/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Phase, Reason } from '../api/records';
import { formatBytes, formatDuration, localeOf } from '../format';
import { ownerSentence } from './owners';
import type { Params, Sentence, Sentences } from './table';
import { detailed, names, number, sentenceIn, text } from './table';

/**
 * A sentence for a code that is about the whole workspace (the pod), or null for a code that is not.
 *
 * The one table of these codes in the browser; `errors.py` and `owners/` are where the server's come from, `owners/` here
 * where the door's do.
 */
export function workspaceSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  return (
    sentenceIn(
      [CHECKS, WAITING, CLUSTER, PAUSES, BACK, DOORS],
      code,
      params,
      trans
    ) ?? ownerSentence(code, params, trans)
  );
}

/**
 * What is being done with the whole workspace in a phase; null where it is called as with a kernel.
 */
export function workspacePhaseName(
  phase: Phase | null,
  trans: TranslationBundle
): string | null {
  switch (phase) {
    case 'draining':
      return trans.__('closing connections');
    case 'releasing':
      return trans.__('releasing the pod');
    case 'starting':
      return trans.__('starting the pod');
    default:
      return null;
  }
}

/**
 * The reasons in a list of anything, e.g. `params.blocked_by` of an error.
 */
export function reasonsOf(value: unknown): Reason[] {
  return Array.isArray(value)
    ? value.filter(
        (item): item is Reason =>
          typeof item === 'object' &&
          item !== null &&
          typeof (item as { code?: unknown }).code === 'string'
      )
    : [];
}

/** What is looked at before the click. */
const CHECKS: Sentences = {
  workspace_blocked: (trans, params) => {
    const reasons = reasonsOf(params.blocked_by).map(
      reason =>
        workspaceSentence(reason.code, reason.params ?? {}, trans) ??
        reason.message
    );
    return [trans.__('This workspace cannot be paused now.'), ...reasons].join(
      ' '
    );
  },
  missing_right: (trans, params) =>
    trans.__(
      'The service account of this workspace may not "%1" on "%2". Ask the platform team for this right.',
      text(params.verb) ?? trans.__('do that'),
      text(params.resource) ?? trans.__('an unknown resource')
    ),
  addon_missing: trans =>
    trans.__(
      'No snapshot add-on is at work here: a pause keeps files and kernel checkpoints, not the memory of the processes.'
    ),
  snapshots_off: trans =>
    trans.__(
      'Snapshots are switched off for this workspace: a pause keeps files and kernel checkpoints, not the memory of the processes.'
    ),
  not_gvisor: trans =>
    trans.__(
      'This pod does not run in gVisor, so no snapshot of its memory can be made. Files and kernel checkpoints are kept.'
    ),
  storage_not_ready: (trans, params) =>
    trans.__(
      'The place for snapshots is not ready (%1). Ask the platform team to look at it.',
      text(params.name) ?? trans.__('unnamed')
    ),
  tpu: trans =>
    trans.__(
      'Pods with a TPU are never snapshotted: files and kernel checkpoints are kept, memory is not.'
    ),
  mig: trans =>
    trans.__(
      'This pod has a slice of a GPU (MIG), which snapshots do not support. Pause kernels one by one instead.'
    ),
  several_gpus: trans =>
    trans.__(
      'Snapshots do not support several GPUs of this model together. Pause kernels one by one instead.'
    ),
  vram_unknown: trans =>
    trans.__(
      'How much GPU memory is in use cannot be read; a snapshot needs as much free memory in the pod.'
    ),
  storage_unknown: (trans, params) =>
    trans.__(
      'Whether the place for snapshots (%1) is ready may not be read.',
      text(params.name) ?? trans.__('unnamed')
    ),
  pod_not_readable: trans =>
    trans.__(
      'This workspace may not read its own pod, so whether a pause makes a snapshot is not known.'
    ),
  not_looked_yet: trans => trans.__('The cluster has not been asked yet.'),
  vram_headroom: (trans, params) => headroomSentence(params, trans),
  home_not_on_volume: trans =>
    trans.__(
      'The home folder or the checkpoint folder is not on a volume: after a cold start its files are gone. Save what you need elsewhere.'
    ),
  environment_on_container_disk: (trans, params) =>
    trans.__(
      "The environment of these kernels is on the container's own disk: %1. A snapshot keeps it; after a cold start it is gone unless the image has it.",
      names(params.names) ?? trans.__('unnamed')
    ),
  exec_processes: (trans, params) =>
    trans.__(
      'Programs that were started with "kubectl exec" are not part of the snapshot and will be gone: %1.',
      names(params.names) ?? trans.__('unnamed')
    ),
  no_snapshot: trans =>
    trans.__(
      'A pause here makes no snapshot: kernel checkpoints and files are kept, processes and terminals are not.'
    ),
  workspace_unsupported: trans =>
    trans.__(
      'The owner of this pod cannot be asked to pause it. Kernels can be paused one by one.'
    )
};

/** Why there is no compute yet. */
const WAITING: Sentences = {
  unschedulable: (trans, params) =>
    detailed(
      trans.__('No machine has room for it at the moment.'),
      params,
      trans
    ),
  node_coming: trans =>
    trans.__('A new machine is on its way; that usually takes some minutes.'),
  no_scale_up: (trans, params) =>
    detailed(
      trans.__(
        'No machine has room, and none is being added. It goes on as soon as somebody else frees one; the platform team can say when.'
      ),
      params,
      trans
    ),
  volume_attached_elsewhere: (trans, params) =>
    detailed(
      trans.__(
        'Its volume is still attached to another machine. It goes on once that one lets go; if it does not, the platform team can detach it.'
      ),
      params,
      trans
    ),
  pulling_image: trans => trans.__('The image is being fetched.')
};

const clusterNotFound: Sentence = trans =>
  trans.__(
    'The cluster does not know this workspace any more. Somebody may have deleted it.'
  );

/** What the API server of the cluster says, or does not. */
const CLUSTER: Sentences = {
  cluster_unreachable: (trans, params) => {
    const seconds = number(params.seconds);
    return seconds === null
      ? trans.__(
          'The cluster does not answer. What is shown is the last known state.'
        )
      : trans.__(
          'The cluster has not answered for %1. What is shown is the last known state.',
          formatDuration(seconds, trans)
        );
  },
  cluster_forbidden: (trans, params) =>
    trans.__(
      'The cluster refuses "%1" on "%2" to the service account of this workspace. Ask the platform team for this right.',
      text(params.verb) ?? trans.__('this request'),
      text(params.resource) ?? trans.__('an unknown resource')
    ),
  cluster_unauthorized: trans =>
    trans.__(
      'The cluster does not accept the credentials of this workspace at the moment. They are read again.'
    ),
  cluster_not_found: clusterNotFound,
  workspace_missing: clusterNotFound,
  cluster_conflict: trans =>
    trans.__(
      'Somebody else changed the workspace at the same time. Try again.'
    ),
  cluster_invalid: trans =>
    trans.__(
      'The cluster did not accept the change. The server log says more.'
    ),
  cluster_expired: trans =>
    trans.__('The cluster changed while it was read. Try again.'),
  cluster_disconnected: trans =>
    trans.__(
      'Every connection to the cluster is closed while the snapshot is made.'
    ),
  cluster_not_here: trans => trans.__('This server does not run in a cluster.'),
  cluster_config_invalid: trans =>
    trans.__(
      'The settings for the cluster cannot be used. The server log says why.'
    ),
  snapshot_not_found: trans => trans.__('There is no such snapshot any more.'),
  snapshot_in_use: trans =>
    trans.__(
      'The next resume would use this snapshot. Resume first, or delete it all the same.'
    ),
  workspace_deleted: trans => trans.__('The workspace is being deleted.'),
  workspace_error: (trans, params) =>
    detailed(
      trans.__('The cluster reports an error of this workspace.'),
      params,
      trans
    ),
  pod_not_ready: trans =>
    trans.__(
      'The pod runs, but the cluster does not call it ready, so it cannot be reached.'
    ),
  pod_broken: (trans, params) => brokenSentence(params, trans)
};

/** How a pause ended without one. */
const PAUSES: Sentences = {
  snapshot_overdue: (trans, params) => {
    const seconds = number(params.seconds);
    return seconds === null
      ? trans.__(
          'The snapshot took too long, so the pause was taken back. Everything goes on as before.'
        )
      : trans.__(
          'The snapshot was not ready after %1, so the pause was taken back. Everything goes on as before.',
          formatDuration(seconds, trans)
        );
  },
  snapshot_failed: (trans, params) =>
    detailed(
      trans.__(
        'The snapshot failed, so the pause was taken back. Everything goes on as before.'
      ),
      params,
      trans
    ),
  workspace_pausing: trans =>
    trans.__('Somebody else is pausing this workspace already.'),
  release_overdue: trans =>
    trans.__(
      'The pod was not ended in time, so the pause was taken back. Paused kernels can be resumed.'
    ),
  take_back_failed: trans =>
    trans.__(
      'The snapshot did not come, and the pause could not be taken back because the cluster did not answer. The pod still runs.'
    ),
  intent_unwritable: trans =>
    trans.__(
      'What was promised could not be written to the checkpoint folder, so nothing was released. Check that it can be written.'
    )
};

/** What to know after it is back. */
const BACK: Sentences = {
  restore_not_confirmed: trans =>
    trans.__(
      'The cluster does not say that it restored the snapshot; the marks in memory prove it all the same.'
    ),
  clock_jumped: (trans, params) => {
    const seconds = number(params.seconds);
    return seconds === null
      ? trans.__(
          'The clock jumped over the pause: timeouts may fire at once, tokens and leases may have expired.'
        )
      : trans.__(
          'The clock jumped by %1: timeouts may fire at once, tokens and leases may have expired.',
          formatDuration(Math.abs(seconds), trans)
        );
  },
  random_state_repeats: trans =>
    trans.__(
      'Random numbers go on where they were. Restored twice from one snapshot, they repeat: seed anew where that matters.'
    ),
  connections_closed: (trans, params) => {
    const count = number(params.count);
    return count === null
      ? trans.__(
          'Connections to other machines were closed. Open them again before they are used.'
        )
      : trans._n(
          '%1 connection to another machine was closed. Open it again before it is used.',
          '%1 connections to other machines were closed. Open them again before they are used.',
          count
        );
  },
  cold_start: trans =>
    trans.__(
      'The pod started cold: the same files, new processes. What was in memory did not come back.'
    ),
  mark_mismatch: trans =>
    trans.__(
      'A mark in memory is not the one from before the pause: it is not the same process.'
    ),
  marks_unknown: trans =>
    trans.__(
      'Some kernels could not be asked for their mark; nothing is claimed about them.'
    ),
  samples_differ: trans =>
    trans.__(
      'Some values are not what they were before the pause. Do not trust the variables that are named.'
    ),
  tokens_renewed: (trans, params) =>
    trans.__(
      'Token variables of the kernels were renewed: %1.',
      names(params.names) ?? trans.__('unnamed')
    ),
  tokens_stale: (trans, params) =>
    trans.__(
      'Token variables are from before the pause and may have expired: %1.',
      names(params.names) ?? trans.__('unnamed')
    ),
  clock_behind: (trans, params) => {
    const seconds = number(params.seconds);
    return seconds === null
      ? trans.__('The clock is behind the one of the cluster.')
      : trans.__(
          'The clock is at least %1 behind the one of the cluster.',
          formatDuration(seconds, trans)
        );
  },
  gpu_changed: (trans, params) =>
    trans.__(
      'The GPUs are not the ones from before the pause: %1 before, %2 now.',
      names(params.before) ?? trans.__('none'),
      names(params.now) ?? trans.__('none')
    ),
  other_snapshot: trans =>
    trans.__(
      'The cluster says that this pod was restored from another snapshot than the one of this pause.'
    ),
  restore_refused: (trans, params) =>
    trans.__(
      'The cluster says that restoring the snapshot failed (%1).',
      text(params.why) ?? trans.__('no reason given')
    ),
  not_restored: trans =>
    trans.__('The cluster does not say that this pod was restored.')
};

const doorRefused: Sentence = (trans, params) =>
  detailed(trans.__('The platform did not take the request.'), params, trans);

/** What goes wrong between the browser and the owner. */
const DOORS: Sentences = {
  door_unreachable: trans =>
    trans.__(
      'The platform does not answer this browser. Check the network; it is tried again by itself.'
    ),
  door_signed_out: trans =>
    trans.__(
      'You may have been signed out of the platform. Sign in again in another tab, then come back here.'
    ),
  door_forbidden: trans =>
    trans.__(
      'You may not resume this workspace in the browser. Ask its owner, or use the command.'
    ),
  door_not_found: trans =>
    trans.__(
      'The platform does not know this workspace. Somebody may have deleted it.'
    ),
  door_refused: doorRefused,
  door_failed: doorRefused,
  popup_blocked: trans =>
    trans.__(
      'The browser kept the window of JupyterHub from opening. Allow it, or use the link.'
    ),
  resume_not_taken: trans =>
    trans.__('Resume was asked, but the workspace is still paused. Try again.'),
  sizes_unknown: (trans, params) =>
    detailed(
      trans.__(
        'The platform does not tell this browser which other machines there are.'
      ),
      params,
      trans
    ),
  no_other_size: trans =>
    trans.__('The platform offers no other machine for this workspace.'),
  size_forbidden: trans =>
    trans.__(
      'The platform does not let you change this workspace in the browser. Ask its owner, or use the command.'
    ),
  cold_runs: trans =>
    trans.__(
      'A pod of this workspace had begun to run, so nothing was changed. If it was paused by that, its memory is in a snapshot.'
    ),
  cold_crashes: trans =>
    trans.__(
      'Its pod starts and ends again and again, so the platform would hold every pause back for a snapshot of it. Only the command gets past that.'
    ),
  cold_overdue: trans =>
    trans.__(
      'The workspace was not called paused in time, so its machine was not changed.'
    ),
  cold_cancelled: trans =>
    trans.__('The machine was not changed. The workspace stays paused.'),
  offline: trans => trans.__('This browser is offline.')
};

function headroomSentence(params: Params, trans: TranslationBundle): string {
  const locale = localeOf(trans);
  const needed = number(params.needed);
  const free = number(params.free);
  return needed !== null && free !== null
    ? trans.__(
        'The memory of the GPU is copied through the memory of the pod: %1 are needed, %2 are free. Without room the pod is killed while it is paused. Free some first.',
        formatBytes(needed, locale),
        formatBytes(free, locale)
      )
    : trans.__(
        'The memory of the GPU is copied through the memory of the pod, and there may not be enough room for it. Free some first.'
      );
}

/** Why a pod does not start, and waiting does not cure it. */
function brokenSentence(params: Params, trans: TranslationBundle): string {
  const why = text(params.why) ?? '';
  const kept = trans.__('What was kept is not touched.');
  if (why === 'CrashLoopBackOff') {
    return trans.__(
      'The pod starts and ends again and again; its log says why. %1',
      kept
    );
  }
  if (/Image/.test(why)) {
    return trans.__(
      'The image of the workspace cannot be fetched; the platform team can look into it. %1',
      kept
    );
  }
  return detailed(
    trans.__('The pod does not start (%1). %2', why || '?', kept),
    params,
    trans
  );
}
