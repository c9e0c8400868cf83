/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

const base = require('@jupyterlab/galata/lib/playwright-config');

const chromium = process.env.CHROMIUM_PATH
  ? {
      executablePath: process.env.CHROMIUM_PATH,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
        // Nothing but this machine can be reached.
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1'
      ]
    }
  : {};

/*
 * There is no `webServer` here: each test starts, kills and starts again a server of its own (harness/server.ts).
 */
module.exports = {
  ...base,
  testDir: 'tests',
  // Each test starts servers and kernels of its own, and mostly waits for them: two at a time keep two cores busy.
  workers: 2,
  fullyParallel: false,
  forbidOnly: !!process.env.CI,
  // A second try tells a broken product from a busy machine; what needed one is named in the summary.
  retries: process.env.CI ? 1 : 0,
  timeout: 420000,
  expect: { timeout: 60000 },
  reporter: [['list'], ['html', { open: 'never' }]],
  use: {
    ...base.use,
    viewport: { width: 1500, height: 950 },
    actionTimeout: 60000,
    navigationTimeout: 120000,
    // Video needs a program that only comes with downloaded browsers.
    video: 'off',
    trace: 'retain-on-failure',
    screenshot: 'only-on-failure',
    launchOptions: chromium
  }
};
