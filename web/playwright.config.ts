import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';

/** Debian's own browser: nothing is downloaded. */
export const CHROMIUM = process.env.ERA_CHROMIUM ?? '/usr/bin/chromium';
if (!existsSync(CHROMIUM)) throw new Error(`no browser at ${CHROMIUM}: install chromium, or name one in ERA_CHROMIUM`);

export default defineConfig({
  testDir: 'tests',
  // Pictures are taken only where a folder is named for them.
  testIgnore: process.env.ERA_SHOTS ? [] : 'shots.spec.ts',
  // One server for all of a worker's tests; two cores are what the project counts on.
  workers: 1,
  fullyParallel: false,
  // Only a failure takes as long: how busy the machine is decides nothing.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  forbidOnly: Boolean(process.env.CI),
  retries: process.env.CI ? 1 : 0,
  reporter: [['list'], ['./tests/skipped.ts']],
  outputDir: 'test-results',
  use: {
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'Europe/London',
    colorScheme: 'light',
    launchOptions: {
      executablePath: CHROMIUM,
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
    trace: 'off',
    screenshot: 'only-on-failure',
  },
});
