/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { expect } from '@playwright/test';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { LabServer } from './server';

/**
 * Write a notebook with these code cells into the server's folder.
 */
export function writeNotebook(
  server: Pick<LabServer, 'notebooks'>,
  name: string,
  cells: string[],
  kernel = 'python3'
): void {
  const notebook = {
    cells: cells.map(source => ({
      cell_type: 'code',
      execution_count: null,
      id: randomUUID().slice(0, 8),
      metadata: {},
      outputs: [],
      source
    })),
    metadata: {
      kernelspec: { display_name: kernel, language: 'python', name: kernel },
      language_info: { name: 'python' }
    },
    nbformat: 4,
    nbformat_minor: 5
  };
  writeFileSync(
    join(server.notebooks, name),
    JSON.stringify(notebook, null, 1)
  );
}

/**
 * Open a document, or bring it to the front.
 */
export async function openDocument(
  page: IJupyterLabPageFixture,
  path: string
): Promise<void> {
  await page.evaluate(async path => {
    // What the command returns is no business of the test's process.
    await window.jupyterapp.commands.execute('docmanager:open', { path });
  }, path);
}

/**
 * The notebook that a person looks at, cell by cell.
 */
export class Notebook {
  constructor(
    readonly page: IJupyterLabPageFixture,
    readonly name: string
  ) {}

  /** Its panel. */
  get panel(): Locator {
    return this.page.locator(
      '.jp-NotebookPanel:not(.lm-mod-hidden):not(.p-mod-hidden)'
    );
  }

  /** The cell at an index. */
  cell(index: number): Locator {
    return this.panel.locator('.jp-Notebook .jp-Cell').nth(index);
  }

  /** The number of a cell: `[7]:`, `[*]:` while it runs, `[ ]:` before. */
  prompt(index: number): Locator {
    return this.cell(index).locator('.jp-InputArea-prompt');
  }

  /** What a cell printed, in one text. */
  async output(index: number): Promise<string> {
    const texts = await this.cell(index)
      .locator('.jp-OutputArea-output')
      .allInnerTexts();
    return texts.join('\n').trim();
  }

  /** Open it and wait for its kernel. */
  async open(): Promise<void> {
    await openDocument(this.page, this.name);
    await expect(this.cell(0)).toBeVisible();
    await this.idle();
  }

  /** Wait until its kernel has answered and is idle; the indicator alone says so before there is a kernel. */
  async idle(): Promise<void> {
    // A document that is shared comes to the front a moment after it is seen.
    await this.page.waitForFunction(
      () =>
        !!(
          window.jupyterapp.shell.currentWidget as {
            sessionContext?: unknown;
          } | null
        )?.sessionContext
    );
    await this.page.evaluate(async () => {
      const widget = window.jupyterapp.shell.currentWidget as unknown as {
        sessionContext: {
          ready: Promise<void>;
          session: { kernel: { info: Promise<unknown> } };
        };
      };
      await widget.sessionContext.ready;
      await widget.sessionContext.session.kernel.info;
    });
    await expect(
      this.panel.locator('.jp-Notebook-ExecutionIndicator')
    ).toHaveAttribute('data-status', 'idle', { timeout: 120000 });
  }

  /** Press Shift+Enter in a cell; does not wait. */
  async press(index: number): Promise<void> {
    await this.cell(index).locator('.jp-InputArea-editor').click();
    await this.page.keyboard.press('Shift+Enter');
  }

  /** Run a cell to its end; its output. */
  async run(index: number): Promise<string> {
    await this.press(index);
    await this.ran(index);
    return this.output(index);
  }

  /** Wait until a cell has a number. */
  async ran(index: number): Promise<void> {
    await expect(this.prompt(index)).toHaveText(/\[\d+\]:/, {
      timeout: 180000
    });
  }

  /** Write other code into a cell. */
  async write(index: number, code: string): Promise<void> {
    await this.cell(index).locator('.jp-InputArea-editor').click();
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.insertText(code);
  }

  /** The kernel id that the open notebook holds. */
  async kernelId(): Promise<string> {
    return this.page.evaluate(() => {
      const widget = window.jupyterapp.shell.currentWidget as unknown as {
        sessionContext: { session: { kernel: { id: string } } };
      };
      return widget.sessionContext.session.kernel.id;
    });
  }
}
