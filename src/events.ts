/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Event } from '@jupyterlab/services';

import type { Operation, Outcome, Phase, State } from './api/records';

/**
 * The events we listen to; the values are parts of their schema ids.
 */
export enum EventKind {
  /** A kernel's state changed. */
  state = 'state',
  /** An operation moved. */
  operation = 'operation',
  /** Open documents should be saved. */
  documents = 'documents'
}

/**
 * One change of a kernel's state.
 */
export interface IStateEvent {
  readonly kind: EventKind.state;
  readonly revision: number;
  readonly kernel: string | null;
  readonly state: State;
  readonly phase: Phase | null;
  readonly outcome: Outcome | null;
  readonly operation: string | null;
  readonly code: string | null;
}

/**
 * Progress of an operation.
 */
export interface IOperationEvent {
  readonly kind: EventKind.operation;
  readonly revision: number;
  readonly operation: string;
  readonly state: Operation['state'];
  readonly phase: Phase | null;
  readonly elapsed: number;
  readonly bytesDone: number;
  readonly bytesTotal: number | null;
  readonly cancellable: boolean | null;
}

/**
 * The wish that open documents be saved.
 */
export interface IDocumentsEvent {
  readonly kind: EventKind.documents;
  readonly revision: number;
  readonly request: string;
  readonly kernels: string[];
  readonly timeout: number;
}

/**
 * Any of our events.
 */
export type PauseEvent = IStateEvent | IOperationEvent | IDocumentsEvent;

const SCHEMA = /^https:\/\/events\.jupyter\.org\/jupyter_pause\/(\w+)\/v1$/;

/**
 * Read one of our events from the stream; null for everybody else's, and for one that is not whole.
 */
export function readEvent(emission: Event.Emission): PauseEvent | null {
  const kind = SCHEMA.exec(emission.schema_id)?.[1];
  const data = emission as Record<string, unknown>;
  const revision = data.revision;
  if (typeof revision !== 'number') {
    return null;
  }
  switch (kind) {
    case EventKind.state:
      return {
        kind: EventKind.state,
        revision,
        kernel: text(data.kernel_id),
        state: (text(data.state) ?? 'unknown') as State,
        phase: text(data.phase) as Phase | null,
        outcome: text(data.outcome) as Outcome | null,
        operation: text(data.operation),
        code: text(data.code)
      };
    case EventKind.operation:
      return {
        kind: EventKind.operation,
        revision,
        operation: text(data.operation) ?? '',
        state: (text(data.state) ?? 'running') as Operation['state'],
        phase: text(data.phase) as Phase | null,
        elapsed: number(data.elapsed) ?? 0,
        bytesDone: number(data.bytes_done) ?? 0,
        bytesTotal: number(data.bytes_total),
        cancellable:
          typeof data.cancellable === 'boolean' ? data.cancellable : null
      };
    case EventKind.documents:
      return {
        kind: EventKind.documents,
        revision,
        request: text(data.request) ?? '',
        kernels: Array.isArray(data.kernels) ? data.kernels.map(String) : [],
        timeout: number(data.timeout) ?? 10
      };
    default:
      return null;
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function number(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
