/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Phase, Reason } from './api/records';
import { formatBytes, formatDuration, localeOf } from './format';
import { ownerSentence } from './ownerReasons';
import { stopSentence } from './stopReasons';

type Params = Record<string, unknown>;

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
    checkSentence(code, params, trans) ??
    waitingSentence(code, params, trans) ??
    clusterSentence(code, params, trans) ??
    pauseSentence(code, params, trans) ??
    backSentence(code, params, trans) ??
    doorSentence(code, params, trans) ??
    stopSentence(code, params, trans) ??
    ownerSentence(code, params, trans)
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
function checkSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'workspace_blocked': {
      const reasons = reasonsOf(params.blocked_by).map(
        reason =>
          workspaceSentence(reason.code, reason.params ?? {}, trans) ??
          reason.message
      );
      return [
        trans.__('This workspace cannot be paused now.'),
        ...reasons
      ].join(' ');
    }
    case 'missing_right':
      return trans.__(
        'The service account of this workspace may not "%1" on "%2". Ask the platform team for this right.',
        text(params.verb) ?? trans.__('do that'),
        text(params.resource) ?? trans.__('an unknown resource')
      );
    case 'addon_missing':
      return trans.__(
        'No snapshot add-on is at work here: a pause keeps files and kernel checkpoints, not the memory of the processes.'
      );
    case 'snapshots_off':
      return trans.__(
        'Snapshots are switched off for this workspace: a pause keeps files and kernel checkpoints, not the memory of the processes.'
      );
    case 'not_gvisor':
      return trans.__(
        'This pod does not run in gVisor, so no snapshot of its memory can be made. Files and kernel checkpoints are kept.'
      );
    case 'storage_not_ready':
      return trans.__(
        'The place for snapshots is not ready (%1). Ask the platform team to look at it.',
        text(params.name) ?? trans.__('unnamed')
      );
    case 'tpu':
      return trans.__(
        'Pods with a TPU are never snapshotted: files and kernel checkpoints are kept, memory is not.'
      );
    case 'mig':
      return trans.__(
        'This pod has a slice of a GPU (MIG), which snapshots do not support. Pause kernels one by one instead.'
      );
    case 'several_gpus':
      return trans.__(
        'Snapshots do not support several GPUs of this model together. Pause kernels one by one instead.'
      );
    case 'vram_unknown':
      return trans.__(
        'How much GPU memory is in use cannot be read; a snapshot needs as much free memory in the pod.'
      );
    case 'storage_unknown':
      return trans.__(
        'Whether the place for snapshots (%1) is ready may not be read.',
        text(params.name) ?? trans.__('unnamed')
      );
    case 'pod_not_readable':
      return trans.__(
        'This workspace may not read its own pod, so whether a pause makes a snapshot is not known.'
      );
    case 'not_looked_yet':
      return trans.__('The cluster has not been asked yet.');
    case 'vram_headroom':
      return headroomSentence(params, trans);
    case 'home_not_on_volume':
      return trans.__(
        'The home folder or the checkpoint folder is not on a volume: after a cold start its files are gone. Save what you need elsewhere.'
      );
    case 'environment_on_container_disk':
      return trans.__(
        "The environment of these kernels is on the container's own disk: %1. A snapshot keeps it; after a cold start it is gone unless the image has it.",
        names(params.names) ?? trans.__('unnamed')
      );
    case 'exec_processes':
      return trans.__(
        'Programs that were started with "kubectl exec" are not part of the snapshot and will be gone: %1.',
        names(params.names) ?? trans.__('unnamed')
      );
    case 'no_snapshot':
      return trans.__(
        'A pause here makes no snapshot: kernel checkpoints and files are kept, processes and terminals are not.'
      );
    case 'workspace_unsupported':
      return trans.__(
        'The owner of this pod cannot be asked to pause it. Kernels can be paused one by one.'
      );
    default:
      return null;
  }
}

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

/** Why there is no compute yet. */
function waitingSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'unschedulable':
      return detailed(
        trans.__('No machine has room for it at the moment.'),
        params,
        trans
      );
    case 'node_coming':
      return trans.__(
        'A new machine is on its way; that usually takes some minutes.'
      );
    case 'no_scale_up':
      return detailed(
        trans.__(
          'No machine has room, and none is being added. It goes on as soon as somebody else frees one; the platform team can say when.'
        ),
        params,
        trans
      );
    case 'volume_attached_elsewhere':
      return detailed(
        trans.__(
          'Its volume is still attached to another machine. It goes on once that one lets go; if it does not, the platform team can detach it.'
        ),
        params,
        trans
      );
    case 'pulling_image':
      return trans.__('The image is being fetched.');
    default:
      return null;
  }
}

/** What the API server of the cluster says, or does not. */
function clusterSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'cluster_unreachable': {
      const seconds = number(params.seconds);
      return seconds === null
        ? trans.__(
            'The cluster does not answer. What is shown is the last known state.'
          )
        : trans.__(
            'The cluster has not answered for %1. What is shown is the last known state.',
            formatDuration(seconds, trans)
          );
    }
    case 'cluster_forbidden':
      return trans.__(
        'The cluster refuses "%1" on "%2" to the service account of this workspace. Ask the platform team for this right.',
        text(params.verb) ?? trans.__('this request'),
        text(params.resource) ?? trans.__('an unknown resource')
      );
    case 'cluster_unauthorized':
      return trans.__(
        'The cluster does not accept the credentials of this workspace at the moment. They are read again.'
      );
    case 'cluster_not_found':
    case 'workspace_missing':
      return trans.__(
        'The cluster does not know this workspace any more. Somebody may have deleted it.'
      );
    case 'cluster_conflict':
      return trans.__(
        'Somebody else changed the workspace at the same time. Try again.'
      );
    case 'cluster_invalid':
      return trans.__(
        'The cluster did not accept the change. The server log says more.'
      );
    case 'cluster_expired':
      return trans.__('The cluster changed while it was read. Try again.');
    case 'cluster_disconnected':
      return trans.__(
        'Every connection to the cluster is closed while the snapshot is made.'
      );
    case 'cluster_not_here':
      return trans.__('This server does not run in a cluster.');
    case 'cluster_config_invalid':
      return trans.__(
        'The settings for the cluster cannot be used. The server log says why.'
      );
    case 'snapshot_not_found':
      return trans.__('There is no such snapshot any more.');
    case 'snapshot_in_use':
      return trans.__(
        'The next resume would use this snapshot. Resume first, or delete it all the same.'
      );
    case 'workspace_deleted':
      return trans.__('The workspace is being deleted.');
    case 'workspace_error':
      return detailed(
        trans.__('The cluster reports an error of this workspace.'),
        params,
        trans
      );
    case 'pod_not_ready':
      return trans.__(
        'The pod runs, but the cluster does not call it ready, so it cannot be reached.'
      );
    case 'pod_broken':
      return brokenSentence(params, trans);
    default:
      return null;
  }
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

/** How a pause ended without a pause. */
function pauseSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'snapshot_overdue': {
      const seconds = number(params.seconds);
      return seconds === null
        ? trans.__(
            'The snapshot took too long, so the pause was taken back. Everything goes on as before.'
          )
        : trans.__(
            'The snapshot was not ready after %1, so the pause was taken back. Everything goes on as before.',
            formatDuration(seconds, trans)
          );
    }
    case 'snapshot_failed':
      return detailed(
        trans.__(
          'The snapshot failed, so the pause was taken back. Everything goes on as before.'
        ),
        params,
        trans
      );
    case 'workspace_pausing':
      return trans.__('Somebody else is pausing this workspace already.');
    case 'release_overdue':
      return trans.__(
        'The pod was not ended in time, so the pause was taken back. Paused kernels can be resumed.'
      );
    case 'take_back_failed':
      return trans.__(
        'The snapshot did not come, and the pause could not be taken back because the cluster did not answer. The pod still runs.'
      );
    case 'intent_unwritable':
      return trans.__(
        'What was promised could not be written to the checkpoint folder, so nothing was released. Check that it can be written.'
      );
    default:
      return null;
  }
}

/** What to know after it is back. */
function backSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'restore_not_confirmed':
      return trans.__(
        'The cluster does not say that it restored the snapshot; the marks in memory prove it all the same.'
      );
    case 'clock_jumped': {
      const seconds = number(params.seconds);
      return seconds === null
        ? trans.__(
            'The clock jumped over the pause: timeouts may fire at once, tokens and leases may have expired.'
          )
        : trans.__(
            'The clock jumped by %1: timeouts may fire at once, tokens and leases may have expired.',
            formatDuration(Math.abs(seconds), trans)
          );
    }
    case 'random_state_repeats':
      return trans.__(
        'Random numbers go on where they were. Restored twice from one snapshot, they repeat: seed anew where that matters.'
      );
    case 'connections_closed': {
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
    }
    case 'cold_start':
      return trans.__(
        'The pod started cold: the same files, new processes. What was in memory did not come back.'
      );
    case 'mark_mismatch':
      return trans.__(
        'A mark in memory is not the one from before the pause: it is not the same process.'
      );
    case 'marks_unknown':
      return trans.__(
        'Some kernels could not be asked for their mark; nothing is claimed about them.'
      );
    case 'samples_differ':
      return trans.__(
        'Some values are not what they were before the pause. Do not trust the variables that are named.'
      );
    case 'tokens_renewed':
      return trans.__(
        'Token variables of the kernels were renewed: %1.',
        names(params.names) ?? trans.__('unnamed')
      );
    case 'tokens_stale':
      return trans.__(
        'Token variables are from before the pause and may have expired: %1.',
        names(params.names) ?? trans.__('unnamed')
      );
    case 'clock_behind': {
      const seconds = number(params.seconds);
      return seconds === null
        ? trans.__('The clock is behind the one of the cluster.')
        : trans.__(
            'The clock is at least %1 behind the one of the cluster.',
            formatDuration(seconds, trans)
          );
    }
    case 'gpu_changed':
      return trans.__(
        'The GPUs are not the ones from before the pause: %1 before, %2 now.',
        names(params.before) ?? trans.__('none'),
        names(params.now) ?? trans.__('none')
      );
    case 'other_snapshot':
      return trans.__(
        'The cluster says that this pod was restored from another snapshot than the one of this pause.'
      );
    case 'restore_refused':
      return trans.__(
        'The cluster says that restoring the snapshot failed (%1).',
        text(params.why) ?? trans.__('no reason given')
      );
    case 'not_restored':
      return trans.__('The cluster does not say that this pod was restored.');
    default:
      return null;
  }
}

/** What goes wrong between the browser and the owner. */
function doorSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'door_unreachable':
      return trans.__(
        'The platform does not answer this browser. Check the network; it is tried again by itself.'
      );
    case 'door_signed_out':
      return trans.__(
        'You may have been signed out of the platform. Sign in again in another tab, then come back here.'
      );
    case 'door_forbidden':
      return trans.__(
        'You may not resume this workspace in the browser. Ask its owner, or use the command.'
      );
    case 'door_not_found':
      return trans.__(
        'The platform does not know this workspace. Somebody may have deleted it.'
      );
    case 'door_refused':
    case 'door_failed':
      return detailed(
        trans.__('The platform did not take the request.'),
        params,
        trans
      );
    case 'popup_blocked':
      return trans.__(
        'The browser kept the window of JupyterHub from opening. Allow it, or use the link.'
      );
    case 'resume_not_taken':
      return trans.__(
        'Resume was asked, but the workspace is still paused. Try again.'
      );
    case 'offline':
      return trans.__('This browser is offline.');
    default:
      return null;
  }
}

/** A sentence of ours, and the owner's own words, which are shown as they are. */
function detailed(
  sentence: string,
  params: Params,
  trans: TranslationBundle
): string {
  const detail = text(params.detail);
  return detail
    ? trans.__('%1 The platform says: "%2"', sentence, detail)
    : sentence;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value ? value : null;
}

function names(value: unknown): string | null {
  return Array.isArray(value) && value.length > 0 ? value.join(', ') : null;
}

function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
