/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { expect } from '@playwright/test';

/**
 * What a person sees and clicks of ours.
 */
export class PauseUi {
  constructor(readonly page: IJupyterLabPageFixture) {}

  /** The button in the toolbar of the notebook in front. */
  get button(): Locator {
    return this.page
      .locator('.jp-NotebookPanel:not(.lm-mod-hidden)')
      .locator('[data-jp-item-name="jupyter-pause"]')
      .locator('button, jp-button')
      .first();
  }

  /** The badge. */
  get badge(): Locator {
    return this.page.locator('.jp-Pause-badgeButton');
  }

  /** The side panel. */
  get panel(): Locator {
    return this.page.getByRole('region', {
      name: 'What will be restored',
      exact: true
    });
  }

  /** The line on top of the notebook. */
  get notice(): Locator {
    return this.page.locator('.jp-Pause-notice:not(.lm-mod-hidden)');
  }

  /** The question that is open. */
  get dialog(): Locator {
    return this.page.locator('.jp-Dialog-content');
  }

  /** Wait until the badge shows a state. */
  async shows(...states: string[]): Promise<void> {
    await expect(this.badge).toHaveAttribute(
      'data-jp-pause-state',
      new RegExp(`^(${states.join('|')})$`),
      { timeout: 180000 }
    );
  }

  /** Open the panel by its badge. */
  async openPanel(): Promise<void> {
    if (!(await this.panel.isVisible())) {
      await this.badge.click();
    }
    await expect(this.panel).toBeVisible();
  }

  /** A section of the panel by its heading. */
  section(name: string): Locator {
    return this.panel.getByRole('region', { name: new RegExp(`^${name}`) });
  }

  /** Click Pause; what is lost (if anything) is accepted, as a person would who has read the list. */
  async pause(): Promise<void> {
    await expect(this.button).toHaveText('Pause');
    await this.button.click();
    const asked = this.dialog.getByRole('button', { name: 'Pause anyway' });
    await expect(
      asked.or(
        this.page.locator('.jp-Pause-badgeButton[data-jp-pause-state^="paus"]')
      )
    ).toBeVisible();
    if (await asked.isVisible()) {
      await asked.click();
    }
    await this.shows('paused');
  }

  /** Click Resume in the toolbar and wait until the kernel is back. */
  async resume(): Promise<void> {
    await expect(this.button).toHaveText('Resume');
    await this.button.click();
    await this.shows('ready', 'running');
  }
}
