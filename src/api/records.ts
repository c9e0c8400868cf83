/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { components } from './types';

type Schemas = components['schemas'];

/** What everybody sees of a kernel. */
export type State = Schemas['State'];

/** The step inside an "-ing" state. */
export type Phase = Schemas['Phase'];

/** How a resume ended. */
export type Outcome = Schemas['Outcome'];

/** What happens to a thing in the panel. */
export type Fate = Schemas['Fate'];

/** A stable code with its parameters. */
export type Reason = Schemas['Reason'];

/** Something that will not come back. */
export type Loss = Schemas['Loss'];

/** Something that is not the same as when the checkpoint was written. */
export type Difference = Schemas['Difference'];

/** One line of the panel. */
export type InventoryItem = Schemas['InventoryItem'];

/** What will be restored, for one kernel. */
export type Inventory = Schemas['Inventory'];

/** Whether a pause of this kernel would take an exact snapshot. */
export type SnapshotOutlook = Schemas['SnapshotOutlook'];

/** What an operation waits for. */
export type Question = Schemas['Question'];

/** A pause or a resume. */
export type Operation = Schemas['Operation'];

/** How the last resume of a kernel ended. */
export type ResumeReport = Schemas['ResumeReport'];

/** What the last pause of a kernel gave back. */
export type ShadowReport = Schemas['ShadowReport'];
export type DeviceMemory = Schemas['DeviceMemory'];
export type PauseReport = Schemas['PauseReport'];

/** Output that no page received. */
export type MissedOutput = Schemas['MissedOutput'];

/** A kernel, or a paused session without one. */
export type KernelRow = Schemas['KernelRow'];

/** What a stop of the server kept. */
export type StopReport = Schemas['StopReport'];

/** What became of one kernel then. */
export type StoppedKernel = Schemas['StoppedKernel'];

/** The answer of `GET state`. */
export type ServerState = Schemas['ServerState'];

/** A checkpoint on disk. */
export type Checkpoint = Schemas['Checkpoint'];

/** The body of every error. */
export type ApiErrorBody = Schemas['ApiError'];

/** The body of `POST resume`. */
export type ResumeRequest = Schemas['ResumeRequest'];

/** The body of `POST documents`. */
export type DocumentsSaved = Schemas['DocumentsSaved'];

/** Whether a pause goes on although something is lost. */
export type OnLoss = NonNullable<Schemas['PauseRequest']['on_loss']>;

/** What a pause does with a kernel that runs a cell. */
export type WhenBusy = NonNullable<Schemas['PauseRequest']['when_busy']>;
