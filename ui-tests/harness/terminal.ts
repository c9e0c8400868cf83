/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { expect } from '@playwright/test';

/**
 * A terminal that a person types into.
 */
export class Terminal {
  constructor(readonly page: IJupyterLabPageFixture) {}

  /** What it shows. */
  get screen(): Locator {
    return this.page.locator('.jp-Terminal .xterm-screen');
  }

  /** Open one, and wait for its shell. */
  async open(): Promise<void> {
    await this.page.evaluate(async () => {
      await window.jupyterapp.commands.execute('terminal:create-new');
    });
    await expect(this.screen).toBeVisible();
  }

  /** Bring it to the front. */
  async show(): Promise<void> {
    await this.page
      .getByRole('main')
      .getByRole('tab', { name: /^Terminal/ })
      .click();
    await expect(this.screen).toBeVisible();
  }

  /** Type a line. */
  async type(line: string): Promise<void> {
    await this.screen.click();
    await this.page.keyboard.type(line);
    await this.page.keyboard.press('Enter');
  }
}
