/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

type Params = Record<string, unknown>;

/**
 * A sentence for what JupyterHub and the other owners without a snapshot say, or null for another code.
 */
export function stopSentence(
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  const given = (name: string): string => String(params[name] ?? '?');
  switch (code) {
    case 'hub_scope_missing':
      return trans.__(
        'The token of this server may not stop it. An administrator adds "%1" to "%2".',
        given('scope'),
        given('setting')
      );
    case 'hub_pending':
      return trans.__(
        'JupyterHub is doing something else with this server (%1).',
        given('detail')
      );
    case 'hub_forbidden':
      return trans.__(
        'JupyterHub does not let the token of this server do that. It lacks the scope "%1".',
        given('scope')
      );
    case 'hub_unauthorized':
      return trans.__(
        'JupyterHub does not accept the token of this server. Restart the server from the Hub.'
      );
    case 'hub_not_found':
      return trans.__(
        'JupyterHub knows no such server, or the token of this one may not see it.'
      );
    case 'hub_refused':
      return trans.__('JupyterHub refused: %1.', given('message'));
    case 'hub_unreachable':
      return trans.__(
        'JupyterHub could not be reached (%1). Try again in a moment.',
        given('why')
      );
    case 'several_replicas':
      return trans.__(
        'The StatefulSet has %1 replicas, of which this server is one. Only a StatefulSet of one pod can be paused.',
        given('count')
      );
    default:
      return null;
  }
}
