/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';
import * as fs from 'fs';
import * as path from 'path';

import { workspaceSentence } from '../workspaceReasons';

const trans = nullTranslator.load('jupyter_pause');

/** The keys of a Python dictionary of codes. */
function codesOf(file: string, name: string): string[] {
  const root = path.resolve(__dirname, '..', '..', 'jupyter_pause');
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  const start = text.indexOf(`${name}`);
  const body = text.slice(start, text.indexOf('\n}', start));
  return Array.from(body.matchAll(/^ {4}"(\w+)":/gm), match => match[1]);
}

describe('workspaceSentence', () => {
  const codes = [
    ...codesOf('owners/detection.py', 'SENTENCES ='),
    ...codesOf('cluster/sentences.py', 'CLUSTER_SENTENCES:'),
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
