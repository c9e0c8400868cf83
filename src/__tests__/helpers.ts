/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Event } from '@jupyterlab/services';
import { Stream } from '@lumino/signaling';

import type { IPauseClient, IPauseOptions } from '../api/client';
import { PauseApiError } from '../api/client';
import type {
  Checkpoint,
  DocumentsSaved,
  Inventory,
  KernelRow,
  Operation,
  ResumeRequest,
  ServerState
} from '../api/records';

const TIME = '2026-11-30T10:00:00.000Z';

/** A row of a running kernel. */
export function row(changes: Partial<KernelRow> = {}): KernelRow {
  return {
    id: 'k1',
    name: 'python3',
    path: 'work/a.ipynb',
    state: 'running',
    phase: null,
    since: TIME,
    checkpoint: null,
    outcome: null,
    pausable: true,
    reason: null,
    operation: null,
    last_resume: null,
    last_pause: null,
    aborted_cells: [],
    aborted_notebook_cells: [],
    missed_output: null,
    ...changes
  };
}

/** The state of a server with some kernels. */
export function state(
  revision: number,
  kernels: KernelRow[] = [row()],
  operation: Operation | null = null
): ServerState {
  return {
    revision,
    state: kernels[0]?.state ?? 'running',
    phase: null,
    since: TIME,
    mode: 'local',
    scope: 'kernel',
    reason: null,
    owner: 'local',
    workspace: null,
    can_pause: true,
    blocked_by: [],
    counts: {},
    kernels,
    operation,
    last_resume: null,
    last_stop: null,
    on_exit: 'discard'
  };
}

/** A pause that runs. */
export function operation(changes: Partial<Operation> = {}): Operation {
  return {
    id: 'op1',
    kind: 'pause',
    scope: 'kernel',
    kernels: ['k1'],
    state: 'running',
    phase: 'saving',
    started: TIME,
    elapsed: 1,
    bytes_done: 0,
    bytes_total: null,
    cancellable: true,
    question: null,
    error: null,
    cause: 'user',
    checkpoint: null,
    outcome: null,
    ...changes
  };
}

/** A good checkpoint. */
export function checkpoint(changes: Partial<Checkpoint> = {}): Checkpoint {
  return {
    id: 'c1',
    created: TIME,
    kernel_id: 'gone',
    kernel_name: 'python3',
    path: 'work/a.ipynb',
    cause: 'user',
    bytes: 2048,
    signature_ok: true,
    damaged: null,
    in_use: false,
    python: {},
    packages: {},
    variables: [],
    losses: [],
    not_stored: [],
    ...changes
  };
}

/** A refusal of the server. */
export function refusal(
  code: string,
  status = 409,
  more: Partial<PauseApiError['body']> = {}
): PauseApiError {
  return new PauseApiError(
    { code, message: code, params: {}, ...more },
    status
  );
}

/**
 * A REST interface whose answers a test sets. Each answer is a value or an error.
 */
export class ScriptedClient implements IPauseClient {
  stateAnswer: ServerState | PauseApiError = state(1);
  operations = new Map<string, Operation>();
  checkpointsAnswer: Checkpoint[] = [];
  pauseAnswers: (Operation | PauseApiError)[] = [];
  resumeAnswers: (Operation | PauseApiError)[] = [];
  inventoryAnswer: Inventory | PauseApiError = refusal('kernel_not_found', 404);
  calls: [string, ...unknown[]][] = [];

  state(): Promise<ServerState> {
    this.calls.push(['state']);
    return settle(this.stateAnswer);
  }

  inventory(kernel: string, wait?: number): Promise<Inventory> {
    this.calls.push(['inventory', kernel, wait]);
    return settle(this.inventoryAnswer);
  }

  pause(options: IPauseOptions): Promise<Operation> {
    this.calls.push(['pause', options]);
    return settle(this.pauseAnswers.shift() ?? operation());
  }

  resume(request: ResumeRequest): Promise<Operation> {
    this.calls.push(['resume', request]);
    return settle(
      this.resumeAnswers.shift() ?? operation({ kind: 'resume', id: 'op2' })
    );
  }

  operation(id: string): Promise<Operation> {
    this.calls.push(['operation', id]);
    return settle(
      this.operations.get(id) ?? refusal('operation_not_found', 404)
    );
  }

  decide(id: string, decision: 'accept' | 'refuse'): Promise<Operation> {
    this.calls.push(['decide', id, decision]);
    return settle(operation({ id }));
  }

  cancel(id: string): Promise<Operation> {
    this.calls.push(['cancel', id]);
    return settle(operation({ id, state: 'cancelled' }));
  }

  checkpoints(): Promise<Checkpoint[]> {
    this.calls.push(['checkpoints']);
    return Promise.resolve(this.checkpointsAnswer);
  }

  deleteCheckpoint(id: string, force: boolean): Promise<void> {
    this.calls.push(['deleteCheckpoint', id, force]);
    return Promise.resolve();
  }

  documentsSaved(body: DocumentsSaved): Promise<void> {
    this.calls.push(['documentsSaved', body]);
    return Promise.resolve();
  }

  /** How often a call was made. */
  count(name: string): number {
    return this.calls.filter(([call]) => call === name).length;
  }
}

function settle<T>(answer: T | PauseApiError): Promise<T> {
  return answer instanceof PauseApiError
    ? Promise.reject(answer)
    : Promise.resolve(answer);
}

/** A server's event stream that a test emits on. */
export class Events {
  readonly stream = new Stream<object, Event.Emission>({});

  /** Emit one of our events. */
  emit(kind: string, data: Record<string, unknown>): void {
    this.stream.emit({
      schema_id: `https://events.jupyter.org/jupyter_pause/${kind}/v1`,
      ...data
    } as Event.Emission);
  }
}

/** Wait until something holds; fails after a generous limit. */
export async function until(test: () => boolean, limit = 5000): Promise<void> {
  const end = Date.now() + limit;
  while (!test()) {
    if (Date.now() > end) {
      throw new Error(`Never became true: ${test.toString()}`);
    }
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}
