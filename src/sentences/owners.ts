/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Params, Sentences } from './table';
import { given, sentenceIn } from './table';

/**
 * A sentence for a doubt about who owns this pod or what a pause of it keeps (`owners/detection.py`,
 * `cluster/podsnapshots.py`), or for what an owner without snapshots says; null for another code.
 */
export function ownerSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  return sentenceIn([WHERE, WHO, SNAPSHOTS, STOPS], code, params, trans);
}

/** Whether there is a cluster here, and what it lets us read. */
const WHERE: Sentences = {
  owner_unknown: trans =>
    trans.__(
      'This server runs in a cluster, but who owns it is not known. Kernels are paused one by one, not the whole pod.'
    ),
  cluster_address_missing: trans =>
    trans.__(
      'There is a service account token but no address of an API server, so this counts as a single machine.'
    ),
  cluster_token_missing: trans =>
    trans.__(
      'There is the address of an API server but no service account token, so this counts as a single machine.'
    ),
  pod_unreadable: (trans, params) =>
    trans.__(
      'The pod could not be read, so its owner is taken from the environment. It may be the right to "%1" on "%2" that is missing.',
      given(params, 'verb'),
      given(params, 'resource')
    ),
  pod_not_found: (trans, params) =>
    trans.__(
      'The cluster has no pod "%1" here, so its owner is taken from the environment.',
      given(params, 'pod')
    ),
  owner_unreadable: (trans, params) =>
    trans.__(
      'Who owns "%1" could not be read, so the labels of the pod are believed.',
      given(params, 'name')
    )
};

/** Who owns the pod. */
const WHO: Sentences = {
  owner_unconfirmed: (trans, params) =>
    trans.__(
      'That a %1 owns this pod is only said by %2; no owner reference confirms it.',
      kindName(params, 'kind'),
      sourceName(params, trans)
    ),
  owner_contradicted: (trans, params) =>
    trans.__(
      'Of %1 as the owner speaks %2, but the owner references do not. It is not believed.',
      kindName(params, 'kind'),
      sourceName(params, trans)
    ),
  owner_missing: (trans, params) =>
    trans.__(
      'The cluster has no %1 named "%2", although it is named by %3.',
      kindName(params, 'kind'),
      given(params, 'name'),
      sourceName(params, trans)
    ),
  owner_unsupported: (trans, params) =>
    trans.__(
      'A %1 controls this pod, and that cannot be paused as a whole.',
      kindName(params, 'owner')
    ),
  owner_none: trans =>
    trans.__(
      'Nothing controls this pod, so nobody would bring it back after a pause.'
    ),
  owner_not_found: (trans, params) =>
    trans.__(
      'The settings say that a %1 owns this pod, but nothing here confirms it.',
      kindName(params, 'wanted')
    )
};

/** Whether a pause makes a snapshot, and how a snapshot is. */
const SNAPSHOTS: Sentences = {
  snapshot_unknown: trans =>
    trans.__(
      'Whether a pause makes a snapshot is not known, since the pod could not be read.'
    ),
  snapshot_addon_absent: trans =>
    trans.__(
      'The snapshot add-on did not prepare this pod, so a pause does not keep the memory.'
    ),
  snapshot_addon_late: trans =>
    trans.__(
      'Snapshots are on for this workspace, but its pod was started without them. From its next start on it has them.'
    ),
  snapshot_no_gvisor: trans =>
    trans.__(
      'The pod does not run in gVisor, so no snapshot of it can be made.'
    ),
  snapshot_tpu: trans =>
    trans.__(
      'The pod has a TPU, and such pods are never snapshotted. A pause does not keep the memory.'
    ),
  snapshot_not_ready: (trans, params) =>
    trans.__('This snapshot cannot be used (%1).', given(params, 'reason')),
  stuck_deleting: (trans, params) =>
    trans.__(
      'It has been in deletion for %1 minutes. It needs its policy "%2" for that; ask the platform team.',
      given(params, 'minutes'),
      given(params, 'policy')
    )
};

/** What JupyterHub and the other owners without a snapshot say. */
const STOPS: Sentences = {
  hub_scope_missing: (trans, params) =>
    trans.__(
      'The token of this server may not stop it. An administrator adds "%1" to "%2".',
      given(params, 'scope'),
      given(params, 'setting')
    ),
  hub_pending: (trans, params) =>
    trans.__(
      'JupyterHub is doing something else with this server (%1).',
      given(params, 'detail')
    ),
  hub_forbidden: (trans, params) =>
    trans.__(
      'JupyterHub does not let the token of this server do that. It lacks the scope "%1".',
      given(params, 'scope')
    ),
  hub_unauthorized: trans =>
    trans.__(
      'JupyterHub does not accept the token of this server. Restart the server from the Hub.'
    ),
  hub_not_found: trans =>
    trans.__(
      'JupyterHub knows no such server, or the token of this one may not see it.'
    ),
  hub_refused: (trans, params) =>
    trans.__('JupyterHub refused: %1.', given(params, 'message')),
  hub_unreachable: (trans, params) =>
    trans.__(
      'JupyterHub could not be reached (%1). Try again in a moment.',
      given(params, 'why')
    ),
  several_replicas: (trans, params) =>
    trans.__(
      'The StatefulSet has %1 replicas, of which this server is one. Only a StatefulSet of one pod can be paused.',
      given(params, 'count')
    )
};

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
