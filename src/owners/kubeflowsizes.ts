/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IDoorSizes, ISize } from './door';
import { DoorError } from './door';
import type { KubeflowBackend } from './kubeflowbackend';

/**
 * How often a change is tried on fresh state when others change the Workspace at the same time.
 */
const TRIES = 5;

/**
 * What a Workspace may be started on: the pod sizes (`podConfig`) that its kind offers.
 *
 * Facts (kubeflow/notebooks, branch notebooks-v2, workspaces/backend): `PUT workspaces/{namespace}/{name}` takes what GET
 * answered, and 409 says that its `revision` is old. `POST workspacekinds/{kind}/podtemplate/options/listvalues` lists what may be
 * chosen in a namespace; `GET workspacekinds/{kind}` lists it too, for who may read kinds but not create Workspaces.
 */
export class KubeflowSizes implements IDoorSizes {
  /**
   * Construct a new client.
   */
  constructor(backend: KubeflowBackend) {
    this._backend = backend;
  }

  /** The sizes of its kind that are neither hidden nor denied, without its own. */
  async list(): Promise<ISize[]> {
    const { listPath, name } = this._backend;
    const listed = await this._backend.call('GET', listPath);
    const item = array<IItem>(listed).find(each => each.name === name);
    const kind = item?.workspaceKind?.name;
    if (typeof kind !== 'string') {
      throw new DoorError('door_not_found');
    }
    const options = item?.podTemplate?.options;
    const values = await this._values(
      kind,
      text(options?.imageConfig?.current?.id)
    );
    const current = text(options?.podConfig?.current?.id);
    return values
      .filter(
        ({ id, hidden, restrictions }) =>
          typeof id === 'string' &&
          id !== current &&
          hidden !== true &&
          restrictions?.deny !== true
      )
      .map(value => ({
        id: String(value.id),
        name: text(value.displayName) || String(value.id),
        about: aboutOf(value)
      }));
  }

  /** Take the resume back. Without a pod that runs this goes through at once. */
  async pauseAgain(): Promise<void> {
    const { path } = this._backend;
    try {
      const answer = await this._backend.call('POST', `${path}/actions/pause`, {
        data: { paused: true }
      });
      if ((answer as { paused?: unknown } | null)?.paused !== true) {
        // The add-on holds it back: a pod runs, and its memory is written to a snapshot first.
        throw new DoorError('cold_runs');
      }
    } catch (error) {
      // 409: it is paused already.
      if (!(error instanceof DoorError) || error.status !== 409) {
        throw error;
      }
    }
  }

  /** Change the size, and nothing else, of a Workspace that is paused. */
  async choose(size: string): Promise<void> {
    for (let left = TRIES; ; left -= 1) {
      try {
        return await this._choose(size);
      } catch (error) {
        const stale = error instanceof DoorError && error.status === 409;
        if (!stale || left <= 1) {
          throw error;
        }
      }
    }
  }

  private async _choose(size: string): Promise<void> {
    const { path } = this._backend;
    const found = (await this._backend.call('GET', path)) as IUpdate;
    if (found.paused !== true) {
      // A change of what runs would end its pod.
      throw new DoorError('cold_runs');
    }
    const { podTemplate } = found;
    if (podTemplate.options.podConfig === size) {
      return;
    }
    await this._backend.call('PUT', path, {
      data: {
        ...found,
        podTemplate: {
          ...podTemplate,
          options: { ...podTemplate.options, podConfig: size }
        }
      }
    });
  }

  private async _values(kind: string, image: string): Promise<IValue[]> {
    const { namespace, root } = this._backend;
    const path = `${root}/workspacekinds/${encodeURIComponent(kind)}`;
    try {
      const listed = (await this._backend.call(
        'POST',
        `${path}/podtemplate/options/listvalues`,
        {
          data: {
            context: {
              namespace: { name: namespace },
              ...(image ? { imageConfig: { id: image } } : {})
            }
          }
        }
      )) as IOptions | null;
      return array(listed?.podConfig?.values);
    } catch (error) {
      // Older backends lack it, and it takes the right to create Workspaces.
      const other =
        error instanceof DoorError &&
        [403, 404, 405].includes(error.status ?? 0);
      if (!other) {
        throw error;
      }
    }
    const whole = (await this._backend.call('GET', path)) as {
      podTemplate?: { options?: IOptions };
    } | null;
    return array(whole?.podTemplate?.options?.podConfig?.values);
  }

  private readonly _backend: KubeflowBackend;
}

/** What can be edited of a Workspace; sent back as it came, but for the size. */
interface IUpdate {
  readonly paused?: unknown;
  readonly podTemplate: {
    readonly options: { readonly podConfig?: unknown };
  };
}

interface IChosen {
  readonly current?: { readonly id?: unknown };
}

/** What is read of an item of the list of Workspaces; all of it may be missing. */
interface IItem {
  readonly name?: unknown;
  readonly workspaceKind?: { readonly name?: unknown };
  readonly podTemplate?: {
    readonly options?: {
      readonly imageConfig?: IChosen;
      readonly podConfig?: IChosen;
    };
  };
}

interface IOptions {
  readonly podConfig?: { readonly values?: unknown };
}

interface IValue {
  readonly id?: unknown;
  readonly displayName?: unknown;
  readonly description?: unknown;
  readonly labels?: unknown;
  readonly hidden?: unknown;
  readonly restrictions?: { readonly deny?: unknown };
}

/** The platform's words: the description, and the labels, which usually say how much of what it has. */
function aboutOf(value: IValue): string {
  const labels = array<{ key?: unknown; value?: unknown }>(value.labels)
    .filter(label => text(label.key) && text(label.value))
    .map(label => `${text(label.key)}: ${text(label.value)}`);
  return [text(value.description), labels.join(', ')]
    .filter(part => part)
    .join('; ');
}

function array<T>(value: unknown): T[] {
  return Array.isArray(value)
    ? (value.filter(item => typeof item === 'object' && item) as T[])
    : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
