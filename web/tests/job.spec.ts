/** One job: log while it runs, metrics, outputs, cost, why it waits, cancel, retry; and comparing. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from '@playwright/test';
import { expect, findings, test, THEMES, tokenOf, until, USER } from './harness';

const slow = ['import time', 'for step in range(60):', "    print(f'line {step}', flush=True)", "    print(f'era: metric loss={1/(step+1):.4f} step={step}', flush=True)", '    time.sleep(0.25)'].join('\n');

/** All times of a job's page have seconds; what counts down to one is none. */
async function timesHaveSeconds(page: Page, least: number) {
  const main = page.getByRole('main');
  await expect(main.locator('.skeleton')).toHaveCount(0);
  // Of the very same moment, or a countdown is told between the two.
  const { text, times } = await main.evaluate((shown: HTMLElement) => {
    const counting = [...shown.querySelectorAll('dt')].filter((term) => /^(Starts|Ends) in$/.test(term.textContent ?? '')).map((term) => term.nextElementSibling as HTMLElement);
    for (const one of counting) one.hidden = true;
    const told = { text: shown.innerText, times: [...shown.querySelectorAll('time')].filter((time) => !counting.some((one) => one.contains(time))).map((time) => time.textContent ?? '') };
    for (const one of counting) one.hidden = false;
    return told;
  });
  expect(text).not.toMatch(/(?<![\d:])\d\d:\d\d(?![\d:])/);
  expect(times.length).toBeGreaterThanOrEqual(least);
  for (const time of times) expect(time).toMatch(/\d\d:\d\d:\d\d$/);
}

test('the log comes while it runs, can be searched, and cancelling stops it', async ({ page, server }) => {
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'log' });
  const job = { name: 'talks', work: { command: ['python3', '-c', slow] }, ask: { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 120, constraints: { pool: 'default' } } };
  const made = await server.ask<{ job: number }>('POST', '/jobs', job, login.token);
  await page.goto(`/jobs/${made.job}?tab=logs`);
  const log = page.getByRole('log');
  await expect(log).toContainText('line 1');
  await expect(log).toContainText('line 5');
  await page.getByRole('searchbox', { name: 'Search the log' }).fill('line 3');
  await expect(page.getByText(/of [\d,]+ lines/)).toBeVisible();
  await expect(log.locator('mark').first()).toHaveText('line 3');
  // Its metrics come while it runs, too: the last value falls.
  await page.getByRole('tab', { name: 'Metrics' }).click();
  const loss = page.locator('figure').filter({ has: page.getByRole('img', { name: 'loss' }) });
  await expect(loss.locator('canvas')).toBeVisible();
  const before = await loss.locator('figcaption').textContent();
  await expect(loss.locator('figcaption')).not.toHaveText(before ?? '');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await expect(page.getByText('Cancelled', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(page.getByRole('dialog')).toContainText('It waits in the queue default and pays for what it uses, for 2 min at most.');
  await page.getByRole('button', { name: 'Submit it' }).click();
  await expect(page).toHaveURL((url) => url.pathname !== `/jobs/${made.job}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await expect(page.getByText('Cancelled', { exact: true })).toBeVisible();
});

test('cancelling says what comes back, and a retry what it costs now, before anything is spent', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const ask = { resources: { cpu: '8', memory: '8Gi', gpu: '1' }, duration_s: 3600, earliest: at(60), deadline: at(80), constraints: { pool: 'training' } };
  // Handed in as the command line does for whoever says no worth: the price is written as both.
  const { quote } = await server.ask<{ quote: { price: string } }>('POST', '/quotes', { ask }, token);
  const made = await server.ask<{ job: number; quote: { price: string } }>('POST', '/jobs', { name: 'given-back', work: { command: ['true'] }, ask, value: quote.price, most: quote.price }, token);
  const balance = async () => Number((await server.ask<{ balance: string }>('GET', `/users/${USER}/wallet`)).balance);
  await page.goto(`/jobs/${made.job}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  const dialog = page.getByRole('dialog');
  const told = /([\d.,]+) of the ([\d.,]+) credits paid for it come back/.exec((await dialog.textContent()) ?? '');
  expect(told?.[2]).toBe(Number(made.quote.price).toFixed(2));
  expect(await findings(page)).toEqual([]);
  const before = await balance();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await expect(page.getByText('Cancelled', { exact: true })).toBeVisible();
  expect((await balance()) - before).toBeCloseTo(Number(told?.[1]), 2);

  const left = await balance();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(dialog).toContainText(/It costs [\d.]+ credits now, and runs from .+ until .+\./);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(dialog).toBeHidden();
  expect(await balance()).toBe(left);
  await page.getByRole('button', { name: 'Retry' }).click();
  const agreed = /costs ([\d.]+) credits/.exec((await dialog.textContent()) ?? '')?.[1];
  await page.getByRole('button', { name: `Submit it for ${agreed}` }).click();
  await expect(page).toHaveURL((url) => /\/jobs\/\d+$/.test(url.pathname) && url.pathname !== `/jobs/${made.job}`);
  expect(left - (await balance())).toBeCloseTo(Number(agreed), 2);
  await server.ask('POST', `/jobs/${/\d+$/.exec(page.url())?.[0]}/cancel`);
});

test('a retry goes on from what was saved, or from the beginning where that is wanted, and says which', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const work = "import os\nhere = os.environ['ERA_CHECKPOINTS']\nprint('found', sorted(os.listdir(here)), flush=True)\nopen(os.path.join(here, 'step-1'), 'w').write('weights')\n";
  const job = { name: 'goes-on', work: { command: ['python3', '-c', work] }, ask: { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 60, constraints: { pool: 'default' } } };
  const { job: id } = await server.ask<{ job: number }>('POST', '/jobs', job, token);
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${id}`)).state === 'succeeded');
  const dialog = page.getByRole('dialog');
  for (const [fresh, found] of [[false, "found ['step-1']"], [true, 'found []']] as const) {
    await page.goto(`/jobs/${id}`);
    await page.getByRole('button', { name: 'Retry' }).click();
    await expect(dialog).toContainText('It goes on from the checkpoints that it saved.');
    const box = dialog.getByRole('checkbox', { name: 'Start from the beginning' });
    await expect(box).not.toBeChecked();
    if (fresh) await box.check();
    expect(await findings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Submit it' }).click();
    await expect(page).toHaveURL((url) => /\/jobs\/\d+$/.test(url.pathname) && url.pathname !== `/jobs/${id}`);
    await page.getByRole('tab', { name: 'Log' }).click();
    await expect(page.getByRole('log')).toContainText(found);
  }
});

test('of a failed job its last lines are seen at once, of the task that failed, and its times to the second', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  const fails = "import os, sys, time\nif os.environ['ERA_RANK'] == '0':\n    print('nothing wrong here', flush=True)\n    time.sleep(60)\nfor line in range(400):\n    print(f'line {line}')\nsys.stdout.flush()\nprint('RuntimeError: <b>out of luck</b>' + ' and of memory' * 12, file=sys.stderr, flush=True)\nsys.exit(3)";
  const job = { name: 'fails', work: { command: ['python3', '-c', fails] }, ask: { resources: { cpu: '100m', memory: '64Mi' }, replicas: 2, duration_s: 120, constraints: { pool: 'default' } } };
  const { job: id } = await server.ask<{ job: number }>('POST', '/jobs', job, token);
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${id}`)).state === 'failed');
  await page.goto(`/jobs/${id}`);
  const last = page.getByRole('group', { name: 'Last lines of its log' });
  await expect(page.getByRole('heading', { name: 'Last lines of replica 1, attempt 1' })).toBeVisible();
  await expect(last).toContainText('line 399');
  await expect(last).toContainText('RuntimeError: <b>out of luck</b>');
  await expect(last).not.toContainText('nothing wrong here');
  await expect(last).not.toContainText('line 300');
  // The very last one, which says what is wrong, is seen without scrolling, on a phone too.
  const phone = { width: 390, height: 844 };
  for (const size of [page.viewportSize() ?? phone, phone]) {
    await page.setViewportSize(size);
    const [line, box] = await last.evaluate((group) => [group.querySelector('pre > :last-child'), group].map((one) => one?.getBoundingClientRect().toJSON() as DOMRect));
    expect(line?.bottom).toBeLessThanOrEqual(Math.ceil(box?.bottom ?? 0));
    expect(line?.right).toBeLessThanOrEqual(Math.ceil(box?.right ?? 0));
  }
  expect(await findings(page)).toEqual([]);
  await timesHaveSeconds(page, 7);
  await page.getByRole('link', { name: 'The whole log' }).click();
  await expect(page.getByRole('log')).toContainText('RuntimeError');
});

test('a job that waits, is promised or runs has its times to the second too', async ({ page, server, seeded }) => {
  await page.goto(`/jobs/${seeded.waiting}`);
  await expect(page.getByRole('heading', { name: 'Why it waits' })).toBeVisible();
  await timesHaveSeconds(page, 2);
  await page.goto(`/jobs/${seeded.promised}`);
  await expect(page.getByRole('heading', { name: 'When it runs' })).toBeVisible();
  await timesHaveSeconds(page, 3);
  const token = await tokenOf(server, USER);
  const ask = { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 120, constraints: { pool: 'default' } };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'is-running', work: { command: ['sleep', '100'] }, ask }, token);
  await page.goto(`/jobs/${job}`);
  await expect(page.getByText('Running', { exact: true })).toBeVisible();
  await timesHaveSeconds(page, 4);
  await server.ask('POST', `/jobs/${job}/cancel`);
});

test('whoever looks at a job while it fails sees its last lines, also those that come after its end', async ({ page, server }) => {
  const token = await tokenOf(server, USER);
  // It goes on when the page has been seen: a question that is answered then.
  const gate = createServer();
  await new Promise<void>((listens) => gate.listen(0, '127.0.0.1', listens));
  const { port } = gate.address() as AddressInfo;
  const asked = new Promise<ServerResponse>((come) => gate.on('request', (_, answer) => come(answer)));
  const fails = `import sys, urllib.request\nfor line in range(40): print(f'line {line}', flush=True)\nurllib.request.urlopen('http://127.0.0.1:${port}').read()\nprint('RuntimeError: the very last', file=sys.stderr, flush=True)\nsys.exit(3)`;
  const job = { name: 'fails-in-sight', work: { command: ['python3', '-c', fails] }, ask: { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 120, constraints: { pool: 'default' } } };
  const { job: id } = await server.ask<{ job: number }>('POST', '/jobs', job, token);
  // As where the last line arrives behind the news of the end.
  let cut = 0;
  await page.route(`**/api/v1/jobs/${id}/logs?*`, async (route) => {
    const answer = await route.fetch();
    const log = (await answer.json()) as { items: { text: string }[] };
    const items = log.items.filter(({ text }) => !text.includes('the very last'));
    cut += log.items.length - items.length;
    await route.fulfill({ response: answer, json: { ...log, items } });
  });
  await page.goto(`/jobs/${id}`);
  await expect(page.getByText('Running', { exact: true })).toBeVisible();
  const last = page.getByRole('group', { name: 'Last lines of its log' });
  await expect(last).toHaveCount(0);
  (await asked).end(() => gate.close());
  await expect(page.getByText('Failed', { exact: true })).toBeVisible();
  await expect(last).toContainText('RuntimeError: the very last');
  expect(cut).toBeGreaterThan(0);
  await expect(last).toContainText('line 39');
  // No more than there were to be, each of them once.
  await expect(last.locator('pre > *')).toHaveCount(20);
  await expect(last.getByText('RuntimeError')).toHaveCount(1);
});

test('what only slept on simulated nodes is marked in its tasks, its history and the wallet', async ({ page, server, seeded }) => {
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'asleep' });
  const ask = { resources: { cpu: '1', memory: '1Gi', gpu: '1' }, duration_s: 60, constraints: { pool: 'inference' } };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'asleep', work: { command: ['true'] }, ask, value: '500' }, login.token);
  await page.goto(`/jobs/${job}`);
  await expect(page.getByText('Succeeded', { exact: true })).toBeVisible();
  await expect(page.getByRole('cell', { name: /^l4-\d simulated$/ })).toBeVisible();
  const history = page.getByRole('listitem');
  await expect(history.filter({ hasText: 'simulated' })).not.toHaveCount(0);
  await expect(history.first()).not.toContainText('simulated');
  await page.goto('/wallet');
  await expect(page.getByRole('row').filter({ has: page.getByRole('link', { name: `#${job}` }) }).first()).toContainText('simulated');
  // What ran for real is not.
  await page.goto(`/jobs/${seeded.done}`);
  await expect(page.getByRole('cell', { name: /simulated/ })).toHaveCount(0);
});

test('what it printed is shown in colour and never as markup', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.done}?tab=logs`);
  const log = page.getByRole('log');
  await expect(log).toContainText('<b>done</b> & well');
  await expect(log.locator('b')).toHaveCount(0);
  await expect(log.locator('.fg-2').first()).toContainText('step');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  expect((await download).suggestedFilename()).toBe(`job-${seeded.done}.log`);
});

test('a colour goes on in the next line, one of many is brought to the palette, and what went to the error stream says so', async ({ page, server }) => {
  const print = [
    'import sys',
    "print('\\x1b[32mgreen begins')",
    "print('green goes on\\x1b[0m')",
    "print('\\x1b[38;5;196mone of 256\\x1b[0m \\x1b[38;2;250;20;20mone of all\\x1b[0m')",
    "print('\\x1b[31mtwo col\\x1b[34mours\\x1b[0m', flush=True)",
    "print('went wrong', file=sys.stderr, flush=True)",
  ].join('\n');
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'colours' });
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'colours', work: { command: ['python3', '-c', print] }, ask: { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 60, constraints: { pool: 'default' } } }, token);
  await page.goto(`/jobs/${job}?tab=logs`);
  const log = page.getByRole('log');
  await expect(log).toContainText('went wrong');
  await expect(log.getByText('green goes on')).toHaveClass(/fg-2/);
  await expect(log.getByText('one of 256')).toHaveClass(/fg-1/);
  await expect(log.getByText('one of all')).toHaveClass(/fg-1/);
  // Not by its red alone.
  await expect(log.locator('.line').filter({ hasText: 'went wrong' }).getByTitle('Standard error')).toHaveText('err');
  await expect(log.locator('.line').filter({ hasText: 'green goes on' }).getByTitle('Standard error')).toHaveCount(0);
  await page.getByRole('searchbox', { name: 'Search the log' }).fill('colours');
  await expect(page.getByText(/^1 of \d+ lines/)).toBeVisible();
  await expect(log.locator('mark')).toHaveText(['col', 'ours']);
});

test('the log follows what is printed, until one scrolls away, and again when told to', async ({ page, server }) => {
  const talk = ['import time', 'for step in range(400):', "    print(f'line {step}', flush=True)", '    time.sleep(0 if step < 300 else 0.2)'].join('\n');
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'follow' });
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'follows', work: { command: ['python3', '-c', talk] }, ask: { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 120, constraints: { pool: 'default' } } }, token);
  try {
    await page.goto(`/jobs/${job}?tab=logs`);
    const log = page.getByRole('log');
    await expect(log).toContainText('line 299');
    const follow = page.getByRole('button', { name: 'Follow' });
    await expect(follow).toHaveAttribute('aria-pressed', 'true');
    const toEnd = () => log.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    const tall = () => log.evaluate((box) => box.scrollHeight);
    const before = await tall();
    await expect.poll(tall).toBeGreaterThan(before);
    await expect.poll(toEnd).toBeLessThan(30);
    await log.hover();
    await page.mouse.wheel(0, -2000);
    await expect(follow).toHaveAttribute('aria-pressed', 'false');
    const [at, seen] = [await log.evaluate((box) => box.scrollTop), await tall()];
    await expect.poll(tall).toBeGreaterThan(seen);
    expect(await log.evaluate((box) => box.scrollTop)).toBe(at);
    await follow.click();
    await expect.poll(toEnd).toBeLessThan(30);
  } finally {
    await server.ask('POST', `/jobs/${job}/cancel`);
  }
});

test('metrics that could not be had are no missing metrics: it says so, and asks again', async ({ page, seeded }) => {
  const problem = { type: 'urn:era:overloaded', title: 'overloaded', status: 503, code: 'overloaded', detail: 'The server is busy: try again in a moment.' };
  await page.route('**/api/v1/jobs/*/metrics?*', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify(problem) }));
  await page.goto(`/jobs/${seeded.done}?tab=metrics`);
  await expect(page.getByRole('alert')).toContainText('busy');
  await expect(page.getByText('It has told no metric')).toBeHidden();
  await page.unroute('**/api/v1/jobs/*/metrics?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('img', { name: 'loss' }).locator('canvas')).toBeVisible();
  await expect(page.getByRole('alert')).toBeHidden();
});

test('the keyboard reads a chart value by value, and zooms it', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.done}?tab=metrics`);
  const chart = page.locator('figure').filter({ has: page.getByRole('img', { name: 'loss' }) });
  await expect(chart.locator('canvas')).toBeVisible();
  const reader = chart.getByRole('slider', { name: 'Values of loss' });
  await reader.focus();
  await expect(reader).toHaveAttribute('aria-valuetext', 'Step 40: loss 0.025');
  await page.keyboard.press('Home');
  await expect(reader).toHaveAttribute('aria-valuetext', 'Step 1: loss 1');
  await page.keyboard.press('ArrowRight');
  await expect(reader).toHaveAttribute('aria-valuetext', 'Step 2: loss 0.5');
  // Whoever sees the chart sees the same: at the cursor and beside the slider.
  await expect(chart.getByText('Step 2: loss 0.5')).toBeVisible();
  await expect(chart.locator('.u-legend .u-series').nth(1).locator('.u-value')).toHaveText('0.5');
  const pixels = () => chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL().length);
  const whole = await chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  for (let press = 0; press < 3; press += 1) await page.keyboard.press('+');
  await expect.poll(() => chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL())).not.toBe(whole);
  await page.keyboard.press('Escape');
  await expect.poll(() => chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL())).toBe(whole);
  expect(await pixels()).toBeGreaterThan(0);
  expect(await findings(page)).toEqual([]);
});

test('a chart that was zoomed stays so while the job tells more', async ({ page, seeded }) => {
  const tell: ((from: number, to: number) => void)[] = [];
  await page.routeWebSocket(/\/metrics\/ws/, (socket) => {
    const steps = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => ({ at: new Date(1e12 + (from + at) * 1000).toISOString(), name: 'loss', rank: 0, step: from + at, value: from + at }));
    tell.push((from, to) => socket.send(JSON.stringify(steps(from, to))));
    tell[0]?.(1, 100);
  });
  await page.goto(`/jobs/${seeded.promised}?tab=metrics`);
  const chart = page.locator('figure').filter({ has: page.getByRole('img', { name: 'loss' }) });
  await expect(chart.locator('canvas')).toBeVisible();
  /** The step at the left edge. */
  const left = async () => {
    await chart.locator('.u-over').hover({ position: { x: 200, y: 40 } });
    await chart.locator('.u-over').hover({ position: { x: 1, y: 40 } });
    return Number(await chart.locator('.u-legend .u-series').first().locator('.u-value').textContent());
  };
  expect(await left()).toBe(1);
  await chart.getByRole('slider').focus();
  for (let press = 0; press < 3; press += 1) await page.keyboard.press('+');
  await expect.poll(left).toBeGreaterThan(80);
  const before = await left();
  tell[0]?.(101, 200);
  await expect(chart.locator('figcaption')).toContainText('loss 200');
  expect(await left()).toBe(before);
  await chart.getByRole('slider').focus();
  await page.keyboard.press('Escape');
  await expect.poll(left).toBe(1);
});

test('what it used is drawn: cores and memory as they were measured', async ({ page, server }) => {
  const work = 'import time\nkeep = bytearray(200 * 1024 * 1024)\nend = time.time() + 12\nwhile time.time() < end:\n    sum(range(20_000))\n';
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'use' });
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'uses', work: { command: ['python3', '-c', work] }, ask: { resources: { cpu: '1', memory: '512Mi' }, duration_s: 60, constraints: { pool: 'default' } } }, token);
  interface Points {
    items: { name: string; value: number }[];
  }
  const told = async (name: string) => (await server.ask<Points>('GET', `/jobs/${job}/metrics?points=1000`)).items.filter((point) => point.name === name);
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${job}`)).state === 'succeeded');
  const memory = await told('usage/memory');
  expect(memory.length).toBeGreaterThan(1);
  await page.goto(`/jobs/${job}?tab=usage`);
  for (const name of ['Cores', 'Memory']) await expect(page.getByRole('img', { name, exact: true }).locator('canvas')).toBeVisible();
  const reader = page.getByRole('slider', { name: 'Values of Memory' });
  const values = new Set<string>();
  await reader.focus();
  // Values that are seconds apart have times that tell them from each other.
  await expect(reader).toHaveAttribute('aria-valuetext', /^(.* )?\d\d:\d\d:\d\d: Memory /);
  for (let at = 0; at < memory.length; at += 1) {
    values.add((await reader.getAttribute('aria-valuetext')) ?? '');
    await page.keyboard.press('ArrowLeft');
  }
  const mib = [...values].map((text) => Number(/Memory ([\d.]+) MiB/.exec(text)?.[1] ?? 0));
  // The array alone is 200 MiB; the chart says what the server measured.
  expect(Math.max(...mib)).toBeGreaterThan(190);
  expect(Math.max(...mib)).toBeCloseTo(Math.max(...memory.map(({ value }) => value)) / 2 ** 20, -1);
  await expect(page.locator('figcaption').filter({ hasText: 'Cores' })).toContainText(/Cores [\d.]+/);
});

test('all outputs are there, a thousand and more, folder by folder', async ({ page, server }) => {
  const write = "import os\nout = os.environ['ERA_OUTPUTS']\nfor at in range(1205): open(os.path.join(out, f'{at:04}.txt'), 'w').write('x')\nos.makedirs(os.path.join(out, 'zeta/deep'))\nopen(os.path.join(out, 'zeta/deep/last.txt'), 'w').write('four')\n";
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'outputs' });
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: 'leaves-much', work: { command: ['python3', '-c', write] }, ask: { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 60, constraints: { pool: 'default' } } }, token);
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${job}`)).state === 'succeeded');
  await page.goto(`/jobs/${job}?tab=outputs`);
  await expect(page.getByRole('link', { name: 'Download 0000.txt' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Download 1204.txt' })).toBeAttached();
  await page.getByRole('button', { name: 'zeta' }).click();
  await page.getByRole('button', { name: 'deep' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download last.txt' }).click();
  expect((await download).suggestedFilename()).toBe('last.txt');
  await expect(page.locator('main table time')).toHaveText(/\d\d:\d\d:\d\d$/);
  await page.getByRole('navigation', { name: 'Outputs' }).getByRole('button', { name: 'Outputs' }).click();
  await expect(page.getByRole('link', { name: 'Download 0000.txt' })).toBeVisible();
});

test('says when it is likely to start, and how sure that is', async ({ page, server }) => {
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'likely' });
  const [local] = (await server.list<{ name: string; pool: string; capacity?: Record<string, unknown> }>('/nodes')).filter(({ pool }) => pool === 'default');
  expect(local).toBeDefined();
  const hand = async (name: string, more: object) => {
    const ask = { resources: { cpu: '1', memory: '64Mi' }, duration_s: 900, constraints: { pool: 'default' }, ...more };
    return (await server.ask<{ job: number }>('POST', '/jobs', { name, work: { command: ['sleep', '600'] }, ask }, token)).job;
  };
  // More of the same than there are cores: the last ones wait for the first.
  const jobs: number[] = [];
  try {
    const read = (job: number) => server.ask<{ state: string; explanation?: { state: string; start?: string; earliest?: string; latest?: string } }>('GET', `/jobs/${job}`);
    let waiting: number | undefined;
    for (let index = 0; index < 200 && waiting === undefined; index += 1) {
      const job = await hand(`fills-${index}`, {});
      jobs.push(job);
      await new Promise((wait) => setTimeout(wait, 100));
      const { explanation } = await read(job);
      if (explanation?.state === 'waiting' && explanation.start) waiting = job;
    }
    if (waiting === undefined) throw new Error('everything fits');
    await page.goto(`/jobs/${waiting}`);
    const line = page.getByText(/^Likely start: /);
    await expect(line).toContainText(/Likely start: .*\d\d:\d\d:\d\d/);
    // How far it is spread is learned from weeks of a site's own jobs, which there is no time for here:
    // the server's answer, with a quarter of an hour on either side.
    await page.route(`**/api/v1/jobs/${waiting}`, async (route) => {
      const answer = await route.fetch();
      const job = (await answer.json()) as { explanation: { start: string; earliest?: string; latest?: string } };
      const start = Date.parse(job.explanation.start);
      [job.explanation.earliest, job.explanation.latest] = [start - 900_000, start + 900_000].map((at) => new Date(at).toISOString());
      await route.fulfill({ response: answer, json: job });
    });
    await page.reload();
    const clock = /Likely start: .*(\d\d):(\d\d):(\d\d)\s+\(between .*(\d\d):(\d\d):(\d\d) and .*(\d\d):(\d\d):(\d\d)\)/;
    await expect(line).toContainText(clock);
    const [, ...told] = clock.exec((await line.textContent()) ?? '') ?? [];
    const seconds = [0, 3, 6].map((at) => Number(told[at]) * 3600 + Number(told[at + 1]) * 60 + Number(told[at + 2]));
    const after = (from = 0, to = 0) => (to - from + 86_400) % 86_400;
    expect([after(seconds[1], seconds[0]), after(seconds[0], seconds[2])]).toEqual([900, 900]);
    await timesHaveSeconds(page, 2);
    await page.unroute(`**/api/v1/jobs/${waiting}`);
  } finally {
    for (const job of jobs.reverse()) await server.ask('POST', `/jobs/${job}/cancel`).catch(() => undefined);
  }
});

test('metrics are drawn, outputs can be fetched, and the bill is line by line', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.done}`);
  await expect(page.getByText('Line by line')).toBeVisible();
  // From what was handed in to what was paid for it.
  const steps = page.getByRole('region', { name: 'Timeline' }).getByRole('listitem');
  await expect(steps.first()).toContainText('Handed in without a bid');
  await expect(steps.last()).toContainText(/: [\d.]+ credits/);
  await expect(page.getByText('Succeeded: every task exited with code 0.').first()).toBeVisible();
  await page.getByRole('tab', { name: 'Metrics' }).click();
  await expect(page.getByRole('img', { name: 'loss' }).locator('canvas')).toBeVisible();
  await expect(page.getByRole('img', { name: 'accuracy' }).locator('canvas')).toBeVisible();
  // What is drawn is what was told: the last of 40 steps.
  await expect(page.locator('figcaption').filter({ hasText: 'loss' })).toContainText('loss 0.025');
  const drawn = await page.getByRole('img', { name: 'loss' }).locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
    const pixels = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    return new Set(Array.from({ length: pixels.length / 4 }, (_, at) => pixels.slice(at * 4, at * 4 + 4).join())).size;
  });
  expect(drawn).toBeGreaterThan(5);
  await page.getByRole('tab', { name: 'Outputs' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download model.json' }).click();
  expect((await download).suggestedFilename()).toBe('model.json');
});

test('says why it waits', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.waiting}`);
  await expect(page.getByRole('heading', { name: 'Why it waits' })).toBeVisible();
});

test('says its place in the line and who is ahead', async ({ page, server }) => {
  await server.ask('PUT', '/queues/line', { name: 'line', level: 5, policy: 'fifo', running_max: 0 });
  const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'line' });
  const hand = async (name: string, by = token) => {
    const ask = { resources: { cpu: '1', memory: '1Gi' }, duration_s: 600 };
    return (await server.ask<{ job: number }>('POST', '/jobs', { name, work: { command: ['true'] }, queue: 'line', ask }, by)).job;
  };
  const [hidden, first, second] = [await hand('secret-plan', server.token), await hand('first-in-line'), await hand('second-in-line')];
  await page.goto(`/jobs/${second}`);
  await expect(page.getByText(/^It waits at position 3 of its queue: /)).toBeVisible();
  const ahead = page.getByText(/^Just ahead/);
  await expect(ahead).toContainText(`first-in-line #${first} (${USER})`);
  // Of others' jobs no more than the number, and no link to a page that is not for this reader.
  await expect(ahead).toContainText(`somebody else’s job #${hidden}`);
  await expect(ahead.getByRole('link')).toHaveCount(1);
  for (const job of [hidden, first, second]) await server.ask('POST', `/jobs/${job}/cancel`);
});

test('a copy of it can be changed and handed in', async ({ page, seeded }) => {
  await page.goto(`/jobs/${seeded.promised}`);
  await page.getByRole('link', { name: 'Clone' }).click();
  await expect(page.getByRole('textbox', { name: 'GPUs', exact: true })).toHaveValue('4');
  const name = page.getByRole('textbox', { name: 'Name' });
  await expect(name).toHaveValue('resnet-sweep');
  // A new one from here is no copy.
  await page.getByRole('navigation').getByRole('link', { name: 'New job' }).click();
  await expect(name).toHaveValue('');
});

test('a running promise can be given more time, and what is left of it can be given back', async ({ page, server }) => {
  const login = await server.ask<{ token: string }>('POST', '/sessions', { user: USER, password: 'correct horse battery', label: 'extend' });
  const ask = { resources: { cpu: '250m', memory: '64Mi' }, duration_s: 300, constraints: { pool: 'default' } };
  const deadline = new Date(Date.now() + 330_000).toISOString();
  const job = { name: 'lasts', work: { command: ['sleep', '200'] }, ask: { ...ask, deadline }, value: '100' };
  const made = await server.ask<{ job: number }>('POST', '/jobs', job, login.token);
  await page.goto(`/jobs/${made.job}`);
  await expect(page.getByText('Running', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Extend' }).click();
  await page.getByRole('textbox', { name: 'By how much' }).fill('2m');
  // What is refused is told where it can be read: in the dialog.
  await page.getByRole('textbox', { name: 'At most for' }).fill('0.000001');
  await page.getByRole('button', { name: 'Extend' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible();
  await page.getByRole('textbox', { name: 'At most for' }).fill('50');
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Extend' }).click();
  await expect(page.getByText('It may run longer.')).toBeVisible();
  await expect(page.getByText(/^Extended until/)).toBeVisible();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Release the rest' }).click();
  const cost = async () => (await server.ask<{ cost: { charged: string; refunded: string } }>('GET', `/jobs/${made.job}`)).cost;
  const told = /At most (\S+) of the (\S+) credits paid for it come back: the longer it takes to stop, the less\./.exec((await page.getByRole('dialog').textContent()) ?? '');
  const paid = Number((await cost()).charged);
  expect(Number(told?.[2])).toBeCloseTo(paid, 2);
  await page.getByRole('button', { name: 'Stop and give back' }).click();
  await expect(page.getByText('Released', { exact: true })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Cost' }).getByText('Refund for unused time')).toBeVisible();
  const { refunded } = await cost();
  expect(Number(refunded)).toBeGreaterThan(0);
  // As it was told, to the digits that were shown.
  expect(Number(refunded)).toBeLessThanOrEqual(Number(told?.[1]) + 10 ** -(told?.[1]?.split('.')[1]?.length ?? 0) / 2 + 1e-9);
  const steps = page.getByRole('region', { name: 'Timeline' }).getByRole('listitem');
  await expect(steps.first()).toContainText(/^Bid: worth 100.00 credits, finished by /);
  await expect(steps.last()).toContainText(/^Refund for unused time: [\d.]+ credits/);
});

test('one that is not there is said to be missing', async ({ page }) => {
  await page.goto('/jobs/999999');
  await expect(page.getByText('There is no such job')).toBeVisible();
});

test('several are compared: metrics over one another, parameters side by side', async ({ page, seeded }) => {
  await page.goto(`/compare?jobs=${seeded.done},${seeded.promised}`);
  await expect(page.getByRole('img', { name: 'loss' }).locator('canvas')).toBeVisible();
  await expect(page.getByText('ask.resources.gpu', { exact: false }).first()).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page, seeded }) => {
    await page.emulateMedia({ colorScheme: theme });
    for (const tab of ['', '?tab=logs', '?tab=metrics', '?tab=outputs', '?tab=usage']) {
      await page.goto(`/jobs/${seeded.done}${tab}`);
      await expect(page.getByRole('tabpanel')).toBeVisible();
      await page.waitForTimeout(400);
      expect(await findings(page), tab).toEqual([]);
    }
  });
}
