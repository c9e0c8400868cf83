/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import type {
  Checkpoint,
  Inventory,
  InventoryItem,
  KernelRow
} from '../api/records';
import { documentContextOf } from '../documents';
import { formatBytes, localeOf } from '../format';
import { pausedIcon } from '../icons';
import type { IPauseActions } from '../tokens';
import { hasProcess } from '../view';
import { ItemTable } from './items';
import { Kept } from './kept';
import { LossList } from './losses';
import type { PanelModel } from './model';
import { PausedReport } from './paused';
import { ResumedReport } from './resumed';
import { Section } from './section';
import { Summary } from './summary';
import { WorkspaceSections } from './workspace';

/**
 * The side panel "What will be restored".
 */
export class PausePanel extends ReactWidget {
  /**
   * Construct a new panel; it owns the model.
   */
  constructor(options: PausePanel.IOptions) {
    super();
    this._options = options;
    this.id = 'jp-pause-panel';
    this.addClass('jp-Pause-panel');
    this.title.icon = pausedIcon;
    this.title.caption = options.trans.__('What will be restored');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', this.title.caption);
  }

  /** Let go of the model. */
  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.model.dispose();
    super.dispose();
  }

  /** Kernels are asked only while somebody looks. */
  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._options.model.visible = true;
  }

  /** Nobody looks any more. */
  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._options.model.visible = false;
  }

  /** The panel may be attached visible. */
  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._options.model.visible = this.isVisible;
  }

  /** Render the panel. */
  protected override render(): JSX.Element {
    return (
      <UseSignal signal={this._options.model.changed}>
        {() => this._content()}
      </UseSignal>
    );
  }

  private _content(): JSX.Element {
    const { model, actions, open, trans } = this._options;
    const { inventory, manager, row } = model;
    const live = hasProcess(row);
    const checkpoint =
      manager.checkpoints?.find(item => item.id === row?.checkpoint?.id) ??
      null;
    return (
      <div className="jp-Pause-panelBody">
        <h2 className="jp-Pause-panelTitle">
          {trans.__('What will be restored')}
        </h2>
        <Summary model={model} actions={actions} trans={trans} />
        <WorkspaceSections
          manager={manager}
          actions={actions}
          away={model.away}
          trans={trans}
        />
        {row && !live && row.checkpoint && (
          <PausedSections row={row} checkpoint={checkpoint} trans={trans} />
        )}
        {row?.last_resume && live && (
          <Section
            key="resumed"
            title={trans.__('The last resume')}
            open={row.state === 'ready'}
          >
            <ResumedReport report={row.last_resume} trans={trans} />
          </Section>
        )}
        {row && live && inventory && (
          <LiveSections
            inventory={inventory}
            unsaved={this._unsaved()}
            trans={trans}
          />
        )}
        <Section
          key="kept"
          title={trans.__('Kept on disk')}
          count={
            manager.checkpoints === null
              ? undefined
              : String(manager.checkpoints.length)
          }
        >
          <Kept manager={manager} actions={actions} open={open} trans={trans} />
        </Section>
      </div>
    );
  }

  /** Whether the document of the session has unsaved changes in this page; null when it has no document. */
  private _unsaved(): boolean | null {
    const { widget } = this._options.model.session;
    const context = widget ? documentContextOf(widget) : null;
    return context ? context.model.dirty : null;
  }

  private readonly _options: PausePanel.IOptions;
}

/**
 * A namespace for `PausePanel` statics.
 */
export namespace PausePanel {
  /**
   * The instantiation options.
   */
  export interface IOptions {
    /** What to show. */
    model: PanelModel;

    /** What can be done. */
    actions: IPauseActions;

    /** Open a document. */
    open: (path: string) => void;

    /** The translations. */
    trans: TranslationBundle;
  }
}

/**
 * What a running kernel holds, and what happens to it: losses first.
 */
function LiveSections(props: {
  inventory: Inventory;
  unsaved: boolean | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { inventory, unsaved, trans } = props;
  const { losses } = inventory;
  const size = (items: Inventory['ram']) => {
    const known = items.reduce((sum, item) => sum + (item.bytes ?? 0), 0);
    return known > 0 ? formatBytes(known, localeOf(trans)) : undefined;
  };
  return (
    <>
      <Section
        key="losses"
        title={
          inventory.snapshot?.usable
            ? trans.__('Will not come back by the checkpoint alone')
            : trans.__('Will not come back')
        }
        count={String(losses.length)}
      >
        {losses.length > 0 ? (
          <LossList losses={losses} trans={trans} />
        ) : (
          <p className="jp-Pause-none">
            {inventory.complete
              ? trans.__('Nothing that was found would be lost.')
              : trans.__(
                  'Nothing found so far would be lost; not everything was looked at yet.'
                )}
          </p>
        )}
      </Section>
      <Section key="files" title={trans.__('Files')}>
        <ItemTable
          items={inventory.documents.map(item =>
            documentItem(item, unsaved, trans)
          )}
          caption={trans.__('Open documents')}
          trans={trans}
        />
        <ItemTable
          items={inventory.files}
          caption={trans.__('Files and folders')}
          trans={trans}
        />
        <Empty
          show={inventory.documents.length + inventory.files.length === 0}
          text={trans.__('No open file was found.')}
        />
      </Section>
      <Section key="ram" title={trans.__('RAM')} count={size(inventory.ram)}>
        <ItemTable
          items={inventory.ram}
          caption={trans.__('Variables')}
          trans={trans}
        />
        <ItemTable
          items={inventory.processes}
          caption={trans.__('Processes and threads')}
          trans={trans}
        />
        <ItemTable
          items={inventory.connections}
          caption={trans.__('Open connections')}
          trans={trans}
        />
        <Empty
          show={
            inventory.ram.length +
              inventory.processes.length +
              inventory.connections.length ===
            0
          }
          text={trans.__('The kernel holds no variables.')}
        />
      </Section>
      <Section key="vram" title={trans.__('VRAM')} count={size(inventory.vram)}>
        <ItemTable
          items={inventory.vram}
          caption={trans.__('On the GPU')}
          trans={trans}
        />
        <Empty show={inventory.vram.length === 0} text={trans.__('No GPU.')} />
      </Section>
    </>
  );
}

/**
 * The server knows what is on disk; only this page knows what was typed since.
 */
function documentItem(
  item: InventoryItem,
  unsaved: boolean | null,
  trans: TranslationBundle
): InventoryItem {
  if (unsaved === null || item.reason !== 'saved_state_only') {
    return item;
  }
  return {
    ...item,
    reason: unsaved
      ? trans.__('has unsaved changes; saved before the pause begins')
      : trans.__('saved')
  };
}

/**
 * What is kept of a paused kernel.
 */
function PausedSections(props: {
  row: KernelRow;
  checkpoint: Checkpoint | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { row, checkpoint, trans } = props;
  return (
    <>
      <Section key="paused" title={trans.__('What is kept')}>
        <PausedReport row={row} trans={trans} />
        {checkpoint && (
          <ItemTable
            items={checkpoint.variables.map(variable => ({
              ...variable,
              complete: true,
              details: {}
            }))}
            caption={trans.__('Variables in the checkpoint')}
            trans={trans}
          />
        )}
        {checkpoint && checkpoint.not_stored.length > 0 && (
          <p>
            {trans.__(
              'Not stored, because they look like credentials: %1',
              checkpoint.not_stored
                .map(item => String(item.name ?? ''))
                .join(', ')
            )}
          </p>
        )}
      </Section>
      {checkpoint && checkpoint.losses.length > 0 && (
        <Section
          key="paused-losses"
          title={trans.__('Will not come back')}
          count={String(checkpoint.losses.length)}
        >
          <LossList losses={checkpoint.losses} trans={trans} />
        </Section>
      )}
    </>
  );
}

function Empty(props: { show: boolean; text: string }): JSX.Element | null {
  return props.show ? <p className="jp-Pause-none">{props.text}</p> : null;
}
