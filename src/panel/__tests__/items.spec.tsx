/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { nullTranslator } from '@jupyterlab/translation';
import React from 'react';

import { until } from '../../__tests__/helpers';
import { Rendered } from '../../__tests__/rendered';
import type { InventoryItem } from '../../api/records';
import { ItemTable } from '../items';
import { LossList } from '../losses';

const trans = nullTranslator.load('jupyter_pause');

const item = (changes: Partial<InventoryItem> = {}): InventoryItem => ({
  name: 'table',
  kind: 'data',
  bytes: 2048,
  complete: true,
  fate: 'in checkpoint',
  reason: null,
  type: 'list',
  details: {},
  ...changes
});

describe('ItemTable', () => {
  let shown: Rendered | null = null;
  afterEach(() => shown?.dispose());

  const show = async (items: InventoryItem[]) => {
    shown = await Rendered.of(
      <ItemTable items={items} caption={trans.__('Variables')} trans={trans} />
    );
    return shown;
  };

  it('names each thing with its size, type and fate; lost ones first', async () => {
    const { node, text } = await show([
      item(),
      item({ name: 'numbers', fate: 'lost', type: 'generator', bytes: 100 })
    ]);
    const names = Array.from(
      node.querySelectorAll('tbody th'),
      cell => cell.textContent
    );
    expect(names).toEqual(['numbers', 'table']);
    expect(text).toContain('2 KiB');
    expect(text).toContain('in checkpoint');
    expect(node.querySelector('caption')?.textContent).toBe('Variables');
  });

  it('gives a folder, of which no size is told, the whole line', async () => {
    const { node, text } = await show([
      item({
        name: '/home/ann',
        fate: 'kept',
        type: null,
        details: { uses: ['home'], storage: 'persistent' }
      })
    ]);
    expect(node.querySelector('tbody th')?.getAttribute('colspan')).toBe('2');
    expect(node.querySelector('.jp-Pause-size')).toBeNull();
    expect(text).toContain('home folder, persistent storage');
  });

  it('says what both ways of keeping make of a thing', async () => {
    const { text } = await show([
      item({ fate: 'lost', with_snapshot: 'in snapshot' })
    ]);
    expect(text).toContain('in snapshot; by the checkpoint alone: lost');
  });

  it('shows a long list in part, and all of it on a click', async () => {
    const many = Array.from({ length: 500 }, (_, index) =>
      item({ name: `v${index}` })
    );
    const rendered = await show(many);
    const count = () => rendered.node.querySelectorAll('tbody th').length;
    expect(count()).toBeLessThan(500);
    rendered.press(rendered.buttons[0]);
    await until(() => count() === 500);
  });

  it('is not there without things', async () => {
    expect((await show([])).text).toBe('');
  });
});

describe('LossList', () => {
  it('says where a thing is, what, why, and which cell made it', async () => {
    const shown = await Rendered.of(
      <LossList
        losses={[
          {
            name: 'cfg',
            path: 'cfg["lock"]',
            type: '_thread.lock',
            reason: 'cannot pickle it',
            cell: 4
          }
        ]}
        trans={trans}
      />
    );
    expect(shown.text).toBe(
      'cfg["lock"]_thread.lockmade by cell [4]cannot pickle it'
    );
    shown.dispose();
  });
});
