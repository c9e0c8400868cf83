/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDoorView, IResumeDoorClient, ResumeAnswer } from './door';
import { DoorError } from './door';

/**
 * An owner without a web interface on this origin: a person runs the command, the tab waits for the server.
 */
export class NoDoor implements IResumeDoorClient {
  /** There is nothing to click. */
  readonly canResume = false;

  /** There is nobody to ask. */
  readonly canLook = false;

  /** There is nothing to choose. */
  readonly sizes = null;

  /** Nobody knows. */
  look(): Promise<IDoorView> {
    return Promise.resolve({ state: 'unknown', reason: null });
  }

  /** Never offered. */
  resume(): Promise<ResumeAnswer> {
    return Promise.reject(new DoorError('door_not_found'));
  }

  /** Nothing was opened. */
  back(): void {
    return;
  }
}
