/** The cluster: the map with who holds what, promises over time, domains, and administering nodes. */
import { ADMIN, expect, findings, OVERLOADED, PASSWORD, takeNodes, test, THEMES, until, USER } from './harness';

interface WireNode {
  name: string;
  health: string;
  domain: string | null;
  maintenance: { from: string; to: string }[];
}

test('shows every node by pool, finds one by name, and its promises beside it', async ({ page, seeded }) => {
  await page.goto('/cluster');
  await expect(page.getByRole('heading', { name: 'Cluster' })).toBeVisible();
  const training = page.getByRole('region', { name: 'training' });
  await expect(training.getByRole('button')).toHaveCount(4);
  await expect(page.getByRole('region', { name: 'inference' }).getByRole('button')).toHaveCount(3);
  await page.getByRole('searchbox').fill('h100');
  await expect(page.getByRole('region', { name: 'inference' })).toBeHidden();
  await expect(page).toHaveURL(/q=h100/);

  // Among the nodes of the pool is one on which the researcher's promise lies.
  const names = await training.getByRole('button').evaluateAll((tiles) => tiles.map((tile) => (tile as HTMLElement).dataset.node ?? ''));
  let found = false;
  for (const name of names) {
    await training.locator(`[data-node="${name}"]`).click();
    const panel = page.getByRole('complementary', { name: `Node ${name}` });
    await expect(panel.getByText('Promised next')).toBeVisible();
    await expect(panel.getByText(/Nothing is promised|–/).first()).toBeVisible();
    found ||= (await panel.locator(`a[href="/jobs/${seeded.promised}"]`).count()) > 0;
  }
  expect(found).toBe(true);
  // Whoever administers nothing is offered nothing to administer.
  await expect(page.getByRole('button', { name: 'Drain' })).toBeHidden();
});

test('what holds a node is named on the map and beside it, and colours it', async ({ page, server }) => {
  const ask = { resources: { cpu: '500m', memory: '64Mi' }, duration_s: 600, constraints: { pool: 'default' } };
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: PASSWORD, label: 'map' });
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'holds-a-core', work: { command: ['sleep', '500'] }, ask }, token);
  const read = () => server.ask<{ state: string; tasks: { node: string }[] }>('GET', `/jobs/${job}`);
  try {
    await until(async () => (await read()).state === 'running');
    const node = (await read()).tasks[0]?.node ?? '';
    await page.goto('/cluster?pool=default');
    const tile = page.locator(`[data-node="${node}"]`);
    await expect(tile).toContainText('holds-a-core');
    await expect(tile).not.toContainText(/(?<!\d)0%/);
    await tile.click();
    const panel = page.getByRole('complementary', { name: `Node ${node}` });
    await expect(panel.locator(`a[href="/jobs/${job}"]`).first()).toBeVisible();
  } finally {
    await server.ask('POST', `/jobs/${job}/cancel`);
  }
});

test('what others promise is seen by whoever looks, without a reload, and not whose it is', async ({ page, server }) => {
  const panel = page.getByRole('complementary', { name: 'Node l4-1' });
  const next = panel.locator('section').filter({ hasText: 'Promised next' }).getByRole('listitem');
  const ahead = async () => {
    const to = new Date(Date.now() + 30 * 86_400_000).toISOString();
    return (await server.ask<{ kind: string }[]>('GET', `/nodes/l4-1/bookings?to=${to}`)).filter(({ kind }) => kind !== 'running').length;
  };
  await page.goto('/cluster?view=promises&pool=inference&node=l4-1');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  const chart = page.getByRole('application');
  await expect(chart).toContainText(/3 rows, \d+ bars/);
  await expect(next).toHaveCount(await ahead());
  const bars = async () => Number(/3 rows, (\d+) bars/.exec((await chart.textContent()) ?? '')?.[1]);
  const before = await bars();
  const job = await takeNodes(server, 'inference', 3, [500, 501]);
  try {
    await expect.poll(bars).toBeGreaterThanOrEqual(before + 3);
    await expect(next).toHaveCount(await ahead());
    await expect(panel.getByText('promised', { exact: true })).toBeVisible();
    await expect(page.getByText('of-somebody-else')).toBeHidden();
  } finally {
    await server.ask('POST', `/jobs/${job}/cancel`);
  }
  await expect.poll(bars).toBe(before);
});

test('jobs are named though more hold the cluster than are listed', async ({ page, seeded }) => {
  // Of those who hold the cluster the first pages are given back empty, as if all were others.
  const asked: string[] = [];
  await page.route('**/api/v1/jobs?*', async (route) => {
    const query = new URL(route.request().url()).searchParams;
    if (query.has('ids')) asked.push(query.get('ids') ?? '');
    if (query.has('ids')) return route.continue();
    return route.fulfill({ json: { items: [], next: 'there-are-more' } });
  });
  await page.goto('/cluster?view=promises&pool=training');
  const chart = page.getByRole('application');
  await expect(chart).toContainText(/4 rows, [1-9]\d* bars/);
  await expect.poll(() => asked.join(',').split(',')).toContain(String(seeded.promised));
  await chart.focus();
  const said = chart.getByRole('status');
  for (let row = 0; row < 4; row += 1) {
    await page.keyboard.press('Shift+ArrowDown');
    await expect(said).not.toBeEmpty();
    for (let bar = 0; bar < 8 && !/resnet-sweep/.test((await said.textContent()) ?? ''); bar += 1) await page.keyboard.press('Shift+ArrowRight');
    if (/resnet-sweep/.test((await said.textContent()) ?? '')) break;
  }
  await expect(said).toContainText('resnet-sweep');
});

test('the keyboard walks over the map, opens a node and comes back', async ({ page }) => {
  await page.goto('/cluster?pool=training');
  const tiles = page.getByRole('region', { name: 'training' }).getByRole('button');
  await expect(tiles).toHaveCount(4);
  await tiles.first().focus();
  await page.keyboard.press('ArrowRight');
  await expect(tiles.nth(1)).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('complementary', { name: /Node / }).getByRole('heading').first()).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('complementary', { name: /Node / })).toBeHidden();
  await expect(tiles.nth(1)).toBeFocused();
});

test('promises over time are drawn, zoomed, moved, and lead to a job', async ({ page, seeded, server }) => {
  await page.goto('/cluster?view=promises&pool=training');
  const chart = page.getByRole('application', { name: 'Promises on every node over time' });
  await expect(chart).toContainText(/4 rows, [1-9]\d* bars/);
  await page.getByText('30 days', { exact: true }).click();
  await chart.focus();
  for (const key of ['+', '+', 'ArrowRight', 'ArrowLeft', '-']) await page.keyboard.press(key);
  await page.getByText('1 day', { exact: true }).click();
  // Whoever cannot drag moves it by buttons.
  const drawn = () => chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  for (const name of ['Later', 'Earlier']) {
    const before = await drawn();
    await page.getByRole('button', { name }).click();
    await expect.poll(drawn).not.toBe(before);
  }
  await page.getByRole('button', { name: 'Now' }).click();

  // The researcher's own promise is clicked where the server says that it lies.
  const job = await server.ask<{ promised_start: string; promised_finish: string }>('GET', `/jobs/${seeded.promised}`);
  const nodes = await server.list<WireNode>('/nodes');
  const training = nodes.filter(({ name }) => name.startsWith('h100')).map(({ name }) => name).sort();
  let at: { row: number; gpu: number } | undefined;
  for (const [row, name] of training.entries()) {
    const to = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const bookings = await server.ask<{ job: number; gpus: number[] }[]>('GET', `/nodes/${name}/bookings?to=${to}`);
    const mine = bookings.find((booking) => booking.job === seeded.promised);
    if (mine) at = { row, gpu: mine.gpus[0] ?? 0 };
  }
  if (!at) throw new Error('the promise lies on no node');
  const box = await chart.locator('canvas').boundingBox();
  if (!box) throw new Error('there is no chart');
  const [left, head, rowHeight] = [116, 26, 52];
  const from = Date.now() - 3_600_000;
  const middle = (Date.parse(job.promised_start) + Date.parse(job.promised_finish)) / 2;
  const x = left + ((middle - from) / 86_400_000) * (box.width - left);
  await chart.locator('canvas').click({ position: { x, y: head + at.row * rowHeight + 4 + (at.gpu * (rowHeight - 5)) / 8 } });
  await expect(page).toHaveURL(new RegExp(`/jobs/${seeded.promised}$`));
});

test('the keyboard alone picks a promise on the chart and opens it', async ({ page, seeded }) => {
  await page.goto('/cluster?view=promises&pool=training');
  const chart = page.getByRole('application');
  await expect(chart).toContainText(/4 rows, [1-9]\d* bars/);
  await chart.focus();
  const said = chart.getByRole('status');
  const mine = /resnet-sweep/;
  for (let row = 0; row < 4; row += 1) {
    await page.keyboard.press('Shift+ArrowDown');
    await expect(said).not.toBeEmpty();
    for (let bar = 0; bar < 8 && !mine.test((await said.textContent()) ?? ''); bar += 1) await page.keyboard.press('Shift+ArrowRight');
    if (mine.test((await said.textContent()) ?? '')) break;
  }
  // Its kind is said too: its colour is not heard.
  await expect(said).toContainText(/resnet-sweep, promised, /);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/jobs/${seeded.promised}$`));
});

test.describe('by touch', () => {
  test.use({ hasTouch: true, viewport: { width: 740, height: 360 } });
  test('rows scroll under the finger, then the page does, and a finger that the system takes chooses nothing', async ({ page }) => {
    await page.goto('/cluster?view=promises');
    const chart = page.getByRole('application');
    await expect(chart).toContainText(/8 rows, [1-9]\d* bars/);
    const canvas = chart.locator('canvas');
    await canvas.scrollIntoViewIfNeeded();
    const session = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd' | 'touchCancel', ...points: [number, number][]) =>
      session.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
    const box = async () => {
      const found = await canvas.boundingBox();
      if (!found) throw new Error('there is no chart');
      return found;
    };
    const swipe = async (by: number) => {
      const { x, y, height } = await box();
      const from = y + (by < 0 ? height - 20 : 40);
      await touch('touchStart', [x + 300, from]);
      for (let step = 1; step <= 10; step += 1) await touch('touchMove', [x + 300, from + (by * step) / 10]);
      await touch('touchEnd');
    };
    const rowAt = async () => {
      const { x, y } = await box();
      await page.touchscreen.tap(x + 20, y + 26 + 20);
      const panel = page.getByRole('complementary', { name: /^Node / });
      await expect(panel).toBeVisible();
      const name = await panel.getAttribute('aria-label');
      await panel.getByRole('button', { name: 'Close the details' }).click();
      await expect(panel).toBeHidden();
      await canvas.scrollIntoViewIfNeeded();
      return name;
    };
    const first = await rowAt();
    const top = await page.evaluate(() => scrollY);
    await swipe(-110);
    expect(await page.evaluate(() => scrollY), 'the page stays where it is while rows scroll').toBe(top);
    expect(await rowAt()).not.toBe(first);
    // At the last row the same finger moves the page, as far as there is page.
    await swipe(-200);
    await page.evaluate(() => scrollTo(0, 0));
    await swipe(-150);
    await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(0);
    // A finger that the system takes away: nothing is opened, and the next touch begins anew.
    await canvas.scrollIntoViewIfNeeded();
    const { x, y } = await box();
    await touch('touchStart', [x + 20, y + 60]);
    await touch('touchCancel');
    await expect(page.getByRole('complementary', { name: /^Node / })).toBeHidden();
    // Two fingers that part show less time: the chosen span is none of the usual ones any more.
    await page.getByText('7 days', { exact: true }).click();
    await expect(page.getByRole('radio', { name: '7 days' })).toBeChecked();
    await canvas.scrollIntoViewIfNeeded();
    const at = await box();
    await touch('touchStart', [at.x + 340, at.y + 100], [at.x + 380, at.y + 100]);
    for (let step = 1; step <= 8; step += 1) await touch('touchMove', [at.x + 340 - step * 10, at.y + 100], [at.x + 380 + step * 10, at.y + 100]);
    await touch('touchEnd');
    await expect(page.getByRole('radio', { name: '7 days' })).not.toBeChecked();
  });
});

test.describe('for administrators', () => {
  test.use({ account: ADMIN });
  const node = 'l4-2';
  const state = (server: { ask<T>(method: string, path: string): Promise<T> }) => server.ask<WireNode>('GET', `/nodes/${node}`);

  test('a node among the domains is opened by keyboard, not by a double click alone', async ({ page }) => {
    await page.goto('/cluster?view=domains');
    const chip = page.getByRole('button', { name: node, exact: true });
    await chip.focus();
    await page.keyboard.press('Enter');
    await expect(chip).toHaveAttribute('aria-pressed', 'true');
    await page.getByRole('button', { name: `Open ${node}` }).press('Enter');
    await expect(page.getByRole('complementary', { name: `Node ${node}` })).toBeVisible();
  });

  test('the way back stays while one points at it or is on it by keyboard', async ({ page, server }) => {
    await page.clock.install();
    await page.goto(`/cluster?node=${node}`);
    const panel = page.getByRole('complementary', { name: `Node ${node}` });
    await panel.getByRole('button', { name: 'Drain' }).click();
    await page.getByRole('dialog', { name: `Drain ${node}` }).getByRole('button', { name: 'Drain' }).click();
    const undo = page.getByRole('button', { name: 'Undo' });
    await expect(undo).toBeVisible();
    await page.clock.runFor(10_000);
    await expect(undo).toBeVisible();
    await undo.hover();
    await page.clock.runFor(60_000);
    await expect(undo).toBeVisible();
    await undo.focus();
    await page.mouse.move(5, 5);
    await page.clock.runFor(60_000);
    await expect(undo).toBeVisible();
    await page.keyboard.press('Enter');
    await until(async () => (await state(server)).health === 'up');
  });

  test('a bar leads to its job, also where its name is not known', async ({ page, seeded }) => {
    await page.route('**/api/v1/jobs?*', (route) => route.fulfill({ json: { items: [], next: null } }));
    await page.goto('/cluster?view=promises&pool=training');
    const chart = page.getByRole('application');
    await expect(chart).toContainText(/4 rows, [1-9]\d* bars/);
    await chart.focus();
    const said = chart.getByRole('status');
    const mine = new RegExp(`#${seeded.promised}(?!\\d)`);
    for (let row = 0; row < 4; row += 1) {
      await page.keyboard.press('Shift+ArrowDown');
      await expect(said).not.toBeEmpty();
      for (let bar = 0; bar < 8 && !mine.test((await said.textContent()) ?? ''); bar += 1) await page.keyboard.press('Shift+ArrowRight');
      if (mine.test((await said.textContent()) ?? '')) break;
    }
    await expect(said).toContainText(mine);
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(new RegExp(`/jobs/${seeded.promised}$`));
  });

  test('a node is drained, which can be undone', async ({ page, server }) => {
    await page.goto(`/cluster?node=${node}`);
    const panel = page.getByRole('complementary', { name: `Node ${node}` });
    await panel.getByRole('button', { name: 'Drain' }).click();
    const dialog = page.getByRole('dialog', { name: `Drain ${node}` });
    // What is refused is told where it can be read: in the dialog.
    await page.route(`**/api/v1/nodes/${node}`, (route) => route.fulfill(OVERLOADED), { times: 1 });
    await dialog.getByRole('button', { name: 'Drain' }).click();
    await expect(dialog.getByRole('alert')).toContainText('busy');
    await dialog.getByRole('button', { name: 'Drain' }).click();
    await expect(page.getByText(`${node} drains: it takes nothing new`)).toBeVisible();
    expect((await state(server)).health).toBe('draining');
    await expect(page.locator(`[data-node="${node}"]`)).toContainText('draining');
    await expect(panel.getByRole('button', { name: 'Drain otherwise' })).toBeFocused();
    await page.getByRole('button', { name: 'Undo' }).click();
    await until(async () => (await state(server)).health === 'up');
    await expect(panel.getByRole('button', { name: 'Drain' })).toBeVisible();
  });

  test('a drain with a time says when, and one at once stops what runs, which goes on when there is room', async ({ page, server }) => {
    // What is stopped has its grace period.
    // On the machine itself: simulated tasks are over too soon.
    const asks = { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 3600, constraints: { pool: 'default' } };
    const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'to-be-moved', work: { command: ['sleep', '3000'] }, ask: asks });
    const read = () => server.ask<{ state: string; tasks: { node: string; attempt: number }[] }>('GET', `/jobs/${job}`);
    await until(async () => (await read()).state === 'running');
    const home = (await read()).tasks[0]?.node ?? '';
    await page.goto(`/cluster?node=${home}`);
    const panel = page.getByRole('complementary', { name: `Node ${home}` });
    await panel.getByRole('button', { name: 'Drain' }).click();
    const dialog = page.getByRole('dialog', { name: `Drain ${home}` });
    await expect(dialog).toContainText('1 job runs on it now');
    await dialog.getByLabel('Stop it at a time').check();
    await dialog.getByLabel('At, in your own time zone').fill('2020-01-01T00:00');
    await dialog.getByRole('button', { name: 'Drain' }).click();
    await expect(dialog.getByText('Give a day and a time that are still to come.')).toBeVisible();
    const soon = new Date(Date.now() + 3 * 3_600_000);
    const two = (part: number) => String(part).padStart(2, '0');
    await dialog.getByLabel('At, in your own time zone').fill(`${soon.getFullYear()}-${two(soon.getMonth() + 1)}-${two(soon.getDate())}T${two(soon.getHours())}:${two(soon.getMinutes())}`);
    expect(await findings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Drain' }).click();
    await expect(panel).toContainText('is told to stop and goes on elsewhere');
    expect((await read()).state).toBe('running');

    await panel.getByRole('button', { name: 'Drain otherwise' }).click();
    await dialog.getByLabel('Stop it now').check();
    await dialog.getByRole('button', { name: 'Stop and drain' }).click();
    await until(async () => (await read()).state === 'waiting');
    await expect(panel).toContainText('It is empty.');
    await panel.getByRole('button', { name: 'Resume' }).click();
    await until(async () => (await read()).state === 'running');
    expect((await read()).tasks[0]?.attempt).toBe(2);
    await page.goto(`/jobs/${job}`);
    await expect(page.getByText(/its node is drained; it goes on elsewhere$/)).toBeVisible();
    await server.ask('POST', `/jobs/${job}/cancel`);
  });

  test('a node is cordoned, then drained, then takes work again', async ({ page, server }) => {
    await page.goto(`/cluster?node=${node}`);
    const panel = page.getByRole('complementary', { name: `Node ${node}` });
    await panel.getByRole('button', { name: 'Cordon' }).click();
    await expect(page.getByText(`${node} is cordoned: it takes nothing new.`)).toBeVisible();
    expect((await state(server)).health).toBe('cordoned');
    await expect(page.locator(`[data-node="${node}"]`)).toContainText('cordoned');
    await panel.getByRole('button', { name: 'Drain' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
    await until(async () => (await state(server)).health === 'draining');
    // The way back is to how it stood.
    await page.getByRole('status').or(page.locator('body')).getByText(`${node} drains: it takes nothing new`).waitFor();
    await panel.getByRole('button', { name: 'Resume' }).click();
    await until(async () => (await state(server)).health === 'up');
    await expect(panel.getByRole('button', { name: 'Cordon' })).toBeVisible();
  });

  test('an absence is announced and taken back; one that is wrong is told before it is sent', async ({ page, server }) => {
    await page.goto(`/cluster?node=${node}`);
    const panel = page.getByRole('complementary', { name: `Node ${node}` });
    await panel.getByRole('button', { name: 'Announce an absence' }).click();
    const end = panel.getByLabel('Until');
    const good = await end.inputValue();
    await end.fill('2020-01-01T00:00');
    await panel.getByRole('button', { name: 'Announce', exact: true }).click();
    await expect(panel.getByText('It ends before it begins.')).toBeVisible();
    expect((await state(server)).maintenance).toEqual([]);
    await end.fill(good);
    await panel.getByRole('button', { name: 'Announce', exact: true }).click();
    await expect(panel.getByRole('button', { name: /Take back the absence/ })).toBeVisible();
    const [window] = (await state(server)).maintenance;
    expect(Date.parse(window?.to ?? '') - Date.parse(window?.from ?? '')).toBe(2 * 3_600_000);
    await panel.getByRole('button', { name: /Take back the absence/ }).click();
    await until(async () => (await state(server)).maintenance.length === 0);
  });

  test('a domain is made, nodes are moved into it, and it goes when it is empty', async ({ page, server }) => {
    await page.goto('/cluster?view=domains');
    const make = page.getByRole('button', { name: 'New domain' });
    await make.click();
    await page.getByLabel('Name').fill('lab');
    await page.getByLabel(/Kept share/).fill('25');
    await page.getByLabel(/at least so many GPUs/).fill('8');
    await page.getByRole('button', { name: 'Save' }).click();
    const area = page.getByRole('region', { name: 'lab' });
    await expect(area).toContainText('Keeps 25% for jobs of 8 or more GPUs');
    await expect(make).toBeFocused();

    const none = page.getByRole('region', { name: 'No domain' });
    await none.getByRole('button', { name: 'l4-0' }).click();
    await none.getByRole('button', { name: 'l4-1' }).click();
    await page.getByRole('button', { name: 'Move to…' }).click();
    await page.getByRole('menuitem', { name: 'lab' }).click();
    await expect(area.getByRole('button', { name: 'l4-1' })).toBeVisible();
    expect((await server.ask<WireNode>('GET', '/nodes/l4-0')).domain).toBe('lab');
    await expect(page.getByRole('button', { name: 'Remove domain lab' })).toBeDisabled();

    await page.getByRole('button', { name: 'Undo' }).click();
    await expect(none.getByRole('button', { name: 'l4-0' })).toBeVisible();
    await none.getByRole('button', { name: 'l4-2' }).dragTo(area);
    await expect(area.getByRole('button', { name: 'l4-2' })).toBeVisible();
    await area.getByRole('button', { name: 'l4-2' }).dragTo(none);
    await expect(area).toContainText('Drop nodes here.');
    await page.getByRole('button', { name: 'Remove domain lab' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await expect(area).toBeHidden();
  });

  for (const theme of THEMES) {
    test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: theme });
      const views: [string, string | RegExp][] = [
        [`/cluster?node=${node}`, 'Promised next'],
        ['/cluster?view=promises', /\d+ rows, [1-9]\d* bars/],
        ['/cluster?view=domains', 'Drag nodes from one area to another'],
      ];
      for (const [path, shown] of views) {
        await page.goto(path);
        await expect(page.getByText(shown).first()).toBeAttached();
        expect(await findings(page), path).toEqual([]);
      }
    });
  }
});

test('fits a phone', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 740 });
  for (const path of ['/cluster?node=h100-0', '/cluster?view=promises', '/cluster?view=domains']) {
    await page.goto(path);
    await expect(page.getByRole('searchbox')).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(375);
  }
});
