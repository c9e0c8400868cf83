/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';
import * as fs from 'fs';
import * as path from 'path';

import {
  availabilitySentence,
  blockedSentence,
  codeSentence,
  errorSentence,
  fateName,
  noteSentence,
  phaseName,
  stateName
} from '../messages';
import { reasonSentence } from '../reasons';
import { codesOf, reasonsIn } from './codes';
import { refusal, row } from './helpers';

const trans = nullTranslator.load('jupyter_pause');
const ROOT = path.resolve(__dirname, '..', '..');

/** The values of an enumeration of the contract. */
function enumOf(name: string): string[] {
  const text = fs.readFileSync(
    path.join(ROOT, 'jupyter_pause', 'openapi.yaml'),
    'utf8'
  );
  const match = new RegExp(`^ {4}${name}: .*enum: \\[(.*?)\\]`, 'm').exec(text);
  return match![1].split(', ');
}

describe('codeSentence', () => {
  const codes = codesOf('errors.py', 'SENTENCES');

  it('finds the codes of the server', () => {
    expect(codes).toContain('would_lose');
    expect(codes.length).toBeGreaterThan(25);
  });

  it.each(codes)('has a sentence of its own for %s', code => {
    const sentence = codeSentence(code, {}, trans);
    expect(sentence).not.toContain(`"${code}"`);
    expect(sentence).toMatch(/[.]$/);
  });

  it.each(['kernelspec_missing', 'interpreter_missing'])(
    'S37: names the kernel specification and what to do (%s)',
    code => {
      const sentence = codeSentence(code, { name: 'mine' }, trans);
      expect(sentence).toContain('"mine"');
      expect(sentence).toContain('Install its environment again, then resume');
    }
  );

  it('S37: names the environments that a cold start would not have', () => {
    const sentence = codeSentence(
      'environment_on_container_disk',
      { names: ['mine', 'other'] },
      trans
    );
    expect(sentence).toContain('mine, other');
    expect(sentence).toContain('cold start');
  });

  it('shows an unknown code as it is', () => {
    expect(codeSentence('brand_new', {}, trans)).toContain('"brand_new"');
  });

  it('names the room that is missing', () => {
    const sentence = codeSentence(
      'no_space',
      { needed: 2048, free: 1024 },
      trans
    );
    expect(sentence).toContain('2 KiB');
    expect(sentence).toContain('1 KiB');
  });
});

describe('workspaceSentence', () => {
  const codes = codesOf('workspace/sentences.py', 'SENTENCES');

  it('finds the codes of the server', () => {
    expect(codes).toContain('restore_not_confirmed');
    expect(codes.length).toBeGreaterThan(20);
  });

  it.each([
    ...codes,
    ...codesOf('cluster/sentences.py', 'CLUSTER_SENTENCES'),
    ...reasonsIn('owners/kubeflow.py'),
    ...reasonsIn('owners/switched.py'),
    ...reasonsIn('owners/statefulset.py'),
    ...reasonsIn('owners/jupyterhub.py'),
    ...reasonsIn('owners/jupyterhub_state.py'),
    ...reasonsIn('owners/kubeflow_state.py'),
    ...reasonsIn('owners/kubeflow_checks.py')
  ])('has a sentence of its own for %s', code => {
    const sentence = codeSentence(code, {}, trans);
    expect(sentence).not.toContain(`"${code}"`);
    expect(sentence).toMatch(/[.]$/);
  });

  it('S47: names the verb and the resource of a right that is missing', () => {
    const sentence = codeSentence(
      'workspace_blocked',
      {
        blocked_by: [
          {
            code: 'missing_right',
            params: { verb: 'patch', resource: 'workspaces.kubeflow.org' }
          }
        ]
      },
      trans
    );
    expect(sentence).toContain('cannot be paused now');
    expect(sentence).toContain('"patch" on "workspaces.kubeflow.org"');
  });

  it('S14: keeps the words of the platform', () => {
    expect(
      codeSentence('unschedulable', { detail: '0/3 nodes' }, trans)
    ).toContain('"0/3 nodes"');
  });

  it('says how much memory is missing', () => {
    const sentence = codeSentence(
      'vram_headroom',
      { needed: 2048, free: 1024 },
      trans
    );
    expect(sentence).toContain('2 KiB are needed, 1 KiB are free');
  });
});

describe('errorSentence', () => {
  it('reads errors, bodies of errors, and anything else', () => {
    expect(errorSentence(refusal('kernel_busy'), trans)).toContain(
      'runs a cell'
    );
    expect(
      errorSentence({ code: 'kernel_busy', message: '', params: {} }, trans)
    ).toContain('runs a cell');
    expect(errorSentence(new Error('boom'), trans)).toContain('Reload');
  });
});

describe('reasonSentence', () => {
  it.each(codesOf('inventory/reasons.py', 'REASONS'))(
    'has a sentence for %s',
    code => {
      expect(reasonSentence(code, trans)).not.toBe(code);
    }
  );

  it('shows the message of an object as it is', () => {
    expect(reasonSentence('cannot pickle it', trans)).toBe('cannot pickle it');
  });
});

describe('names', () => {
  it('has a name for every state, phase and fate of the contract', () => {
    const named = [
      ...enumOf('State').map(value => stateName(value as never, trans)),
      ...enumOf('Phase').map(value => phaseName(value as never, trans)),
      ...enumOf('Fate').map(value => fateName(value as never, trans))
    ];
    expect(named.every(name => !!name)).toBe(true);
    expect(enumOf('Fate').map(f => fateName(f as never, trans))).toEqual(
      enumOf('Fate')
    );
  });
});

describe('blockedSentence', () => {
  it('gives the reason', () => {
    expect(
      blockedSentence({ code: 'not_python', message: '', params: {} }, trans)
    ).toContain('Only Python');
    expect(blockedSentence(null, trans)).toContain('cannot be paused');
  });
});

describe('noteSentence', () => {
  const note = (code: string | null, state: 'running' | 'failed') =>
    noteSentence(
      row({ state, reason: code ? { code, message: '', params: {} } : null }),
      trans
    );

  it('tells of a restart that emptied a paused kernel', () => {
    expect(note('restarted_while_paused', 'running')).toContain('empty');
  });

  it('is silent about what a person did and about old failures', () => {
    expect(note(null, 'running')).toBeNull();
    expect(note('restarted', 'running')).toBeNull();
    expect(note('capture_failed', 'running')).toBeNull();
  });

  it('says why a kernel is in state failed', () => {
    expect(note('release_failed', 'failed')).toContain('saved');
  });
});

describe('availabilitySentence', () => {
  it('has nothing to say when the server answers', () => {
    expect(availabilitySentence('ready', trans)).toBeNull();
    expect(availabilitySentence('missing', trans)).toContain(
      'jupyter server extension enable'
    );
  });
});
