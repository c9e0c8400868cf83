/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';

import { checkpoint, operation, state } from '../../__tests__/helpers';
import { answer, report } from '../../__tests__/workspaces';
import type { Operation, ServerState } from '../../api/records';
import type { WorkspaceResumeReport } from '../../api/workspace';
import type {
  DoorState,
  IDoorSizes,
  IDoorView,
  ResumeAnswer
} from '../../owners';
import { DoorError } from '../../owners';
import type { TextStorage } from '../farewell';
import { FarewellStore } from '../farewell';
import type { IClock } from '../model';
import { PausedScreenModel } from '../model';

const TIME = '2026-11-30T10:00:00.000Z';

const PAUSE = operation({ scope: 'workspace', phase: 'snapshotting' });

/** A clock that a test turns. */
class TestClock implements IClock {
  time = Date.parse(TIME);
  timers: { at: number; call: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(milliseconds: number, call: () => void): IDisposable {
    const timer = { at: this.time + milliseconds, call };
    this.timers.push(timer);
    return new DisposableDelegate(() => {
      this.timers = this.timers.filter(other => other !== timer);
    });
  }

  /** Milliseconds until the next timer, or null. */
  get next(): number | null {
    return this.timers.length > 0
      ? Math.min(...this.timers.map(timer => timer.at)) - this.time
      : null;
  }

  /** Let time pass and what was waiting for it happen. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.time + milliseconds;
    for (;;) {
      const due = this.timers
        .filter(timer => timer.at <= end)
        .sort((a, b) => a.at - b.at)[0];
      if (!due) {
        break;
      }
      this.time = due.at;
      this.timers = this.timers.filter(timer => timer !== due);
      due.call();
      await settle();
    }
    this.time = end;
    await settle();
  }
}

/** Let promises that are resolved go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    await Promise.resolve();
  }
}

/** A door whose answers a test sets. */
class ScriptedDoor {
  canLook = true;
  canResume = true;
  sizes: IDoorSizes | null = null;
  view: IDoorView | DoorError = { state: 'running', reason: null };
  resumes: (ResumeAnswer | DoorError)[] = [];
  looks = 0;
  asks = 0;
  backs = 0;

  says(name: DoorState, code?: string): void {
    this.view = {
      state: name,
      reason: code ? { code, message: '', params: {} } : null
    };
  }

  look(): Promise<IDoorView> {
    this.looks += 1;
    return this.view instanceof DoorError
      ? Promise.reject(this.view)
      : Promise.resolve(this.view);
  }

  resume(): Promise<ResumeAnswer> {
    this.asks += 1;
    const next = this.resumes.shift() ?? 'asked';
    return next instanceof DoorError
      ? Promise.reject(next)
      : Promise.resolve(next);
  }

  back(): void {
    this.backs += 1;
  }
}

class MemoryStorage implements TextStorage {
  readonly values = new Map<string, string>();
  getItem(key: string): string | null {
    return this.values.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.values.set(key, value);
  }
  removeItem(key: string): void {
    this.values.delete(key);
  }
}

describe('PausedScreenModel', () => {
  let clock: TestClock;
  let door: ScriptedDoor;
  let session: MemoryStorage;
  let local: MemoryStorage;
  let holds: number;
  let visible: boolean;
  let refreshes: number;
  let model: PausedScreenModel;
  let seen: string[];

  const create = () => {
    model = new PausedScreenModel({
      open: () => door,
      store: new FarewellStore(session, local, '/'),
      clock,
      visible: () => visible,
      refresh: () => {
        refreshes += 1;
        return Promise.resolve();
      },
      hold: () => {
        holds += 1;
        return new DisposableDelegate(() => {
          holds -= 1;
        });
      }
    });
    model.changed.connect(() => {
      if (seen[seen.length - 1] !== model.state) {
        seen.push(model.state);
      }
    });
  };
  const says = (
    answers: boolean,
    last: ServerState | null,
    op: Operation | null = null
  ) =>
    model.serverSays({
      answers,
      state: last,
      operation: op,
      checkpoints: [checkpoint({ kernel_id: 'k1' })]
    });
  const gone = () => says(false, answer({ state: 'pausing' }), PAUSE);
  /** Up to the paused screen. */
  const pause = async () => {
    says(true, answer());
    says(true, answer({ state: 'pausing', phase: 'snapshotting' }), PAUSE);
    gone();
    await clock.pass(3_000);
    door.says('paused');
    await clock.pass(20_000);
    expect(model.state).toBe('paused');
  };

  beforeEach(() => {
    clock = new TestClock();
    door = new ScriptedDoor();
    session = new MemoryStorage();
    local = new MemoryStorage();
    holds = 0;
    refreshes = 0;
    visible = true;
    seen = [];
    create();
  });

  afterEach(() => {
    model.dispose();
    if (holds !== 0 || clock.timers.length > 0) {
      throw new Error(
        `Left behind: ${holds} holds, ${clock.timers.length} timers`
      );
    }
  });

  it('goes the whole way, shows each state once, and gives the flag back', async () => {
    await pause();
    expect(holds).toBe(1);
    door.says('waiting', 'unschedulable');
    await model.resume();
    expect(model.state).toBe('waiting');
    expect(model.reason?.code).toBe('unschedulable');
    door.says('starting');
    await clock.pass(10_000);
    door.says('running');
    await clock.pass(10_000);
    expect(model.state).toBe('restoring');
    expect(refreshes).toBeGreaterThan(0);
    says(true, answer({ state: 'resuming', phase: 'proving' }));
    expect(model.state).toBe('proving');
    expect(holds).toBe(1);
    const reports: WorkspaceResumeReport[] = [];
    model.cameBack.connect((_, value) => reports.push(value));
    says(true, answer({ state: 'ready', last_resume: report() }));
    expect(seen).toEqual([
      'hidden',
      'leaving',
      'paused',
      'asking',
      'starting',
      'waiting',
      'starting',
      'restoring',
      'proving',
      'hidden'
    ]);
    expect(reports.map(value => value.outcome)).toEqual(['restored']);
    expect(holds).toBe(0);
    expect(door.backs).toBe(1);
    expect(model.usual).toBeCloseTo(20, 0);
  });

  it('shows the pause only once the server may go, so that questions before can be answered', () => {
    says(true, answer());
    says(
      true,
      answer({ state: 'pausing', phase: 'saving' }),
      operation({ scope: 'workspace', phase: 'saving' })
    );
    expect(model.state).toBe('preparing');
    expect(model.cancellable).toBe('op1');
    expect(holds).toBe(0);
    says(true, answer({ state: 'pausing', phase: 'draining' }), {
      ...PAUSE,
      phase: 'draining'
    });
    expect(model.state).toBe('leaving');
    expect(model.phase).toBe('draining');
    expect(model.cancellable).toBe('op1');
    expect(model.farewell?.kernels[0].checkpoint).toBe(TIME);
    expect(holds).toBe(1);
    gone();
    expect(model.cancellable).toBeNull();
  });

  it('a pause that was taken back leaves nothing behind', () => {
    says(true, answer());
    says(true, answer({ state: 'pausing', phase: 'snapshotting' }), PAUSE);
    gone();
    expect(model.state).toBe('leaving');
    says(true, answer());
    expect(model.state).toBe('hidden');
    expect(holds).toBe(0);
  });

  it('says fresh in that word until it was read', async () => {
    await pause();
    await model.resume();
    door.says('running');
    await clock.pass(10_000);
    const cold = report({ outcome: 'fresh', via: null });
    says(true, answer({ state: 'ready', last_resume: cold }));
    expect(model.state).toBe('fresh');
    expect(model.report).toEqual(cold);
    expect(holds).toBe(0);
    says(true, answer({ state: 'running', last_resume: cold }));
    expect(model.state).toBe('fresh');
    model.acknowledge();
    expect(model.state).toBe('hidden');
  });

  it('a report that comes after the first answer is news as well, once', async () => {
    await pause();
    await model.resume();
    const reports: string[] = [];
    model.cameBack.connect((_, value) => reports.push(value.outcome));
    says(true, answer());
    expect(model.state).toBe('hidden');
    const cold = report({ outcome: 'fresh', via: null });
    says(true, answer({ last_resume: cold }));
    says(true, answer({ last_resume: cold }));
    expect(model.state).toBe('fresh');
    expect(reports).toEqual(['fresh']);
  });

  it('an old report is no news', async () => {
    const old = report({ outcome: 'fresh' });
    says(true, answer({ last_resume: old }));
    says(true, answer({ state: 'pausing', last_resume: old }), PAUSE);
    says(false, answer({ state: 'pausing', last_resume: old }), PAUSE);
    let news = 0;
    model.cameBack.connect(() => {
      news += 1;
    });
    says(true, answer({ last_resume: old }));
    expect(model.state).toBe('hidden');
    expect(news).toBe(0);
  });

  it('follows a resume that another tab asked for, without asking itself', async () => {
    await pause();
    door.says('starting');
    await clock.pass(60_000);
    expect(model.state).toBe('starting');
    expect(model.askedAt).not.toBeNull();
    door.says('running');
    await clock.pass(20_000);
    expect(model.state).toBe('restoring');
    expect(door.asks).toBe(0);
  });

  it('two clicks are one request', async () => {
    await pause();
    await Promise.all([model.resume(), model.resume()]);
    expect(door.asks).toBe(1);
  });

  it('a wish that came too early is asked again until it is taken', async () => {
    await pause();
    door.resumes = ['not_yet', 'not_yet', 'asked'];
    await model.resume();
    expect(model.state).toBe('asking');
    await clock.pass(60_000);
    expect(door.asks).toBe(3);
    expect(model.state).toBe('starting');
  });

  it('a refused resume fails with the reason, and can be tried again', async () => {
    await pause();
    door.resumes = [new DoorError('door_forbidden'), 'asked'];
    await model.resume();
    expect(model.state).toBe('failed');
    expect(model.reason?.code).toBe('door_forbidden');
    expect(model.canResume).toBe(true);
    door.says('starting');
    await model.retry();
    expect(model.state).toBe('starting');
  });

  it('S17: failed can be left when the owner goes on by itself', async () => {
    await pause();
    door.resumes = [new DoorError('door_failed')];
    await model.resume();
    expect(model.state).toBe('failed');
    door.says('starting');
    await clock.pass(120_000);
    expect(model.state).toBe('starting');
  });

  it('a resume that nobody took is told', async () => {
    await pause();
    await model.resume();
    expect(model.state).toBe('starting');
    await clock.pass(90_000);
    expect(model.state).toBe('failed');
    expect(model.reason?.code).toBe('resume_not_taken');
  });

  it('a window of the Hub that was closed without a start gives Resume back', async () => {
    await pause();
    door.resumes = ['elsewhere'];
    await model.resume();
    expect(model.state).toBe('starting');
    await clock.pass(300_000);
    expect(model.state).toBe('starting');
    await clock.pass(400_000);
    expect(model.state).toBe('paused');
    expect(model.canResume).toBe(true);
  });

  it('S14: waits as long as it takes, and shows what the owner says', async () => {
    await pause();
    door.says('waiting', 'unschedulable');
    await model.resume();
    const since = model.enteredAt;
    await clock.pass(3_600_000);
    expect(model.state).toBe('waiting');
    expect(model.enteredAt).toBe(since);
    door.says('failed', 'pod_broken');
    await clock.pass(60_000);
    expect(model.state).toBe('failed');
    expect(model.reason?.code).toBe('pod_broken');
  });

  it('S15: an owner that still calls it running while it is snapshotted is leaving, without flicker', async () => {
    says(true, answer({ state: 'pausing', phase: 'snapshotting' }), PAUSE);
    gone();
    door.says('running');
    await clock.pass(60_000);
    door.says('pausing');
    await clock.pass(60_000);
    door.says('paused');
    await clock.pass(60_000);
    expect(seen).toEqual(['leaving', 'paused']);
  });

  it('one lost answer is nothing; more are unknown with the reason, and it recovers alone', async () => {
    await pause();
    door.view = new DoorError('door_unreachable');
    await clock.pass(30_000);
    expect(model.state).toBe('paused');
    await clock.pass(120_000);
    expect(model.state).toBe('unknown');
    expect(model.reason?.code).toBe('door_unreachable');
    expect(model.heardAt).toBeLessThan(clock.now() - 60_000);
    door.says('paused');
    await clock.pass(120_000);
    expect(model.state).toBe('paused');
  });

  it('without a door it claims nothing and waits for the server', async () => {
    door.canLook = false;
    door.canResume = false;
    says(true, answer({ state: 'pausing', phase: 'releasing' }), PAUSE);
    gone();
    expect(model.state).toBe('unknown');
    expect(model.canResume).toBe(false);
    await clock.pass(600_000);
    expect(door.looks).toBe(0);
    says(true, answer({ last_resume: report() }));
    expect(model.state).toBe('hidden');
  });

  it('leaves an outage that is no pause to the application', async () => {
    says(true, answer());
    says(false, answer());
    await clock.pass(60_000);
    expect(model.state).toBe('hidden');
    expect(holds).toBe(0);
    says(true, answer());
    expect(clock.timers).toEqual([]);
  });

  it('learns from the owner of a pause that somebody else ordered', async () => {
    says(true, answer());
    door.says('paused');
    says(false, answer());
    await settle();
    expect(model.state).toBe('paused');
    expect(holds).toBe(1);
    says(true, answer({ last_resume: report() }));
    expect(model.state).toBe('hidden');
  });

  it('S20: a server that still looks for its owner takes nothing from what this page knows', async () => {
    await pause();
    says(true, {
      ...state(1),
      reason: { code: 'owner_unknown', message: '', params: {} }
    });
    says(true, answer({ last_resume: report({ outcome: 'fresh' }) }));
    expect(model.state).toBe('fresh');
  });

  it('does nothing on a server that is no workspace', async () => {
    says(true, state(1));
    says(false, state(1));
    await clock.pass(60_000);
    expect(model.state).toBe('hidden');
    expect(door.looks).toBe(0);
  });

  it('S09: looks ever more slowly, and not at all while nobody can see it', async () => {
    await pause();
    await clock.pass(3_600_000);
    const slow = door.looks;
    await clock.pass(3_600_000);
    expect(door.looks - slow).toBe(30);
    visible = false;
    await clock.pass(300_000);
    const hidden = door.looks;
    await clock.pass(3_600_000);
    expect(door.looks).toBe(hidden);
    visible = true;
    door.says('starting');
    model.wake();
    await settle();
    expect(door.looks).toBe(hidden + 1);
    expect(model.state).toBe('starting');
    expect(clock.next).toBeLessThanOrEqual(3_000);
  });

  it('knows after a reload of the page what it knew before', async () => {
    await pause();
    model.dispose();
    create();
    expect(model.farewell?.workspace.name).toBe('work');
    says(false, null);
    await model.look();
    expect(model.state).toBe('paused');
    await model.resume();
    expect(door.asks).toBe(1);
  });

  it('a page that was reloaded while it was away hears how it came back', async () => {
    await pause();
    model.dispose();
    create();
    const reports: string[] = [];
    model.cameBack.connect((_, value) => reports.push(value.outcome));
    says(
      true,
      answer({ last_resume: report({ outcome: 'fresh', via: null }) })
    );
    expect(reports).toEqual(['fresh']);
    expect(model.state).toBe('fresh');
  });

  it('damaged records are no records', () => {
    session.setItem('jupyter-pause:workspace:/', '{"version": 1');
    local.setItem('jupyter-pause:resumes:/', '["x", -1, 7]');
    model.dispose();
    create();
    expect(model.farewell).toBeNull();
    expect(model.usual).toBe(7);
  });

  it('keeps no more than it needs in the tab', async () => {
    await pause();
    const kept = session.getItem('jupyter-pause:workspace:/') ?? '';
    expect(JSON.parse(kept).workspace.door.command).toContain('resume');
    expect(kept).not.toMatch(/token|cookie/i);
  });

  describe('on another machine', () => {
    let done: string[];
    let refusal: DoorError | null;
    const sizes: IDoorSizes = {
      list: () => Promise.resolve([{ id: 'l4', name: 'One L4', about: '' }]),
      pauseAgain: () => {
        done.push('pause');
        door.says('pausing');
        return Promise.resolve();
      },
      choose: size => {
        done.push(`choose ${size}`);
        return refusal ? Promise.reject(refusal) : Promise.resolve();
      }
    };
    /** Up to a resume that waits for capacity. */
    const wait = async () => {
      await pause();
      door.sizes = sizes;
      await model.resume();
      door.says('waiting', 'unschedulable');
      await clock.pass(20_000);
      expect(model.state).toBe('waiting');
      expect(await model.sizes()).toHaveLength(1);
    };

    beforeEach(() => {
      done = [];
      refusal = null;
    });

    it('is paused again, changed, and asked for', async () => {
      await wait();
      const answered = model.startOn('l4');
      await clock.pass(0);
      expect(model.state).toBe('cold');
      expect(model.workspaceState).toBe('resuming');
      expect(model.cold?.step).toBe('waiting');
      expect(done).toEqual(['pause']);
      expect(await model.startOn('other')).toBeNull();
      door.says('paused');
      const { asks } = door;
      await clock.pass(20_000);
      expect(await answered).toBeNull();
      expect(done).toEqual(['pause', 'choose l4']);
      expect(door.asks).toBe(asks + 1);
      expect(model.cold).toBeNull();
      expect(model.state).toBe('starting');
      says(true, answer());
      expect(model.state).toBe('hidden');
    });

    it('can be cancelled while it is paused again, and stays paused', async () => {
      await wait();
      const answered = model.startOn('l4');
      await clock.pass(0);
      expect(model.cold?.cancellable).toBe(true);
      model.cold?.cancel();
      expect((await answered)?.code).toBe('cold_cancelled');
      expect(done).toEqual(['pause']);
      door.says('paused');
      await clock.pass(20_000);
      expect(model.state).toBe('paused');
    });

    it.each([
      [new DoorError('door_forbidden', '', 403), 'size_forbidden'],
      [new DoorError('door_refused', 'not mountable', 422), 'door_refused']
    ])('says why not, and can be resumed as it was: %#', async (why, code) => {
      await wait();
      refusal = why;
      const answered = model.startOn('l4');
      await clock.pass(0);
      door.says('paused');
      const { asks } = door;
      await clock.pass(20_000);
      expect((await answered)?.code).toBe(code);
      expect(door.asks).toBe(asks);
      expect(model.state).toBe('paused');
      expect(model.canResume).toBe(true);
    });

    it('does not wait for ever', async () => {
      await wait();
      const answered = model.startOn('l4');
      await clock.pass(660_000);
      expect((await answered)?.code).toBe('cold_overdue');
      expect(done).toEqual(['pause']);
    });

    it('is not offered where the owner offers nothing', async () => {
      await pause();
      await expect(model.sizes()).rejects.toThrow('door_not_found');
      expect(await model.startOn('l4')).toBeNull();
    });
  });
});
