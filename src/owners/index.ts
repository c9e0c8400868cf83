/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ResumeDoor } from '../api/workspace';
import type {
  DoorClientFactory,
  IDoorEnvironment,
  IResumeDoorClient
} from './door';
import { JupyterHubDoor } from './jupyterhub';
import { KubeflowDoor } from './kubeflow';
import { NoDoor } from './none';

export * from './door';

/**
 * The owners that can be asked from the browser.
 */
const DOORS: Record<ResumeDoor['kind'], DoorClientFactory> = {
  kubeflow: (door, environment) => new KubeflowDoor(door, environment),
  jupyterhub: (door, environment) => new JupyterHubDoor(door, environment),
  none: () => new NoDoor()
};

/**
 * The client for a door; one that only waits for the server where the door is of an unknown kind.
 */
export function openDoor(
  door: ResumeDoor,
  environment: IDoorEnvironment
): IResumeDoorClient {
  return (DOORS[door.kind] ?? DOORS.none)(door, environment);
}
