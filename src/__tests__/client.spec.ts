/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { ServerConnection } from '@jupyterlab/services';

import type { PauseApiError } from '../api/client';
import { PauseClient } from '../api/client';
import { state } from './helpers';

describe('PauseClient', () => {
  let requests: Request[];
  let answer: () => Response | Error;
  let client: PauseClient;

  beforeEach(() => {
    requests = [];
    answer = () => json(200, state(1));
    client = new PauseClient(
      ServerConnection.makeSettings({
        baseUrl: 'http://127.0.0.1:1/user/me%40x/',
        token: 'secret',
        fetch: (async (request: Request) => {
          requests.push(request);
          const value = answer();
          if (value instanceof Error) {
            throw value;
          }
          return value;
        }) as typeof fetch
      })
    );
  });

  const failure = async (call: Promise<unknown>): Promise<PauseApiError> => {
    try {
      await call;
    } catch (error) {
      return error as PauseApiError;
    }
    throw new Error('The call did not fail');
  };

  it('asks under the base URL, as activity of nobody', async () => {
    expect((await client.state()).revision).toBe(1);
    const url = new URL(requests[0].url);
    expect(url.pathname).toBe('/user/me%40x/jupyter-pause/api/state');
    expect(url.searchParams.get('no_track_activity')).toBe('1');
    expect(requests[0].headers.get('Authorization')).toBe('token secret');
  });

  it('never lets an id become a path', async () => {
    answer = () => new Response(null, { status: 204 });
    await client.deleteCheckpoint('../../kernels', false);
    expect(requests[0].method).toBe('DELETE');
    expect(requests[0].url).toContain(
      '/jupyter-pause/api/checkpoints/..%2F..%2Fkernels?force=false'
    );
  });

  it('refuses losses unless told otherwise', async () => {
    answer = () => json(202, { operation: { id: 'op1' } });
    const operation = await client.pause({ kernels: ['k1'] });
    expect(operation.id).toBe('op1');
    expect(await requests[0].json()).toEqual({
      kernels: ['k1'],
      scope: 'kernel',
      on_loss: 'refuse',
      when_busy: 'wait',
      cause: 'user'
    });
  });

  it('keeps code, losses and status of a refusal', async () => {
    answer = () =>
      json(422, {
        message: 'no',
        code: 'would_lose',
        losses: [{ name: 'g', path: 'g', type: '', reason: '', cell: 1 }]
      });
    const error = await failure(client.pause({ kernels: null }));
    expect(error.status).toBe(422);
    expect(error.code).toBe('would_lose');
    expect(error.body.losses?.[0].name).toBe('g');
  });

  it.each([
    ['no answer', () => new TypeError('Failed to fetch'), 'server_unreachable'],
    ['a proxy without server', () => json(503, {}), 'server_unavailable'],
    ['a hub without server', () => json(424, {}), 'server_unavailable'],
    ['no such page', () => html(404), 'server_part_missing'],
    [
      'no such call',
      () => json(404, { code: 'no_such_call', message: '' }),
      'server_part_missing'
    ],
    [
      'no such thing',
      () => json(404, { code: 'kernel_not_found', message: '' }),
      'kernel_not_found'
    ],
    ['a refusal', () => html(403), 'forbidden'],
    ['a login page', () => html(200), 'bad_answer'],
    ['a crash', () => html(500), 'bad_answer']
  ])('tells %s apart', async (_, value, code) => {
    answer = value;
    expect((await failure(client.state())).code).toBe(code);
  });
});

function json(status: number, body: object): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'Content-Type': 'application/json' }
  });
}

function html(status: number): Response {
  return new Response('<html>Sign in</html>', { status });
}
