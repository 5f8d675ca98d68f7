/**
 * What every page's tests start from: `test` with a running server that has something on it, and a
 * browser page that is signed in. `import { expect, test } from './harness'`.
 */
import { test as plain } from '@playwright/test';
import { LASTING } from './busy';
import { seed, NODES, PASSWORD, USER, type Seeded } from './seed';
import { Server } from './server';
import { signIn } from './sign-in';

export { expect } from '@playwright/test';
export { ADMIN, PASSWORD, takeNodes, TIGHT, tokenOf, until, USER } from './seed';
export { findings } from './axe';
export { binary } from './server';

interface PerWorker {
  server: Server;
  seeded: Seeded;
  /** The cookie of each account that has signed in. */
  sessions: Map<string, string>;
}

interface PerTest {
  /** What the page complained about; the test fails unless it takes these out. */
  complaints: string[];
  /** Who is signed in: the researcher, unless a test says `test.use({ account: ADMIN })`. */
  account: string;
}

export const test = plain.extend<PerTest, PerWorker>({
  server: [
    async ({}, use) => {
      const server = await Server.start(process.env.ERA_SHOTS ? LASTING + NODES : NODES);
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 120_000 },
  ],
  seeded: [
    async ({ server }, use) => {
      await use(await seed(server));
    },
    { scope: 'worker', timeout: 120_000, auto: true },
  ],
  sessions: [
    async ({}, use) => {
      await use(new Map());
    },
    { scope: 'worker' },
  ],
  account: [USER, { option: true }],
  baseURL: async ({ server }, use) => {
    await use(server.url);
  },
  complaints: async ({}, use) => {
    const wrong: string[] = [];
    await use(wrong);
    if (wrong.length > 0) throw new Error(`the page complained:\n${wrong.join('\n')}`);
  },
  page: async ({ page, server, sessions, account, complaints: wrong }, use) => {
    if (account !== NOBODY) {
      // One login an account: passwords are slow to check on purpose.
      const cookie = sessions.get(account) ?? (await signIn(server, account, PASSWORD));
      sessions.set(account, cookie);
      await page.context().addCookies([{ name: 'era_session', value: cookie, url: server.url }]);
    }
    page.on('pageerror', (error) => wrong.push(String(error)));
    page.on('console', (message) => {
      // A refused request is a browser's "error" too; tests of refusals make them on purpose.
      if (message.type() === 'error' && !/status of [45]\d\d|net::ERR_/.test(message.text())) wrong.push(message.text());
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith('http') && url.origin !== server.url) wrong.push(`left the origin: ${request.url()}`);
    });
    await use(page);
  },
});

/** What a server says that has too much to do, for `route.fulfill`. */
export const OVERLOADED = {
  status: 503,
  contentType: 'application/problem+json',
  body: JSON.stringify({ type: 'urn:era:overloaded', title: 'overloaded', status: 503, code: 'overloaded', detail: 'The server is busy: try again in a moment.' }),
};

/** The account of tests that begin at the door. */
export const NOBODY = '';

/** Both themes, for what must hold in each. */
export const THEMES = ['light', 'dark'] as const;
