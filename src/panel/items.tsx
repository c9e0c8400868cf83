/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useState } from 'react';

import type { Fate, InventoryItem } from '../api/records';
import { formatSize } from '../format';
import { fateName } from '../messages';
import { reasonSentence } from '../reasons';

/**
 * Rows shown before the rest has to be asked for.
 */
const FIRST = 40;

/**
 * What is shown first: what is at risk.
 */
const ORDER: Fate[] = [
  'lost',
  'unknown',
  'rebuilt',
  'outside',
  'in checkpoint',
  'in snapshot',
  'kept'
];

/**
 * A table of things with their size and fate, losses first, then by size.
 */
export function ItemTable(props: {
  items: readonly InventoryItem[];
  caption: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { items, caption, trans } = props;
  const [all, setAll] = useState(false);
  if (items.length === 0) {
    return null;
  }
  const sorted = sortItems(items);
  const shown = all ? sorted : sorted.slice(0, FIRST);
  return (
    <>
      <table className="jp-Pause-table jp-Pause-items">
        <caption>{caption}</caption>
        <thead className="jp-Pause-visuallyHidden">
          <tr>
            <th scope="col">{trans.__('Name')}</th>
            <th scope="col">{trans.__('Size, then what happens to it')}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((item, index) => (
            <ItemRow key={`${item.name}-${index}`} item={item} trans={trans} />
          ))}
        </tbody>
      </table>
      {shown.length < sorted.length && (
        <button
          type="button"
          className="jp-Pause-link"
          onClick={() => setAll(true)}
        >
          {trans._n(
            'Show %1 more',
            'Show %1 more',
            sorted.length - shown.length
          )}
        </button>
      )}
    </>
  );
}

/**
 * Losses first, then by size, then by name.
 */
export function sortItems(items: readonly InventoryItem[]): InventoryItem[] {
  return [...items].sort(
    (a, b) =>
      ORDER.indexOf(a.fate) - ORDER.indexOf(b.fate) ||
      (b.bytes ?? 0) - (a.bytes ?? 0) ||
      a.name.localeCompare(b.name)
  );
}

function ItemRow(props: {
  item: InventoryItem;
  trans: TranslationBundle;
}): JSX.Element {
  const { item, trans } = props;
  const reason = item.reason ? reasonSentence(item.reason, trans) : null;
  const note = placeNote(item, trans);
  // A folder is kept where it is: what lies in it is not counted.
  const size = Array.isArray(item.details.uses)
    ? ''
    : formatSize(item.bytes, item.complete, trans);
  return (
    <>
      <tr>
        <th scope="row" colSpan={size ? 1 : 2}>
          <span className="jp-Pause-itemName" title={item.name}>
            {item.name}
          </span>
        </th>
        {size && <td className="jp-Pause-size">{size}</td>}
      </tr>
      <tr className="jp-Pause-itemDetail">
        <td colSpan={2}>
          <span className="jp-Pause-fate" data-fate={item.fate}>
            {item.with_snapshot && item.with_snapshot !== item.fate
              ? trans.__(
                  '%1; by the checkpoint alone: %2',
                  fateName(item.with_snapshot, trans),
                  fateName(item.fate, trans)
                )
              : fateName(item.fate, trans)}
          </span>
          {item.type && <span className="jp-Pause-type">{item.type}</span>}
          {note && <span className="jp-Pause-type">{note}</span>}
          {reason && <span className="jp-Pause-reason">{reason}</span>}
        </td>
      </tr>
    </>
  );
}

/**
 * What a folder or file is for, and on what kind of storage it lies.
 */
export function placeNote(
  item: InventoryItem,
  trans: TranslationBundle
): string | null {
  const uses = Array.isArray(item.details.uses) ? item.details.uses : [];
  const parts = uses.map(use => useName(String(use), trans));
  if (typeof item.details.storage === 'string') {
    parts.push(storageName(item.details.storage, trans));
  }
  return parts.length > 0 ? parts.join(', ') : null;
}

function useName(use: string, trans: TranslationBundle): string {
  switch (use) {
    case 'notebook folder':
      return trans.__('notebook folder');
    case 'home':
      return trans.__('home folder');
    case 'checkpoint folder':
      return trans.__('checkpoint folder');
    case 'environment':
      return trans.__('environment of the kernel');
    default:
      return use;
  }
}

function storageName(storage: string, trans: TranslationBundle): string {
  switch (storage) {
    case 'persistent':
      return trans.__('persistent storage');
    case 'temporary':
      return trans.__('temporary storage');
    case 'network':
      return trans.__('network storage');
    case 'object store':
      return trans.__('object store');
    default:
      return trans.__('unknown storage');
  }
}
