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
            <th scope="col">{trans.__('Size')}</th>
            <th scope="col">{trans.__('What happens to it')}</th>
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
  return (
    <>
      <tr data-fate={item.fate}>
        <th scope="row">
          <span className="jp-Pause-itemName" title={item.name}>
            {item.name}
          </span>
        </th>
        <td className="jp-Pause-size">
          {formatSize(item.bytes, item.complete, trans)}
        </td>
        <td>
          <span className="jp-Pause-fate" data-fate={item.fate}>
            {fateName(item.fate, trans)}
          </span>
        </td>
      </tr>
      {(item.type || reason) && (
        <tr className="jp-Pause-itemDetail">
          <td colSpan={3}>
            {item.type && <span className="jp-Pause-type">{item.type}</span>}
            {reason && <span className="jp-Pause-reason">{reason}</span>}
          </td>
        </tr>
      )}
    </>
  );
}
