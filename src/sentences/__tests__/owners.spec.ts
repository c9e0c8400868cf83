/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';

import { codesOf } from '../../__tests__/codes';
import { workspaceSentence } from '../workspace';

const trans = nullTranslator.load('jupyter_pause');

describe('workspaceSentence', () => {
  const codes = [
    ...codesOf('owners/detection.py', 'SENTENCES'),
    ...codesOf('cluster/sentences.py', 'CLUSTER_SENTENCES'),
    'stuck_deleting',
    'snapshot_not_ready'
  ];

  it('finds the codes of the server', () => {
    expect(codes).toContain('owner_none');
    expect(codes).toContain('cluster_forbidden');
    expect(codes.length).toBeGreaterThan(25);
  });

  it.each(codes)('has a sentence for %s', code => {
    expect(workspaceSentence(code, {}, trans)).toMatch(/[.]$/);
  });

  it('names owners as people know them, and who says so', () => {
    const params = { kind: 'notebook_v1', by: 'label', name: 'lab' };
    expect(workspaceSentence('owner_missing', params, trans)).toBe(
      'The cluster has no Kubeflow Notebook named "lab", although it is named by a label of the pod.'
    );
    expect(
      workspaceSentence('owner_unsupported', { owner: 'ReplicaSet' }, trans)
    ).toContain('A ReplicaSet controls');
  });
});
