/** The overview: how the cluster stands, what of it is mine, and what it costs; live. */
import { expect, findings, PASSWORD, test, THEMES, tokenOf, until, USER } from './harness';
import { Server } from './harness/server';

test('shows utilisation, balance, the record of promises, prices and my jobs with countdowns', async ({ page, seeded }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await expect(page.getByText('Promises kept')).toBeVisible();
  await expect(page.getByText(/set aside for promises/)).toBeVisible();
  for (const pool of ['default', 'training', 'inference']) {
    await expect(page.getByRole('img', { name: `Price in pool ${pool} over the next 24 hours` })).toBeVisible();
  }
  const promised = page.getByRole('listitem').filter({ hasText: new RegExp(`#${seeded.promised}(?!\\d)`) });
  await expect(promised).toContainText('Promised');
  await expect(promised).toContainText(/starts in/);
  const before = await promised.locator('time').textContent();
  expect(before).toMatch(/h|:/);
});

test('utilisation over the day is what the server measured', async ({ page, server }) => {
  await page.goto('/');
  const chart = page.locator('figure').filter({ has: page.getByRole('img', { name: 'Utilisation over the last 24 hours' }) });
  await expect(chart.locator('canvas')).toBeVisible();
  const reader = chart.getByRole('slider');
  await reader.focus();
  await page.keyboard.press('Home');
  const [first, last] = [await reader.getAttribute('aria-valuetext'), await reader.getAttribute('max')];
  expect(first).toMatch(/: In use \d+%$/);
  const to = new Date();
  const day = await server.ask<{ over_time: { value: number }[] }>('GET', `/utilisation?from=${new Date(to.getTime() - 86_400_000).toISOString()}&to=${to.toISOString()}`);
  expect(Math.abs(Number(last) + 1 - day.over_time.length)).toBeLessThanOrEqual(1);
  const shown = day.over_time.map(({ value }) => `${Math.round(value * 100)}%`);
  expect(shown).toContain(/(\d+%)$/.exec(first ?? '')?.[1]);
});

test('a balance or a price that could not be had is told, with a way to ask again', async ({ page }) => {
  const problem = { type: 'urn:era:overloaded', title: 'overloaded', status: 503, code: 'overloaded', detail: 'The server is busy: try again in a moment.' };
  const busy = { status: 503, contentType: 'application/problem+json', body: JSON.stringify(problem) };
  for (const path of [`**/users/${USER}/wallet`, '**/market/*/calendar?*']) {
    await page.route(path, (route) => route.fulfill(busy));
    await page.goto('/');
    await expect(page.getByRole('main').getByRole('alert').filter({ hasText: 'busy' })).toBeVisible();
    await page.unroute(path);
    await page.getByRole('main').getByRole('alert').getByRole('button', { name: 'Try again' }).click();
    await expect(page.getByRole('main').getByRole('alert')).toBeHidden();
  }
});

test('a job that is handed in elsewhere appears by itself', async ({ page, server }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'live' });
  const name = `appears-${Date.now() % 10_000}`;
  const ask = { resources: { gpu: '1', cpu: '1', memory: '1Gi' }, duration_s: 600, earliest: new Date(Date.now() + 7_200_000).toISOString() };
  await server.ask('POST', '/jobs', { name, work: { command: ['true'] }, ask, value: '500' }, login.token);
  await expect(page.getByRole('link', { name: new RegExp(name) })).toBeVisible();
});

test('a job that waits says when it is likely to start', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const nodes = await server.list<{ name: string; pool: string; capacity: Record<string, string> }>('/nodes');
  const own = nodes.find(({ pool }) => pool === 'default');
  // Each takes all cores of this machine, so the second one waits for the first.
  const job = (name: string) => ({ name, work: { command: ['sleep', '500'] }, ask: { resources: { cpu: own?.capacity['cpu'], memory: '64Mi' }, duration_s: 5400, constraints: { pool: 'default' } } });
  const first = (await server.ask<{ job: number }>('POST', '/jobs', job('holds-the-machine'), token)).job;
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${first}`)).state === 'running');
  const second = (await server.ask<{ job: number }>('POST', '/jobs', job('waits-for-it'), token)).job;
  try {
    await page.goto('/');
    const line = page.getByRole('listitem').filter({ hasText: new RegExp(`#${second}(?!\\d)`) });
    await expect(line).toContainText(/likely starts in\s+\d/);
    const { explanation } = await server.ask<{ explanation: { start: string } }>('GET', `/jobs/${second}`);
    expect(Date.parse((await line.locator('time').getAttribute('datetime')) ?? '')).toBeCloseTo(Date.parse(explanation.start), -5);
  } finally {
    for (const id of [second, first]) await server.ask('POST', `/jobs/${id}/cancel`);
  }
});

test('many pools and many jobs are counted, and all of them can be seen', async ({ browser }) => {
  const one = (index: number) => `  - { name: n${index}, pool: pool-${index}, capacity: { cpu: 8, memory: 32Gi } }\n`;
  const server = await Server.start(`nodes:\n${Array.from({ length: 10 }, (_, index) => one(index)).join('')}`);
  try {
    await server.ask('POST', '/users', { name: USER, group: 'vision', credits: '1000', password: PASSWORD });
    await server.ask('PUT', '/queues/closed', { name: 'closed', level: 1, policy: 'fifo', running_max: 0 });
    const token = await tokenOf(server, USER);
    const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 };
    for (let index = 0; index < 14; index += 1) await server.ask('POST', '/jobs', { name: `many-${index}`, work: { command: ['true'] }, queue: 'closed', ask }, token);
    // More than a page of the list has.
    await server.ask('POST', '/jobs', { name: 'many', work: { command: ['true'] }, queue: 'closed', ask, array: { from: 1, to: 230 } }, token);
    const context = await browser.newContext({ baseURL: server.url, locale: 'en-GB' });
    const page = await context.newPage();
    await page.goto('/');
    await page.getByLabel('Account').fill(USER);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    const prices = page.getByRole('img', { name: /^Price in pool/ });
    await expect(prices).toHaveCount(8);
    await page.getByRole('button', { name: /^All 1[01] pools$/ }).click();
    await expect(prices.nth(9)).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await expect(page.locator('dl').filter({ hasText: 'My jobs now' })).toContainText('244');
    await expect(page.getByText('0 running, 0 promised, 244 waiting')).toBeVisible();
    await page.getByRole('link', { name: 'All 244 jobs that run, are promised or wait' }).click();
    await expect(page).toHaveURL(/\/jobs\?state=active/);
    await expect(page.getByText('244 jobs', { exact: true })).toBeVisible();
    await context.close();
  } finally {
    await server.stop();
  }
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/');
    await expect(page.getByRole('meter').first()).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}

test('the first page is at most 200 KB of compressed script', async ({ page }) => {
  test.skip(Boolean(process.env.ERA_PAGE), 'only the binary hands out compressed copies');
  const sizes: number[] = [];
  page.on('response', async (response) => {
    if (!new URL(response.url()).pathname.endsWith('.js')) return;
    expect(response.headers()['content-encoding']).toMatch(/br|gzip/);
    sizes.push(Number(response.headers()['content-length']));
  });
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await page.waitForLoadState('load');
  const total = sizes.reduce((sum, size) => sum + size, 0);
  expect(sizes.length).toBeGreaterThan(0);
  expect(total).toBeLessThan(200 * 1024);
});
