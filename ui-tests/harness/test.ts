/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import AxeBuilder from '@axe-core/playwright';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import { test as galata } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';
import { expect } from '@playwright/test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { LabServer } from './server';

interface IFixtures {
  /** Traits for the test's server; set with `test.use`. */
  serverConfig: LabServer.Config;

  /** The environment that the server runs in; set with `test.use`. */
  serverPython: string | undefined;

  /** A started server of the test's own. */
  server: LabServer;
}

/**
 * A test with a server of its own and a page that is signed in to it; nothing between page and server is mocked.
 */
export const test = galata.extend<IFixtures>({
  serverConfig: [{}, { option: true }],
  serverPython: [undefined, { option: true }],
  server: async ({ serverConfig, serverPython }, use, testInfo) => {
    const server = await LabServer.create(serverConfig, serverPython);
    try {
      await server.start();
      await use(server);
    } finally {
      if (testInfo.status !== testInfo.expectedStatus) {
        writeFileSync(testInfo.outputPath('server.log'), server.log);
      }
      await server.dispose();
    }
  },
  baseURL: async ({ server }, use) => use(server.url),
  autoGoto: async ({}, use) => use(false),
  kernels: async ({}, use) => use(null),
  sessions: async ({}, use) => use(null),
  terminals: async ({}, use) => use(null),
  mockConfig: async ({}, use) => use(false),
  mockSettings: async ({}, use) => use(false),
  mockState: async ({}, use) => use(false),
  mockUser: async ({}, use) => use(false),
  tmpPath: async ({}, use) => use(''),
  waitForApplication: async ({}, use) =>
    use(async (page: Page) => {
      await page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
      await expect(page.locator('#jp-main-dock-panel')).toBeVisible();
    })
});

/**
 * Sign in (a person follows the link with the token) and open JupyterLab.
 */
export async function openLab(
  page: IJupyterLabPageFixture,
  server: LabServer
): Promise<void> {
  await page.goto(`${server.url}/lab?token=${server.token}`);
}

/**
 * Take a picture for people to look at; no test compares pixels.
 */
export async function picture(
  page: IJupyterLabPageFixture,
  name: string
): Promise<void> {
  await page.screenshot({
    path: join(__dirname, '..', 'screenshots', `${name}.png`)
  });
}

/**
 * Do something while the browser has frozen the page, as it does with a tab on a laptop that sleeps.
 */
export async function suspended(
  page: IJupyterLabPageFixture,
  work: () => Promise<void>
): Promise<void> {
  const plain = page as unknown as { page: Page };
  const browser = await page.context().newCDPSession(plain.page);
  await browser.send('Page.setWebLifecycleState', { state: 'frozen' });
  try {
    await work();
  } finally {
    await browser.send('Page.setWebLifecycleState', { state: 'active' });
    await browser.detach();
  }
}

/**
 * What axe finds wrong with our own parts of the page, one line each.
 */
export async function accessibilityFaults(
  page: IJupyterLabPageFixture,
  ...selectors: string[]
): Promise<string[]> {
  const builder = new AxeBuilder({ page: page as unknown as Page });
  for (const selector of selectors) {
    builder.include(selector);
  }
  const { violations } = await builder.analyze();
  return violations.flatMap(rule =>
    rule.nodes.map(node => `${rule.id}: ${node.html}: ${node.failureSummary}`)
  );
}

/**
 * Titles of all dialogs that are open now.
 */
export async function openDialogs(
  page: IJupyterLabPageFixture
): Promise<string[]> {
  return page.locator('.jp-Dialog .jp-Dialog-header').allInnerTexts();
}

export { expect };
