/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';

import type { IPauseOptions } from './api/client';
import type {
  Checkpoint,
  DocumentsSaved,
  Inventory,
  KernelRow,
  Operation,
  ResumeRequest,
  ServerState
} from './api/records';

/**
 * The text domain of our translations.
 */
export const TRANSLATION_DOMAIN = 'jupyter_pause';

/**
 * The ids of our commands.
 */
export namespace CommandIDs {
  /** Pause the current, or the named, kernel. */
  export const pause = 'jupyter-pause:pause';

  /** Resume the current, or the named, kernel. */
  export const resume = 'jupyter-pause:resume';

  /** Pause the whole workspace. */
  export const pauseWorkspace = 'jupyter-pause:pause-workspace';

  /** Pause every kernel that can be paused. */
  export const pauseAll = 'jupyter-pause:pause-all';

  /** Show what will be restored. */
  export const showPanel = 'jupyter-pause:show-panel';

  /** Cancel the operation of the current, or the named, kernel. */
  export const cancel = 'jupyter-pause:cancel';

  /** Delete a checkpoint for good. */
  export const deleteCheckpoint = 'jupyter-pause:delete-checkpoint';

  /** Resume a checkpoint that no session holds. */
  export const resumeCheckpoint = 'jupyter-pause:resume-checkpoint';

  /** Shut the server down and keep what is paused. */
  export const shutDown = 'jupyter-pause:shut-down';

  /** Run the cells that a pause kept from running. */
  export const runRemaining = 'jupyter-pause:run-remaining';
}

/**
 * How far the server part can be reached.
 *
 * `starting` nothing asked yet; `ready` the last answer is good; `missing` the server extension is not
 * there; `forbidden` we may not ask; `unreachable` the last call had no answer.
 */
export type Availability =
  'starting' | 'ready' | 'missing' | 'forbidden' | 'unreachable';

/**
 * A change of one kernel's row.
 */
export interface IKernelChange {
  /** The row before, or null when there was none. */
  readonly previous: KernelRow | null;

  /** The row now, or null when it is gone. */
  readonly row: KernelRow | null;
}

/**
 * A server's wish that open documents be saved before a pause.
 */
export interface IDocumentsRequest {
  /** The id to answer with. */
  readonly request: string;

  /** The kernels about to be paused. */
  readonly kernels: readonly string[];

  /** Seconds to answer. */
  readonly timeout: number;
}

/**
 * The live state of everything that can be paused, and the calls that change it.
 */
export interface IPauseManager extends IDisposable {
  /** How far the server part can be reached. */
  readonly availability: Availability;

  /** The last known state, or null. It is stale when `availability` is not `ready`. */
  readonly state: ServerState | null;

  /** When the last good answer came (milliseconds since the epoch), or null. */
  readonly answeredAt: number | null;

  /** The checkpoints on disk, newest first, or null when never read. */
  readonly checkpoints: readonly Checkpoint[] | null;

  /** All operations seen since the page was loaded. */
  readonly operations: readonly Operation[];

  /** Emitted after any change. */
  readonly changed: ISignal<IPauseManager, void>;

  /** Emitted when the row of one kernel changes. */
  readonly kernelChanged: ISignal<IPauseManager, IKernelChange>;

  /** Emitted when an operation begins, moves or ends. */
  readonly operationChanged: ISignal<IPauseManager, Operation>;

  /** Emitted when the server part becomes reachable, or stops being so. */
  readonly availabilityChanged: ISignal<IPauseManager, Availability>;

  /** Emitted when the server asks for open documents to be saved. */
  readonly documentsRequested: ISignal<IPauseManager, IDocumentsRequest>;

  /** Resolves after the first attempt to read the state, good or not. */
  readonly ready: Promise<void>;

  /** The row of a kernel, or null. */
  row(kernel: string | null | undefined): KernelRow | null;

  /** An operation by its id, or null. */
  operation(id: string | null | undefined): Operation | null;

  /** The operation that works on a kernel now, or null. */
  operationOf(kernel: string): Operation | null;

  /** The newest usable checkpoint of a notebook that no known session holds, or null. */
  unattachedFor(path: string): Checkpoint | null;

  /** Ask the server for its state now. */
  refresh(): Promise<void>;

  /** Ask the server if it has not told about one of these kernels yet. */
  expect(kernels: Iterable<string>): void;

  /** Ask the server for its checkpoints now. */
  refreshCheckpoints(): Promise<void>;

  /** What will be restored; `wait` seconds for a complete scan. */
  inventory(kernel: string, wait?: number): Promise<Inventory>;

  /** Begin a pause. */
  pause(options: IPauseOptions): Promise<Operation>;

  /** Begin a resume. */
  resume(request: ResumeRequest): Promise<Operation>;

  /** Answer an operation's question. */
  decide(id: string, decision: 'accept' | 'refuse'): Promise<Operation>;

  /** Cancel an operation. */
  cancel(id: string): Promise<Operation>;

  /** Delete a checkpoint for good. */
  deleteCheckpoint(id: string, force: boolean): Promise<void>;

  /** Say which documents were saved. */
  documentsSaved(body: DocumentsSaved): Promise<void>;

  /** Resolves with an operation once it has ended or asks something. */
  settled(id: string): Promise<Operation>;
}

/**
 * The token of the live state.
 */
export const IPauseManager = new Token<IPauseManager>(
  'jupyter-pause:IPauseManager',
  'The live state of paused and pausable kernels, and the calls that change it.'
);

/**
 * What a person can do, with the questions that belong to it.
 */
export interface IPauseActions {
  /** Pause kernels (null: all that can be paused); asks where something would be lost. */
  pause(kernels: string[] | null): Promise<Operation | null>;

  /** Pause the whole workspace; asks where something would be lost. */
  pauseWorkspace(): Promise<Operation | null>;

  /** Resume a kernel; asks where the environment differs. */
  resume(kernel: string): Promise<Operation | null>;

  /** Resume a checkpoint, for a notebook path if one is given. */
  resumeCheckpoint(
    checkpoint: string,
    path?: string | null
  ): Promise<Operation | null>;

  /** Answer the question an operation waits for. */
  answer(operation: Operation): Promise<void>;

  /** Cancel an operation. */
  cancel(operation: string): Promise<void>;

  /** Delete a checkpoint after asking. */
  deleteCheckpoint(checkpoint: string): Promise<boolean>;

  /** Whether this page began the operation. */
  beganHere(operation: string): boolean;
}

/**
 * The token of the actions.
 */
export const IPauseActions = new Token<IPauseActions>(
  'jupyter-pause:IPauseActions',
  'Pause and resume with the questions that belong to them.'
);
