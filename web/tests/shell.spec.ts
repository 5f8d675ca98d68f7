/** What surrounds every page: language, theme, palette, keyboard, phone, lost connections, policy. */
import { ADMIN, expect, findings, PASSWORD, test, TIGHT, tokenOf, USER } from './harness';
import { signIn } from './harness/sign-in';

test('speaks Chinese to a Chinese browser, and the reader can change that for good', async ({ browser, page, server }) => {
  const cookies = await page.context().cookies();
  const context = await browser.newContext({ locale: 'zh-CN', baseURL: server.url });
  await context.addCookies(cookies);
  const chinese = await context.newPage();
  await chinese.goto('/');
  await expect(chinese.getByRole('heading', { name: '概览' })).toBeVisible();
  await expect(chinese.locator('html')).toHaveAttribute('lang', 'zh-CN');
  expect(await findings(chinese)).toEqual([]);
  await chinese.getByRole('button', { name: '语言' }).click();
  await chinese.getByRole('menuitemradio', { name: 'English' }).click();
  await expect(chinese.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await chinese.reload();
  await expect(chinese.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await context.close();
});

test.describe('in Chinese', () => {
  test.use({ locale: 'zh-CN' });

  test('what the server says is said in Chinese too: why a job waits, and why something is refused', async ({ page, seeded }) => {
    await page.goto(`/jobs/${seeded.waiting}`);
    await expect(page.getByText(`等待中：等待作业 ${seeded.promised} 成功。`)).toBeVisible();
    await page.goto('/queues?queue=default');
    await expect(page.getByText(`等待中：等待作业 ${seeded.promised} 成功。`)).toBeVisible();
    await page.goto('/jobs/new?template=gpu');
    await page.getByRole('textbox', { name: '对您的价值' }).fill('0.01');
    await expect(page.getByText(/^最便宜的时段为 [\d.,]+，高于其价值 0.01/)).toBeVisible();
  });
});

test('is light or dark as the reader chooses, also after a reload', async ({ page }) => {
  await page.goto('/');
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  const light = await ground();
  await page.getByRole('button', { name: 'Theme' }).click();
  await page.getByRole('menuitemradio', { name: 'Dark' }).click();
  const dark = await ground();
  expect(dark).not.toBe(light);
  await page.reload();
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  expect(await ground()).toBe(dark);
});

test('Ctrl-K goes anywhere by a few letters, and to a job by its number', async ({ page, seeded }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  // The same keys close it again, and the focus is where it was.
  const before = page.getByRole('link', { name: 'New job' }).first();
  await before.focus();
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('combobox')).toBeFocused();
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('combobox')).toHaveCount(0);
  await expect(before).toBeFocused();
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('combobox')).toBeFocused();
  await page.keyboard.type('welc');
  await expect(page.getByRole('option').first()).toContainText('Welcome');
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/welcome$/);
  await page.keyboard.press('Control+k');
  await page.keyboard.type(`#${seeded.done}`);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/jobs/${seeded.done}$`));
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'Welcome to ERA' })).toBeVisible();
});

test('Ctrl-K finds jobs, data sets, nodes and pools by their names, and nothing of others', async ({ page, server, browser, seeded }) => {
  const token = await tokenOf(server, USER);
  await server.ask('POST', '/data', { name: 'resnet-pictures', visibility: 'private' }, token);
  const palette = page.getByRole('dialog', { name: 'Commands' });
  const option = palette.getByRole('option');
  const type = async (text: string) => {
    await expect(palette).toBeHidden();
    await page.keyboard.press('Control+k');
    await expect(palette.getByRole('combobox')).toBeFocused();
    await page.keyboard.type(text);
  };
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await type('resnet');
  await expect(option.filter({ hasText: 'resnet-sweep' })).toContainText(`#${seeded.promised}`);
  await expect(option.filter({ hasText: 'resnet-pictures' })).toContainText('Data set');
  expect(await findings(page)).toEqual([]);
  await expect(option.first()).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('ArrowDown');
  await expect(option.nth(1)).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/jobs/${seeded.promised}$`));
  // In the middle of a name, whatever its letters are.
  await type('SWEEP');
  await expect(option.filter({ hasText: 'resnet-sweep' })).toBeVisible();
  await page.keyboard.press('Escape');
  await type('resnet-pic');
  await expect(option).toHaveCount(1);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/data/${USER}/resnet-pictures$`));
  await type('h100-2');
  await expect(option).toHaveCount(1);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/cluster\?node=h100-2$/);
  await type('inference');
  await expect(option.filter({ hasText: 'Pool' })).toHaveCount(1);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/market\?pool=inference$/);
  const asked: string[] = [];
  page.on('request', (request) => request.url().includes('/data?') && asked.push(request.url()));
  await type('no-such-thing');
  await expect(page.getByText('Nothing is called that.')).toBeVisible();
  // Once for all that was typed, not for each letter of it.
  expect(asked).toHaveLength(1);
  // Somebody else finds the same nodes, and nothing of hers.
  const context = await browser.newContext({ baseURL: server.url, locale: 'en-GB' });
  await context.addCookies([{ name: 'era_session', value: await signIn(server, TIGHT, PASSWORD), url: server.url }]);
  const other = await context.newPage();
  await other.goto('/');
  await expect(other.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await other.keyboard.press('Control+k');
  await other.keyboard.type('h100-2');
  await expect(other.getByRole('option').filter({ hasText: 'h100-2' })).toBeVisible();
  await other.getByRole('combobox').fill('resnet-');
  await expect(other.getByText('Nothing is called that.')).toBeVisible();
  await context.close();
});

test('Ctrl-K finds old jobs by how their names begin, whatever their letters, and names of one letter', async ({ page, server, seeded }) => {
  const token = await tokenOf(server, USER);
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: '猫', work: { command: ['true'] }, ask: { resources: { cpu: '1', memory: '1Gi' }, duration_s: 60 }, after: [{ job: seeded.promised }] }, token);
  // As if a thousand newer ones stood before them.
  await page.route(({ pathname, searchParams }) => pathname === '/api/v1/jobs' && !searchParams.has('name'), async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), items: [] } });
  });
  await page.goto('/welcome');
  await expect(page.getByRole('heading', { name: 'Welcome to ERA' })).toBeVisible();
  await page.keyboard.press('Control+k');
  const option = page.getByRole('dialog', { name: 'Commands' }).getByRole('option');
  const box = page.getByRole('combobox');
  await box.fill('RESNET-SW');
  await expect(option.filter({ hasText: 'resnet-sweep' })).toContainText(`#${seeded.promised}`);
  await box.fill('猫');
  await expect(option.filter({ hasText: '猫' })).toContainText(`#${job}`);
  await server.ask('POST', `/jobs/${job}/cancel`);
});

test('the keyboard alone reaches the content and the menus', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
  await page.getByRole('button', { name: 'Theme' }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('menuitemradio').first()).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('menuitemradio', { name: 'Light' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('button', { name: 'Theme' })).toBeFocused();
});

test('whoever follows a link is at the heading of what it leads to, and the first page keeps out of the way', async ({ page, seeded }) => {
  // By its name: only what is in sight of a long list has links.
  await page.goto('/jobs?name=mnist-baseline');
  const list = page.getByRole('heading', { name: 'Jobs', level: 1 });
  await expect(list).toBeVisible();
  await expect(list).not.toBeFocused();
  await page.getByRole('main').locator(`a[href="/jobs/${seeded.done}"]`).first().press('Enter');
  // Also once what it is about has been loaded.
  await expect(page.getByRole('heading', { name: 'mnist-baseline', level: 1 })).toBeFocused();
  await page.getByRole('navigation').getByRole('link', { name: 'Market' }).click();
  await expect(page.getByRole('heading', { name: 'Market', level: 1 })).toBeFocused();
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'mnist-baseline', level: 1 })).toBeFocused();
});

test('on a phone the navigation is a drawer and nothing is wider than the screen', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 740 });
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  await expect(page.getByRole('navigation')).toBeHidden();
  await page.getByRole('button', { name: 'Open the navigation' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Welcome' }).click();
  await expect(page.getByRole('heading', { name: 'Welcome to ERA' })).toBeVisible();
  await expect(page.getByRole('navigation')).toBeHidden();
  expect(await findings(page)).toEqual([]);
});

test('the balance in the frame is the one of now: after a gift, and after a promise', async ({ page, server }) => {
  const written = (amount: number) => new Intl.NumberFormat('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(amount);
  const balance = async () => Number((await server.ask<{ balance: string }>('GET', `/users/${USER}/wallet`)).balance);
  await page.goto('/');
  const frame = page.getByRole('complementary').getByTitle(/ credits$/);
  const card = page.getByRole('main').locator('.stats');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  const before = await balance();
  await expect(frame).toContainText(written(before));
  await server.ask('POST', `/users/${USER}/grants`, { amount: '77' });
  expect(await balance()).toBeCloseTo(before + 77, 2);
  await expect(frame).toContainText(written(before + 77));
  await expect(card).toContainText(written(before + 77));
  const ask = { resources: { gpu: '1', cpu: '1', memory: '1Gi' }, duration_s: 600, earliest: new Date(Date.now() + 90 * 3_600_000).toISOString() };
  await server.ask('POST', '/jobs', { name: 'is-charged', work: { command: ['true'] }, ask, value: '500' }, await tokenOf(server, USER));
  const after = await balance();
  expect(after).toBeLessThan(before + 77);
  await expect(frame).toContainText(written(after));
  await expect(card).toContainText(written(after));
});

test('a server that goes away is told, and its return is noticed without a reload', async ({ page, server }) => {
  test.skip(Boolean(process.env.ERA_PAGE), 'what stands between keeps the connection open');
  await page.goto('/');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  await server.halt();
  await expect(page.getByText('Connection lost')).toBeVisible();
  // To a page whose files are not here yet.
  await page.getByRole('navigation').getByRole('link', { name: 'Market' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('The server does not answer.');
  await server.restart();
  await expect(page.getByRole('heading', { name: 'Market', level: 1 })).toBeVisible();
  await expect(page.getByText('Connection lost')).toBeHidden();
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
});

test('a page whose files do not come is there, with its looks, as soon as they do', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  const documents: string[] = [];
  page.on('request', (request) => request.isNavigationRequest() && documents.push(request.url()));
  await page.route(({ pathname }) => !pathname.startsWith('/api/'), (route) => route.abort('connectionrefused'));
  await page.getByRole('navigation').getByRole('link', { name: 'Market' }).click();
  const alert = page.getByRole('main').getByRole('alert');
  await expect(alert).toContainText('The server does not answer.');
  await expect(alert).not.toContainText('CSS');
  expect(await findings(page)).toEqual([]);
  // Trying again is no way into the browser's own page of errors.
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect(alert).toBeVisible();
  expect(documents).toEqual([]);
  await page.unrouteAll();
  await expect(page.getByRole('heading', { name: 'Market', level: 1 })).toBeVisible();
  await expect(page).toHaveURL(/\/market$/);
  await expect(page.locator('main .stats')).toHaveCSS('display', 'grid');
  expect(documents).toHaveLength(1);
});

test('a part of a page whose files do not come is there as soon as they do: charts', async ({ page, seeded }) => {
  const documents: string[] = [];
  page.on('request', (request) => request.isNavigationRequest() && documents.push(request.url()));
  // As of a server that is away: neither the library nor the document comes.
  const away = ({ pathname }: URL) => pathname.startsWith('/assets/uPlot') || pathname === '/';
  await page.goto(`/jobs/${seeded.done}`);
  await page.route(away, (route) => route.abort('connectionrefused'));
  await page.getByRole('tab', { name: 'Metrics' }).click();
  const chart = page.locator('figure').filter({ has: page.getByRole('img', { name: 'loss' }) });
  await expect(chart.getByRole('status')).toHaveText('This chart comes once the server answers.');
  expect(await findings(page)).toEqual([]);
  await page.unrouteAll();
  await expect(chart.locator('canvas')).toBeVisible();
  await expect(chart.getByRole('status')).toHaveCount(0);
  await expect(page).toHaveURL(/\?tab=metrics$/);
  expect(documents).toHaveLength(2);
});

test('a part of a page whose files do not come is there as soon as they do: a new job as YAML', async ({ page }) => {
  await page.route(({ pathname }) => pathname.startsWith('/assets/yaml') || pathname === '/', (route) => route.abort('connectionrefused'));
  await page.goto('/jobs/new');
  await page.getByRole('textbox', { name: 'Command', exact: true }).fill('python kept.py');
  const alert = page.getByRole('tabpanel').getByRole('alert');
  await expect(alert).toContainText('The server does not answer.');
  expect(await findings(page)).toEqual([]);
  // Not while something is being written; and what was written is there afterwards.
  await page.unrouteAll();
  await page.getByRole('textbox', { name: 'Command', exact: true }).blur();
  await expect(page.getByRole('textbox', { name: 'YAML' })).toHaveValue(/kept\.py/);
  await expect(alert).toHaveCount(0);
});

test('a part of a page that cannot be had is asked for in one new document, and then it is said', async ({ page, seeded }) => {
  const documents: string[] = [];
  page.on('request', (request) => request.isNavigationRequest() && documents.push(request.url()));
  await page.route(({ pathname }) => pathname.startsWith('/assets/uPlot'), (route) => route.fulfill({ status: 404 }));
  await page.goto(`/jobs/${seeded.done}?tab=metrics`);
  const chart = page.locator('figure').filter({ has: page.getByRole('img', { name: 'loss' }) });
  await expect(chart.getByRole('status')).toContainText('could not be loaded');
  expect(documents).toHaveLength(2);
  // The others of the page are there.
  await page.getByRole('tab', { name: 'Outputs' }).click();
  await expect(page.getByRole('link', { name: 'Download model.json' })).toBeVisible();
});

test('a page that cannot be had is asked for in one new document, and then it is said', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  const documents: string[] = [];
  page.on('request', (request) => request.isNavigationRequest() && documents.push(request.url()));
  await page.route(/\/assets\/Market-.*\.js/, (route) => route.fulfill({ status: 404 }));
  await page.getByRole('navigation').getByRole('link', { name: 'Market' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('This page could not be loaded');
  expect(documents).toHaveLength(1);
  // Others are there.
  await page.getByRole('navigation').getByRole('link', { name: 'Wallet' }).click();
  await expect(page.getByRole('heading', { name: 'Wallet', level: 1 })).toBeVisible();
});

test('windows of one browser share one stream, and another takes over when its holder closes', async ({ page }) => {
  const opened: string[] = [];
  const listen = (name: string) => (request: { url(): string }) => request.url().endsWith('/events/stream') && opened.push(name);
  page.on('request', listen('first'));
  await page.goto('/');
  await expect(page.getByRole('img', { name: 'Live' })).toBeVisible();
  const second = await page.context().newPage();
  second.on('request', listen('second'));
  await second.goto('/welcome');
  await expect(second.getByRole('img', { name: 'Live' })).toBeVisible();
  expect(opened).toEqual(['first']);
  await page.close();
  await expect.poll(() => opened).toEqual(['first', 'second']);
  await expect(second.getByRole('img', { name: 'Live' })).toBeVisible();
});

test('an address that leads nowhere says so, and the policy forbids inline scripts', async ({ page, complaints }) => {
  const response = await page.goto('/no/such/place');
  await expect(page.getByText('There is no page here')).toBeVisible();
  const policy = response?.headers()['content-security-policy'] ?? '';
  expect(policy).toContain("script-src 'self'");
  expect(policy).not.toContain('unsafe-inline');
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.intruded = true';
    document.body.append(script);
    return 'intruded' in window;
  });
  expect(ran).toBe(false);
  await expect.poll(() => complaints.join()).toContain('Content Security Policy');
  complaints.length = 0;
});

test.describe('for administrators', () => {
  test.use({ account: ADMIN });
  test('the same frame has their name', async ({ page }) => {
    await page.goto('/');
    await expect(page.getByTitle(`Signed in as ${ADMIN}`)).toBeVisible();
  });
});
