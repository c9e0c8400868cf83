/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { components } from './types';

type Schemas = components['schemas'];

/** How a workspace is brought back once its server is gone. */
export type ResumeDoor = Schemas['ResumeDoor'];

/** The whole pod, as its owner has it. */
export type WorkspaceRow = Schemas['WorkspaceRow'];

/** How a workspace came back. */
export type WorkspaceResumeReport = Schemas['WorkspaceResumeReport'];

/** What was compared inside one kernel after the workspace came back. */
export type KernelProof = Schemas['KernelProof'];

/** What a pause is about: one kernel, or the whole pod. */
export type Scope = NonNullable<Schemas['PauseRequest']['scope']>;
