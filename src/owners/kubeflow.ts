/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { Reason } from '../api/records';
import type { ResumeDoor } from '../api/workspace';
import type {
  IDoorEnvironment,
  IDoorSizes,
  IDoorView,
  IResumeDoorClient,
  ResumeAnswer
} from './door';
import { DoorError } from './door';
import { KubeflowBackend } from './kubeflowbackend';
import { KubeflowSizes } from './kubeflowsizes';

/**
 * Kubeflow Workspaces: its backend serves the same origin as the notebook tab, behind the same login.
 *
 * Facts (kubeflow/notebooks, branch notebooks-v2, workspaces/backend): `GET workspaces/{namespace}/{name}` answers what
 * can be edited, with `paused` but *without* the state; the state is in the items of `GET workspaces/{namespace}`.
 * `POST .../actions/pause` needs `data.paused`, and answers 409 unless the Workspace is paused and in state Paused.
 */
export class KubeflowDoor implements IResumeDoorClient {
  /**
   * Construct a new client.
   */
  constructor(door: ResumeDoor, environment: IDoorEnvironment) {
    this._backend = new KubeflowBackend(door.api, environment);
    this.sizes = this._backend.available
      ? new KubeflowSizes(this._backend)
      : null;
  }

  /** Starts it on another machine; null where the backend cannot be asked. */
  readonly sizes: IDoorSizes | null;

  /** Whether a click on Resume does something. */
  get canResume(): boolean {
    return this._backend.available;
  }

  /** Whether the backend can be asked. */
  get canLook(): boolean {
    return this._backend.available;
  }

  /** Ask how it stands. */
  async look(): Promise<IDoorView> {
    return viewOf(await this._read());
  }

  /** Take the pause back; two at once are one. */
  async resume(): Promise<ResumeAnswer> {
    try {
      // An empty `data` would be read as false, too; say what is meant.
      await this._backend.call('POST', `${this._backend.path}/actions/pause`, {
        data: { paused: false }
      });
      return 'asked';
    } catch (error) {
      if (!(error instanceof DoorError) || error.code !== 'door_refused') {
        throw error;
      }
    }
    // Refused: somebody else was quicker, or the pause has not ended yet.
    return (await this._read()).paused === false ? 'joined' : 'not_yet';
  }

  /** Nothing was opened. */
  back(): void {
    return;
  }

  /** The item of the list, which has the state; what can be edited where the list is refused or lacks it. */
  private async _read(): Promise<IWorkspaceItem> {
    const { listPath, name, path } = this._backend;
    if (this._mayList) {
      try {
        const listed = await this._backend.call('GET', listPath);
        const items = Array.isArray(listed) ? (listed as unknown[]) : [];
        const found = items.find(
          item => (item as IWorkspaceItem | null)?.name === name
        );
        if (found) {
          return found as IWorkspaceItem;
        }
      } catch (error) {
        if (
          !(error instanceof DoorError) ||
          (error.code !== 'door_forbidden' && error.code !== 'door_not_found')
        ) {
          throw error;
        }
        this._mayList = false;
      }
    }
    return (await this._backend.call('GET', path)) as IWorkspaceItem;
  }

  private readonly _backend: KubeflowBackend;
  private _mayList = true;
}

/**
 * What we read of a Workspace; all of it may be missing.
 */
interface IWorkspaceItem {
  readonly name?: unknown;
  readonly paused?: unknown;
  readonly state?: unknown;
  readonly stateMessage?: unknown;
}

/**
 * The state of a Workspace as a person should see it.
 */
export function viewOf(item: IWorkspaceItem): IDoorView {
  const paused = item.paused === true;
  const detail = typeof item.stateMessage === 'string' ? item.stateMessage : '';
  switch (item.state) {
    case 'Paused':
      // The controller has not looked yet: the pod is asked for, and not there.
      return paused
        ? { state: 'paused', reason: null }
        : { state: 'starting', reason: null };
    case 'Terminating':
      return { state: 'pausing', reason: null };
    case 'Pending':
      return { state: paused ? 'pausing' : 'starting', reason: null };
    case 'Running':
    case 'Unknown':
      // Unknown: the pod runs but is not Ready; before a pause it is being frozen, after it is being restored.
      return paused
        ? { state: 'pausing', reason: null }
        : { state: 'running', reason: null };
    case 'Error':
      return paused ? { state: 'pausing', reason: null } : errorView(detail);
    default:
      // Only what can be edited was readable: `paused` alone.
      return paused
        ? { state: 'paused', reason: null }
        : {
            state: item.paused === false ? 'running' : 'unknown',
            reason: null
          };
  }
}

/**
 * The controller calls an unschedulable pod an error, although a node may be on its way. Its text is meant for people,
 * so only the two endings that waiting cannot cure are taken from it; everything else waits, with the text shown.
 */
function errorView(detail: string): IDoorView {
  const broken = /CrashLoopBackOff|ImagePullBackOff|ErrImagePull/.exec(detail);
  if (broken) {
    return {
      state: 'failed',
      reason: reason('pod_broken', detail, { why: broken[0] })
    };
  }
  return {
    state: 'waiting',
    reason: reason(
      /Multi-Attach|FailedAttachVolume/i.test(detail)
        ? 'volume_attached_elsewhere'
        : 'unschedulable',
      detail
    )
  };
}

function reason(
  code: string,
  detail: string,
  more: Record<string, unknown> = {}
): Reason {
  return {
    code,
    message: detail,
    params: detail ? { detail, ...more } : more
  };
}
