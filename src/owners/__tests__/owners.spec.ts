/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDoorEnvironment } from '..';
import { DoorError, openDoor } from '..';
import { viewOf } from '../kubeflow';

const PAGE = 'https://hub.test/workspace/connect/ann/work/jl/lab/tree/a.ipynb';
const API = '/workspaces/api/v1/workspaces/ann/work';

/** What a backend answers, by method and path; anything else is a 404. */
class Backend {
  answers = new Map<string, () => Response | Error>();
  calls: { key: string; init: RequestInit }[] = [];
  opened: { url: string; closed: boolean }[] = [];
  cookies = '';
  popups = true;

  readonly environment: IDoorEnvironment = {
    fetch: (url, init = {}) => {
      const key = `${init.method ?? 'GET'} ${url}`;
      this.calls.push({ key, init });
      const answer = this.answers.get(key)?.() ?? reply(404, {});
      return answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve(answer);
    },
    open: url => {
      if (!this.popups) {
        return null;
      }
      const opened = {
        url,
        closed: false,
        close: () => {
          opened.closed = true;
        }
      };
      this.opened.push(opened);
      return opened;
    },
    page: PAGE,
    basePath: '/workspace/connect/ann/work/jl/',
    cookies: () => this.cookies
  };

  /** The list that has the state. */
  lists(item: object): void {
    this.answers.set('GET /workspaces/api/v1/workspaces/ann', () =>
      reply(200, { data: [{ name: 'other' }, { name: 'work', ...item }] })
    );
  }
}

/** jsdom has no `Response`; these are the parts of one that are read. */
/** An answer from another path than the one that was asked. */
function led(path: string, status: number): Response {
  return Object.assign(reply(status, {}), {
    redirected: true,
    url: new URL(path, PAGE).href
  });
}

function reply(status: number, body: unknown, type = 'basic'): Response {
  return {
    status,
    ok: status >= 200 && status < 300,
    type,
    text: () =>
      Promise.resolve(typeof body === 'string' ? body : JSON.stringify(body))
  } as Response;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof DoorError ? error.code : String(error);
  }
  return 'no error';
}

describe('Kubeflow', () => {
  let backend: Backend;
  const open = (api: string | null = API) =>
    openDoor(
      { kind: 'kubeflow', api, page: null, command: 'jupyter pause resume' },
      backend.environment
    );

  beforeEach(() => {
    backend = new Backend();
  });

  it.each([
    [{ paused: true, state: 'Paused' }, 'paused', null],
    [{ paused: true, state: 'Terminating' }, 'pausing', null],
    [{ paused: true, state: 'Running' }, 'pausing', null],
    [{ paused: true, state: 'Unknown' }, 'pausing', null],
    [{ paused: false, state: 'Running' }, 'running', null],
    [{ paused: false, state: 'Unknown' }, 'running', null],
    [{ paused: false, state: 'Paused' }, 'starting', null],
    [{ paused: false, state: 'Pending' }, 'starting', null],
    [
      {
        paused: false,
        state: 'Error',
        stateMessage: 'Workspace Pod is unschedulable: 0/3 nodes are available'
      },
      'waiting',
      'unschedulable'
    ],
    [
      {
        paused: false,
        state: 'Error',
        stateMessage: 'Workspace Pod has warning event: Multi-Attach error'
      },
      'waiting',
      'volume_attached_elsewhere'
    ],
    [
      {
        paused: false,
        state: 'Error',
        stateMessage: 'Workspace Container is not running (CrashLoopBackOff)'
      },
      'failed',
      'pod_broken'
    ],
    [{ paused: true }, 'paused', null],
    [{ paused: false }, 'running', null],
    [{}, 'unknown', null]
  ])('S14: sees %j as %s', (item, state, reason) => {
    const view = viewOf(item);
    expect(view.state).toBe(state);
    expect(view.reason?.code ?? null).toBe(reason);
  });

  it('reads the state from the list and sends the login, never a token of ours', async () => {
    backend.lists({ paused: true, state: 'Paused' });
    expect(await open().look()).toEqual({ state: 'paused', reason: null });
    expect(backend.calls).toHaveLength(1);
    expect(backend.calls[0].init).toMatchObject({
      credentials: 'same-origin',
      redirect: 'manual',
      headers: { Accept: 'application/json' }
    });
  });

  it('reads what can be edited where listing is refused, and does not ask for the list again', async () => {
    backend.answers.set('GET /workspaces/api/v1/workspaces/ann', () =>
      reply(403, { error: { code: '403', message: 'no' } })
    );
    backend.answers.set(`GET ${API}`, () =>
      reply(200, { data: { paused: true, revision: 'x' } })
    );
    const door = open();
    expect((await door.look()).state).toBe('paused');
    expect((await door.look()).state).toBe('paused');
    expect(backend.calls.map(call => call.key)).toEqual([
      'GET /workspaces/api/v1/workspaces/ann',
      `GET ${API}`,
      `GET ${API}`
    ]);
  });

  it('asks for the compute with an explicit false, and with the cookie that Kubeflow checks', async () => {
    backend.cookies = 'theme=dark; XSRF-TOKEN=abc%3D';
    backend.answers.set(`POST ${API}/actions/pause`, () =>
      reply(200, { data: { paused: false } })
    );
    expect(await open().resume()).toBe('asked');
    expect(backend.calls[0].init).toMatchObject({
      body: '{"data":{"paused":false}}',
      headers: {
        'Content-Type': 'application/json',
        'X-XSRF-TOKEN': 'abc='
      }
    });
  });

  it.each([
    [{ paused: false, state: 'Pending' }, 'joined'],
    [{ paused: true, state: 'Terminating' }, 'not_yet']
  ])('two resumes are one: a refusal over %j is %s', async (item, answer) => {
    backend.answers.set(`POST ${API}/actions/pause`, () =>
      reply(409, { error: { code: '409', message: 'not in a valid state' } })
    );
    backend.lists(item);
    expect(await open().resume()).toBe(answer);
  });

  it.each([
    [reply(401, {}), 'door_signed_out'],
    [reply(0, '', 'opaqueredirect'), 'door_signed_out'],
    [reply(200, '<html>Sign in</html>'), 'door_signed_out'],
    [reply(403, {}), 'door_forbidden'],
    [reply(404, {}), 'door_not_found'],
    [reply(422, { error: { message: 'bad name' } }), 'door_refused'],
    [reply(500, { error: { message: 'boom' } }), 'door_failed'],
    [new TypeError('network'), 'door_unreachable']
  ])('says what went wrong: %#', async (answer, code) => {
    backend.answers.set('GET /workspaces/api/v1/workspaces/ann', () =>
      reply(404, {})
    );
    backend.answers.set(`GET ${API}`, () => answer);
    expect(await codeOf(open().look())).toBe(code);
  });

  it('keeps the words of the platform', async () => {
    backend.answers.set(`POST ${API}/actions/pause`, () =>
      reply(500, { error: { code: '500', message: 'the server is on fire' } })
    );
    const error = await open()
      .resume()
      .catch((thrown: unknown) => thrown);
    expect((error as DoorError).reason.params).toEqual({
      detail: 'the server is on fire'
    });
  });

  describe('on another machine', () => {
    const KINDS = '/workspaces/api/v1/workspacekinds/jupyter';
    const LIST = `POST ${KINDS}/podtemplate/options/listvalues`;
    const size = (id: string, more: object = {}) => ({
      id,
      displayName: `Size ${id}`,
      description: '',
      hidden: false,
      restrictions: { deny: false },
      ...more
    });
    const VALUES = [
      size('a100'),
      size('l4', {
        description: 'Small',
        labels: [{ key: 'gpu', value: 'L4' }]
      }),
      size('old', { hidden: true }),
      size('closed', { restrictions: { deny: true } }),
      size('cpu')
    ];
    const UPDATE = {
      revision: 'r1',
      paused: true,
      displayName: 'kept, whatever it is',
      podTemplate: {
        podMetadata: { labels: { team: 'a' }, annotations: {} },
        volumes: { home: 'home', data: [{ pvcName: 'd', mountPath: '/d' }] },
        options: { imageConfig: 'scipy', podConfig: 'a100' }
      }
    };
    const sizes = () => {
      const found = open().sizes;
      if (!found) {
        throw new Error('no sizes');
      }
      return found;
    };
    const bodies = (key: string) =>
      backend.calls
        .filter(call => call.key === key)
        .map(call => JSON.parse(String(call.init.body)) as unknown);

    beforeEach(() => {
      backend.lists({
        paused: false,
        state: 'Error',
        workspaceKind: { name: 'jupyter' },
        podTemplate: {
          options: {
            imageConfig: { current: { id: 'scipy' } },
            podConfig: { current: { id: 'a100' } }
          }
        }
      });
      backend.answers.set(`GET ${API}`, () => reply(200, { data: UPDATE }));
    });

    it('lists what may be chosen in the namespace, without what is hidden, denied or its own', async () => {
      backend.answers.set(LIST, () =>
        reply(200, { data: { podConfig: { values: VALUES } } })
      );
      expect(await sizes().list()).toEqual([
        { id: 'l4', name: 'Size l4', about: 'Small; gpu: L4' },
        { id: 'cpu', name: 'Size cpu', about: '' }
      ]);
      expect(bodies(LIST)).toEqual([
        {
          data: {
            context: {
              namespace: { name: 'ann' },
              imageConfig: { id: 'scipy' }
            }
          }
        }
      ]);
    });

    it.each([403, 404, 405])(
      'reads the kind where the list of choices answers %i',
      async status => {
        backend.answers.set(LIST, () => reply(status, {}));
        backend.answers.set(`GET ${KINDS}`, () =>
          reply(200, {
            data: {
              podTemplate: { options: { podConfig: { values: VALUES } } }
            }
          })
        );
        expect((await sizes().list()).map(found => found.id)).toEqual([
          'l4',
          'cpu'
        ]);
      }
    );

    it('says that neither may be read', async () => {
      backend.answers.set(LIST, () => reply(403, {}));
      backend.answers.set(`GET ${KINDS}`, () => reply(403, {}));
      expect(await codeOf(sizes().list())).toBe('door_forbidden');
    });

    it('pauses again; paused already is as good, held back is not', async () => {
      const pause = `POST ${API}/actions/pause`;
      backend.answers.set(pause, () => reply(200, { data: { paused: true } }));
      await sizes().pauseAgain();
      expect(bodies(pause)).toEqual([{ data: { paused: true } }]);
      backend.answers.set(pause, () => reply(409, {}));
      await sizes().pauseAgain();
      backend.answers.set(pause, () => reply(200, { data: { paused: false } }));
      expect(await codeOf(sizes().pauseAgain())).toBe('cold_runs');
      backend.answers.set(pause, () => reply(403, {}));
      expect(await codeOf(sizes().pauseAgain())).toBe('door_forbidden');
    });

    it('sends back exactly what it got but for the size', async () => {
      backend.answers.set(`PUT ${API}`, () => reply(200, { data: UPDATE }));
      await sizes().choose('l4');
      expect(bodies(`PUT ${API}`)).toEqual([
        {
          data: {
            ...UPDATE,
            podTemplate: {
              ...UPDATE.podTemplate,
              options: { imageConfig: 'scipy', podConfig: 'l4' }
            }
          }
        }
      ]);
    });

    it('takes an old revision for a reason to read again, five times at most', async () => {
      let tries = 0;
      backend.answers.set(`GET ${API}`, () =>
        reply(200, { data: { ...UPDATE, revision: `r${tries}` } })
      );
      backend.answers.set(`PUT ${API}`, () => {
        tries += 1;
        return reply(tries < 3 ? 409 : 200, { data: UPDATE });
      });
      await sizes().choose('l4');
      expect(
        bodies(`PUT ${API}`).map(
          body => (body as { data: { revision: string } }).data.revision
        )
      ).toEqual(['r0', 'r1', 'r2']);
      backend.answers.set(`PUT ${API}`, () => {
        tries += 1;
        return reply(409, {});
      });
      tries = 0;
      expect(await codeOf(sizes().choose('l4'))).toBe('door_refused');
      expect(tries).toBe(5);
    });

    it('changes nothing that is not paused any more, and nothing that is so already', async () => {
      await sizes().choose('a100');
      backend.answers.set(`GET ${API}`, () =>
        reply(200, { data: { ...UPDATE, paused: false } })
      );
      expect(await codeOf(sizes().choose('l4'))).toBe('cold_runs');
      expect(bodies(`PUT ${API}`)).toEqual([]);
    });

    it('keeps what the platform says is not valid', async () => {
      backend.answers.set(`PUT ${API}`, () =>
        reply(422, {
          error: {
            message: 'validation error (see .cause)',
            cause: {
              validation_errors: [{ message: 'PVC is not mountable' }, null]
            }
          }
        })
      );
      const error = await sizes()
        .choose('l4')
        .catch((thrown: unknown) => thrown);
      expect((error as DoorError).reason).toEqual({
        code: 'door_refused',
        message: 'PVC is not mountable',
        params: { detail: 'PVC is not mountable' }
      });
    });

    it('is offered by no other owner', () => {
      for (const kind of ['jupyterhub', 'none'] as const) {
        const door = { kind, api: API, page: '/hub/spawn/ann', command: '' };
        expect(openDoor(door, backend.environment).sizes).toBeNull();
      }
      expect(open(null).sizes).toBeNull();
    });
  });

  it.each(['https://evil.test/api', '//evil.test/api', null])(
    'asks nobody on another origin: %s',
    async api => {
      const door = open(api);
      expect(door.canResume).toBe(false);
      expect(await codeOf(door.resume())).toBe('door_not_found');
      expect(backend.calls).toEqual([]);
    }
  );
});

describe('JupyterHub', () => {
  let backend: Backend;
  const STATUS =
    'GET /workspace/connect/ann/work/jl/api/status?no_track_activity=1';
  const open = (page = '/hub/spawn/ann') =>
    openDoor(
      { kind: 'jupyterhub', api: null, page, command: '' },
      backend.environment
    );

  beforeEach(() => {
    backend = new Backend();
  });

  it('opens the page of the Hub that starts the server, with the way back, and closes it', async () => {
    const door = open();
    expect(await door.resume()).toBe('elsewhere');
    const [window] = backend.opened;
    expect(window.url).toBe(
      `/hub/spawn/ann?next=${encodeURIComponent(new URL(PAGE).pathname)}`
    );
    expect(backend.calls).toEqual([]);
    door.back();
    expect(window.closed).toBe(true);
    door.back();
  });

  it('keeps a query that the page has', async () => {
    await open('/hub/spawn/ann?profile=gpu').resume();
    await open('/hub/spawn/ann?next=%2Fx').resume();
    expect(backend.opened.map(window => window.url)).toEqual([
      expect.stringContaining('?profile=gpu&next='),
      '/hub/spawn/ann?next=%2Fx'
    ]);
  });

  it('says when the browser keeps the window from opening', async () => {
    backend.popups = false;
    expect(await codeOf(open().resume())).toBe('popup_blocked');
  });

  it.each([
    [424, 'paused'],
    [503, 'paused'],
    [404, 'paused'],
    [200, 'running'],
    [403, 'running']
  ])('sees %i at the address of the server as %s', async (status, state) => {
    backend.answers.set(STATUS, () => reply(status, {}));
    expect((await open().look()).state).toBe(state);
  });

  it.each([424, 403, 503])(
    'knows that the Hub stands in for the server: led to its path, %i',
    async status => {
      backend.answers.set(STATUS, () =>
        led('/base/hub/user/ann/api/status', status)
      );
      expect((await open().look()).state).toBe('paused');
    }
  );

  it.each([
    [reply(502, {}), 'door_unreachable'],
    [led('/hub/login', 200), 'door_signed_out'],
    [new TypeError('network'), 'door_unreachable']
  ])('does not know more than it was told: %#', async (answer, code) => {
    backend.answers.set(STATUS, () => answer);
    expect(await codeOf(open().look())).toBe(code);
  });
});

describe('no door', () => {
  it('offers nothing and claims nothing', async () => {
    const door = openDoor(
      { kind: 'none', api: null, page: null, command: 'kubectl scale' },
      new Backend().environment
    );
    expect(door.canResume).toBe(false);
    expect(door.canLook).toBe(false);
    expect((await door.look()).state).toBe('unknown');
    expect(await codeOf(door.resume())).toBe('door_not_found');
  });
});
