/** The market: fares by the hour, demand, prices ahead, and alerts. */
import { expect, findings, takeNodes, test, THEMES, tokenOf, USER } from './harness';

interface Point {
  from: string;
  gpu: string;
}

test('the fare calendar has the server’s prices, and a click on an hour books there', async ({ page, server }) => {
  await page.goto('/market?pool=training');
  const grid = page.getByRole('grid', { name: /Price of each hour in pool training/ });
  await expect(grid.getByRole('row')).toHaveCount(9);
  // Tomorrow at noon by the reader's clock, which the browser of these tests has in London.
  const { points } = await server.ask<{ points: Point[] }>('GET', `/market/training/calendar?to=${new Date(Date.now() + 3 * 86_400_000).toISOString()}&step_s=3600`);
  const cell = grid.getByRole('row').nth(2).getByRole('gridcell').nth(12);
  const label = (await cell.getByRole('button').getAttribute('aria-label')) ?? '';
  expect(label).toMatch(/12:00: [\d.]+ a GPU-hour, \d+% promised/);
  const noon = points.find(({ from }) => {
    const when = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/London', day: 'numeric', hour: '2-digit' });
    const tomorrow = new Date(Date.now() + 86_400_000);
    const day = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/London', day: 'numeric' });
    return when.format(new Date(from)) === `${day.format(tomorrow)}, 12`;
  });
  expect(Number(/: ([\d.]+) a/.exec(label)?.[1])).toBeCloseTo(Number(noon?.gpu), 1);
  await cell.getByRole('button').click();
  await expect(page).toHaveURL(new RegExp(`/jobs/new\\?pool=training&at=${encodeURIComponent(new Date(noon?.from ?? '').toISOString())}`));
});

test('work in queues that uses a pool is told beside its price, and why the price does not say so', async ({ page, server }) => {
  const nodes = await server.list<{ pool: string; capacity: Record<string, string> }>('/nodes');
  const cores = Number(nodes.find(({ pool }) => pool === 'default')?.capacity['cpu']);
  const token = await tokenOf(server, USER);
  const ask = { resources: { cpu: String(cores / 2), memory: '64Mi' }, duration_s: 5400, constraints: { pool: 'default' } };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'uses-half', work: { command: ['sleep', '500'] }, ask }, token);
  try {
    await page.goto('/market?pool=default');
    await expect(page.getByText('0% of its cores promised now, 50% of its cores in use by queue work')).toBeVisible();
    await expect(page.getByText('Prices follow from what is promised and forecast.')).toBeVisible();
  } finally {
    await server.ask('POST', `/jobs/${job}/cancel`);
  }
});

test('of a pool with GPUs, what queue work uses most is told and drawn, whatever it is, in both languages', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  // 24 of the cores of each of the 3 nodes, and no GPU. On simulated nodes they are soon over: the next ones follow.
  const ask = { resources: { cpu: '24', memory: '1Gi' }, duration_s: 5400, constraints: { pool: 'inference' } };
  const array = { from: 0, to: 59 };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'without-gpus', work: { command: ['true'] }, ask, array }, token);
  try {
    await page.goto('/market?pool=inference');
    await expect(page.getByText('0% of its GPUs promised now, 75% of its cores in use by queue work')).toBeVisible();
    const demand = page.getByRole('region', { name: 'Demand against capacity' });
    const drawn = demand.locator('figcaption');
    await expect(drawn).toContainText('Capacity 100%');
    await expect(drawn).not.toContainText('Queue work now');
    await demand.getByText('Cores', { exact: true }).click();
    await expect(drawn).toContainText('Queue work now 75%');
    expect(await findings(page)).toEqual([]);
    // Memory, and the words of the other language.
    await page.route('**/api/v1/market', async (route) => {
      const answer = await route.fetch();
      const market = (await answer.json()) as { pools: { queue_work: number[] }[] };
      for (const one of market.pools) one.queue_work = [0.75, 0.98, 0];
      await route.fulfill({ response: answer, json: market });
    });
    await page.evaluate(() => localStorage.setItem('era.language', 'zh'));
    await page.reload();
    await expect(page.getByText('目前已承诺 GPU 的 0%，队列作业占用内存的 98%')).toBeVisible();
  } finally {
    for (let index = 0; index <= array.to; index += 1) await server.ask('POST', `/jobs/${job + index}/cancel`).catch(() => undefined);
  }
});

test('a clicked hour is where the job is promised, also when it becomes longer', async ({ page }) => {
  await page.goto('/market?pool=training');
  const cell = page.getByRole('grid').getByRole('row').nth(2).getByRole('gridcell').nth(14).getByRole('button');
  await cell.click();
  await expect(page).toHaveURL(/\/jobs\/new\?pool=training&at=/);
  const tomorrow = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/London', day: 'numeric', month: 'short' }).format(new Date(Date.now() + 86_400_000));
  const start = page.locator('main .slot dd').first();
  await expect(start).toContainText(new RegExp(`${tomorrow}.*14:\\d\\d`));
  await expect(page.getByLabel('Finished by')).toHaveValue(/T15:59$/);
  await page.getByRole('textbox', { name: 'Runs at most' }).fill('3h');
  await expect(page.getByLabel('Finished by')).toHaveValue(/T17:59$/);
  await expect(page.locator('main .slot dd').nth(1)).toContainText(/17:\d\d/);
  await expect(start).toContainText(new RegExp(`${tomorrow}.*14:\\d\\d`));
  // What the reader has said stays.
  const by = (await page.getByLabel('Finished by').inputValue()).replace('17:59', '23:30');
  await page.getByLabel('Finished by').fill(by);
  await page.getByRole('textbox', { name: 'Runs at most' }).fill('2h');
  await expect(page.getByLabel('Finished by')).toHaveValue(by);
});

test('an hour of a pool without GPUs asks for none', async ({ page }) => {
  await page.goto('/market?pool=default');
  await page.getByRole('grid').getByRole('row').nth(2).getByRole('button').nth(5).click();
  await expect(page).toHaveURL(/\/jobs\/new\?pool=default&at=/);
  await expect(page.locator('main .price')).toBeVisible();
  await expect(page.getByRole('textbox', { name: 'GPUs', exact: true })).toHaveValue('');
});

test('Tab enters the calendar at its first hour, and arrows go on from there', async ({ page }) => {
  await page.goto('/market?pool=training');
  const grid = page.getByRole('grid');
  const first = grid.getByRole('row').nth(1).getByRole('button').first();
  await expect(first).toBeVisible();
  // From the control before the calendar.
  await page.getByRole('button', { name: 'Book there' }).focus();
  await page.keyboard.press('Tab');
  await expect(first).toBeFocused();
  await page.keyboard.press('ArrowLeft');
  await expect(first).toBeFocused();
  await page.keyboard.press('ArrowDown');
  const place = await first.getAttribute('data-place');
  await expect(grid.locator(`[data-place="1:${place?.split(':')[1]}"]`)).toBeFocused();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowUp');
  // The hour above may be past: then the first that is not.
  await expect(grid.getByRole('row').nth(1).locator(':focus')).toHaveCount(1);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/jobs\/new\?pool=training&at=/);
});

test('what others book is on the calendar without a reload', async ({ page, server }) => {
  await page.goto('/market?pool=inference&days=14');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  // The last but one of the days, at noon: nothing else is booked there.
  const cell = page.getByRole('grid', { name: /pool inference/ }).getByRole('row').nth(13).getByRole('gridcell').nth(12).getByRole('button');
  await expect(cell).toHaveAttribute('aria-label', /, 0% promised/);
  const noon = (new Date(new Date().setUTCHours(12, 0, 0, 0)).getTime() + 12 * 86_400_000 - Date.now()) / 3_600_000;
  const job = await takeNodes(server, 'inference', 3, [noon - 3, noon + 3]);
  await expect(cell).toHaveAttribute('aria-label', /, 100% promised/);
  await server.ask('POST', `/jobs/${job}/cancel`);
});

test('the keyboard walks over the hours and books by Enter', async ({ page }) => {
  await page.goto('/market?pool=training');
  const grid = page.getByRole('grid');
  const cells = grid.getByRole('row').nth(2).getByRole('button');
  await cells.nth(3).focus();
  await page.keyboard.press('ArrowRight');
  await expect(cells.nth(4)).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(grid.getByRole('row').nth(3).getByRole('button').nth(4)).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/jobs\/new\?pool=training&at=/);
});

test('another pool and a longer time are in the address, and a longer job starts elsewhere or nowhere', async ({ page }) => {
  await page.goto('/market?pool=training');
  await expect(page.getByRole('grid', { name: /pool training/ })).toBeVisible();
  await page.getByText('inference', { exact: true }).click();
  await page.getByText('14 days', { exact: true }).click();
  await expect(page).toHaveURL(/pool=inference&days=14/);
  await expect(page.getByRole('grid', { name: /pool inference/ }).getByRole('row')).toHaveCount(16);
  await page.getByText('24 h', { exact: true }).click();
  await expect(page.getByText(/Cheapest start: .* a GPU-hour on average/)).toBeVisible();
  await page.getByRole('button', { name: 'Book there' }).click();
  await expect(page).toHaveURL(/\/jobs\/new\?pool=inference&at=/);
});

test('charts show what came after they were drawn', async ({ page }) => {
  // The library is there before the prices are: they must still be drawn.
  await page.goto('/market?pool=training');
  await expect(page.getByRole('grid')).toBeVisible();
  await page.route('**/calendar**', async (route) => {
    await new Promise((wait) => setTimeout(wait, 700));
    await route.continue();
  });
  await page.reload();
  const demand = page.getByRole('img', { name: /Share of pool training/ });
  await expect(demand.locator('canvas')).toBeVisible();
  await expect(page.getByRole('grid')).toBeVisible();
  await demand.locator('.u-over').hover();
  await expect(demand.locator('.u-legend')).toContainText(/Promised[:\s]*\d+%/);
});

test('past prices are kept by the server and drawn, as far back as is asked for', async ({ page, server }) => {
  interface History {
    pool: string;
    points: { at: string; gpu: string }[];
  }
  const history = () => server.ask<History>('GET', '/market/training/history');
  // The first may be of a moment at which the pool had no nodes yet; the next comes a minute later.
  await expect.poll(async () => Number((await history()).points.at(-1)?.gpu ?? 0), { timeout: 90_000 }).toBeGreaterThan(0);
  await page.goto('/market?pool=training');
  const chart = page.getByRole('img', { name: 'Price in pool training over the past days' });
  await expect(chart.locator('canvas')).toBeVisible();
  await page.getByRole('radiogroup', { name: 'How far back' }).or(page.getByRole('group', { name: 'How far back' })).getByText('30 days').click();
  await expect(page).toHaveURL(/past=30/);
  await expect(chart.locator('canvas')).toBeVisible();
  const { points } = await server.ask<History>('GET', '/market/training/history?from=2026-01-01T00:00:00Z&points=4');
  expect(points.length).toBeLessThanOrEqual(4);
});

test('an alert in the browser tells at once when the price is below, and survives a reload', async ({ page }) => {
  await page.goto('/market?pool=training');
  await page.getByRole('button', { name: 'Tell me here' }).click();
  await expect(page.getByText('Give a number above 0.')).toBeVisible();
  await page.getByLabel('Limit for pool training, credits a GPU-hour').fill('1000');
  await page.getByRole('button', { name: 'Tell me here' }).click();
  await expect(page.getByText(/Pool training is at [\d.]+, below your limit of 1,000.00/)).toBeVisible();
  await page.reload();
  await expect(page.getByText('Pool training below 1,000.00')).toBeVisible();
  await page.getByRole('button', { name: 'Turn the alert on pool training off' }).click();
  await expect(page.getByText('No alert is set.')).toBeVisible();
});

test('a program is called by the server, and its secret is told once', async ({ page, server }) => {
  await page.clock.install();
  await page.goto('/market?pool=training');
  await page.getByRole('button', { name: 'Call a program' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Address').fill('https://example.org/<b>hook</b>');
  await dialog.getByLabel(/Limit for pool training/).fill('2.5');
  await dialog.getByRole('button', { name: 'Set up' }).click();
  await expect(dialog.getByText(/this is no URL/)).toBeVisible();
  await dialog.getByLabel('Address').fill('https://example.org/hook');
  await dialog.getByRole('button', { name: 'Set up' }).click();
  await expect(dialog.getByText('It is shown once')).toBeVisible();
  await dialog.getByRole('button', { name: 'Done' }).click();
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'hooks' });
  const hooks = async () => (await server.ask<{ items: { events: string[]; pool: string; below: string }[] }>('GET', '/webhooks', undefined, login.token)).items;
  expect((await hooks()).map(({ events, pool, below }) => [events, pool, Number(below)])).toEqual([[['price_below'], 'training', 2.5]]);
  await expect(page.getByText('Pool training below 2.50')).toBeVisible();
  await page.getByRole('button', { name: /Remove the call to/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await expect(page.getByText('No alert is set.')).toBeVisible();
  expect(await hooks()).toEqual([]);
  // What is set up elsewhere comes by itself, a little later.
  const { webhook } = await server.ask<{ webhook: { id: number } }>('POST', '/webhooks', { url: 'https://example.org/elsewhere', events: ['price_below'], pool: 'training', below: '3' }, login.token);
  await page.clock.fastForward(20_000);
  await expect(page.getByText('https://example.org/elsewhere')).toBeVisible();
  await server.ask('DELETE', `/webhooks/${webhook.id}`, undefined, login.token);
});

test('hours are written by the reader’s clock, and fit', async ({ browser, page, server }) => {
  const context = await browser.newContext({ locale: 'en-US', baseURL: server.url, viewport: { width: 1280, height: 800 } });
  await context.addCookies(await page.context().cookies());
  const there = await context.newPage();
  await there.goto('/market?pool=training');
  const heads = there.getByRole('grid').getByRole('columnheader');
  await expect(heads.first()).toHaveText('12 AM');
  await expect(heads.nth(18)).toHaveText('6 PM');
  for (const width of [1280, 375]) {
    await there.setViewportSize({ width, height: 800 });
    const edges = await heads.evaluateAll((all) => all.map((head) => head.getBoundingClientRect()).flatMap(({ left, right }) => [left, right]));
    expect(edges).toEqual([...edges].sort((a, b) => a - b));
  }
  await context.close();
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/market?pool=training');
    await expect(page.getByRole('grid')).toBeVisible();
    await expect(page.locator('.u-legend').first()).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}

test.describe('in the evening', () => {
  // Where it is evening now: the hours that have passed are more than a phone has room for.
  const east = ((20 - new Date().getUTCHours() + 36) % 24) - 12;
  test.use({ timezoneId: `Etc/GMT${east > 0 ? '-' : '+'}${Math.abs(east)}` });

  test('on a phone the fare calendar begins with the hour of now, and its days stay in sight', async ({ page }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/market?pool=training');
    const grid = page.getByRole('grid');
    await expect(grid.getByRole('button').first()).toBeVisible();
    // The first one that can be booked is seen, beside its day and not under it.
    const [day, hour, edge] = await grid.evaluate((map) => {
      const place = (one: Element | null | undefined) => one?.getBoundingClientRect();
      return [place(map.querySelector('[role=rowheader]'))?.right ?? 0, place(map.querySelector('button'))?.left ?? 0, place(map.parentElement)?.right ?? 0];
    });
    expect(day).toBeGreaterThan(0);
    expect(hour).toBeGreaterThanOrEqual(Math.floor(day));
    expect(hour).toBeLessThan(edge);
    await grid.evaluate((map) => map.parentElement?.scrollTo({ left: 10_000 }));
    await expect.poll(() => grid.evaluate((map) => map.querySelector('[role=rowheader]')?.getBoundingClientRect().right ?? 0)).toBeCloseTo(day, 0);
  });
});

test('fits a phone, in Chinese', async ({ browser, page, server }) => {
  const context = await browser.newContext({ locale: 'zh-CN', baseURL: server.url, viewport: { width: 375, height: 740 } });
  await context.addCookies(await page.context().cookies());
  const phone = await context.newPage();
  await phone.goto('/market?pool=training');
  await expect(phone.getByRole('heading', { name: '市场' })).toBeVisible();
  await expect(phone.getByRole('grid')).toBeVisible();
  expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  expect(await findings(phone)).toEqual([]);
  await context.close();
});
