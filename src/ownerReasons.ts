/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

type Params = Record<string, unknown>;

/**
 * A sentence for a doubt about who owns this pod or what a pause of it keeps (`owners/detection.py`,
 * `cluster/podsnapshots.py`), or null for another code.
 */
export function ownerSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  return (
    whereSentence(code, params, trans) ??
    whoSentence(code, params, trans) ??
    snapshotSentence(code, params, trans)
  );
}

/** A parameter as text; a question mark where it was not given. */
function given(params: Params, name: string): string {
  const value = params[name];
  return typeof value === 'string' || typeof value === 'number'
    ? String(value)
    : '?';
}

/** The kind of an owner, as a person knows it. */
function kindName(params: Params, name: string): string {
  const names: Record<string, string> = {
    kubeflow: 'Kubeflow Workspace',
    notebook_v1: 'Kubeflow Notebook',
    jupyterhub: 'JupyterHub',
    sandbox: 'Sandbox',
    statefulset: 'StatefulSet'
  };
  const kind = given(params, name);
  return names[kind] ?? kind;
}

function sourceName(params: Params, trans: TranslationBundle): string {
  return params.by === 'label'
    ? trans.__('a label of the pod')
    : trans.__('the environment');
}

/** Whether there is a cluster here, and what it lets us read. */
function whereSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'owner_unknown':
      return trans.__(
        'This server runs in a cluster, but who owns it is not known. Kernels are paused one by one, not the whole pod.'
      );
    case 'cluster_address_missing':
      return trans.__(
        'There is a service account token but no address of an API server, so this counts as a single machine.'
      );
    case 'cluster_token_missing':
      return trans.__(
        'There is the address of an API server but no service account token, so this counts as a single machine.'
      );
    case 'pod_unreadable':
      return trans.__(
        'The pod could not be read, so its owner is taken from the environment. It may be the right to "%1" on "%2" that is missing.',
        given(params, 'verb'),
        given(params, 'resource')
      );
    case 'pod_not_found':
      return trans.__(
        'The cluster has no pod "%1" here, so its owner is taken from the environment.',
        given(params, 'pod')
      );
    case 'owner_unreadable':
      return trans.__(
        'Who owns "%1" could not be read, so the labels of the pod are believed.',
        given(params, 'name')
      );
    default:
      return null;
  }
}

/** Who owns the pod. */
function whoSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'owner_unconfirmed':
      return trans.__(
        'That a %1 owns this pod is only said by %2; no owner reference confirms it.',
        kindName(params, 'kind'),
        sourceName(params, trans)
      );
    case 'owner_contradicted':
      return trans.__(
        'Of %1 as the owner speaks %2, but the owner references do not. It is not believed.',
        kindName(params, 'kind'),
        sourceName(params, trans)
      );
    case 'owner_missing':
      return trans.__(
        'The cluster has no %1 named "%2", although it is named by %3.',
        kindName(params, 'kind'),
        given(params, 'name'),
        sourceName(params, trans)
      );
    case 'owner_unsupported':
      return trans.__(
        'A %1 controls this pod, and that cannot be paused as a whole.',
        kindName(params, 'owner')
      );
    case 'owner_none':
      return trans.__(
        'Nothing controls this pod, so nobody would bring it back after a pause.'
      );
    case 'owner_not_found':
      return trans.__(
        'The settings say that a %1 owns this pod, but nothing here confirms it.',
        kindName(params, 'wanted')
      );
    default:
      return null;
  }
}

/** Whether a pause makes a snapshot, and how a snapshot is. */
function snapshotSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  switch (code) {
    case 'snapshot_unknown':
      return trans.__(
        'Whether a pause makes a snapshot is not known, since the pod could not be read.'
      );
    case 'snapshot_addon_absent':
      return trans.__(
        'The snapshot add-on did not prepare this pod, so a pause does not keep the memory.'
      );
    case 'snapshot_addon_late':
      return trans.__(
        'Snapshots are on for this workspace, but its pod was started without them. From its next start on it has them.'
      );
    case 'snapshot_no_gvisor':
      return trans.__(
        'The pod does not run in gVisor, so no snapshot of it can be made.'
      );
    case 'snapshot_tpu':
      return trans.__(
        'The pod has a TPU, and such pods are never snapshotted. A pause does not keep the memory.'
      );
    case 'snapshot_not_ready':
      return trans.__(
        'This snapshot cannot be used (%1).',
        given(params, 'reason')
      );
    case 'stuck_deleting':
      return trans.__(
        'It has been in deletion for %1 minutes. It needs its policy "%2" for that; ask the platform team.',
        given(params, 'minutes'),
        given(params, 'policy')
      );
    default:
      return null;
  }
}
