/**
 * The page at the size that is promised: 1,000 nodes, 20,000 promises on them, and 100,000 jobs
 * in a queue. The first content comes within a second in a browser that has nothing of the page yet:
 * of a few such browsers the quickest, since others' work on the machine is not the page's. While the
 * calendar is panned, zoomed and scrolled and the jobs scroll, two things are measured. No task of the
 * page's main thread takes more than 50 ms of its processor time, so that a busy machine makes the
 * test slow but not wrong. And no frame comes more than 50 ms after the one before, in the middle one
 * of several runs: where the machine is so busy that the same deed over a page of known work is slower
 * than at rest, by as much more (see `harness/speed.ts`). All figures are printed.
 */
import type { Browser, BrowserContext, Page } from '@playwright/test';
import { expect, PASSWORD, test, until } from './harness';
import { Server } from './harness/server';
import { allowed, frames, median } from './harness/speed';

/** Fewer with `ERA_TEST_NODES`, for a quick look. */
const NODES = Number(process.env.ERA_TEST_NODES ?? 1000);
const PROMISES = NODES * 20;
const DAYS = 26;
const AT_ONCE = 64;
/** That wait in a queue meanwhile. */
const JOBS = 100_000;
const FRAME_MS = 50;
const ROW_HEIGHT = 52;
const FIRST_MS = 1000;
const LOADS = 4;
/** How often each deed is done again for its frames. */
const RUNS = 5;
/** What a page of known work does in each frame, and its longest frame where nothing else runs. */
const KNOWN_MS = 20;
const KNOWN_FRAME_MS = 34;

const nodes = `
nodes:
  - name: n
    count: ${NODES}
    pool: training
    capacity: { cpu: 64, memory: 512Gi, gpu: 8, gpu.model: h100, gpu.memory: 80Gi }
`;

/** Promises all over the month and the nodes, some at a time; gives the first. */
async function promise(server: Server, token: string): Promise<number> {
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const one = async (index: number) => {
    const day = index % DAYS;
    const ask = {
      resources: { cpu: '8', memory: '32Gi', gpu: '8' },
      duration_s: 3600 * (2 + (index % 9)),
      earliest: at(1 + 24 * day),
      deadline: at(48 + 24 * day),
      constraints: { pool: 'training' },
    };
    const { job } = await server.ask<{ job: number }>('POST', '/jobs', { name: `pretrain-${index}`, work: { command: ['true'] }, ask, value: '100000' }, token);
    return job;
  };
  const first = await one(0);
  for (let index = 1; index < PROMISES; index += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, PROMISES - index) }, (_, more) => one(index + more)));
  }
  return first;
}

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  ts: number;
  tdur?: number;
  args?: { name?: string };
}

interface Loads {
  /** Each in a browser that has nothing of the page yet, until one was quick enough. */
  cold: number[];
  /** Again in the last of them. */
  warm: number;
}

/** How long a page takes from the navigation's beginning until something of it is there, in ms. */
async function firstContent(open: () => Promise<BrowserContext>, path: string, there: string): Promise<Loads> {
  const load = async (page: Page) => {
    await page.goto(path);
    await page.locator(there).first().waitFor();
    return Math.round(await page.evaluate(() => performance.now()));
  };
  const cold: number[] = [];
  for (;;) {
    const context = await open();
    const page = await context.newPage();
    const took = await load(page);
    cold.push(took);
    const warm = await load(page);
    await context.close();
    if (took < FIRST_MS || cold.length === LOADS) return { cold, warm };
  }
}

/** The longest frame of each run of a deed, in ms. */
async function longestFrames(page: Page, deed: (page: Page) => Promise<void>, workMs = 0): Promise<number[]> {
  const longest: number[] = [];
  for (let run = 0; run < RUNS; run += 1) longest.push(Math.round(Math.max(...(await frames(page, () => deed(page), workMs)))));
  return longest;
}

/** The longest processor time of one task of the main thread while something is done, in ms. */
async function longestTask(browser: Browser, page: Page, deed: () => Promise<void>): Promise<number> {
  await browser.startTracing(page, { categories: ['toplevel', 'blink.user_timing'] });
  await page.evaluate(() => performance.mark('deed-begins'));
  await deed();
  await page.evaluate(() => performance.mark('deed-ends'));
  const { traceEvents: all } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const mark = (name: string) => all.find((event) => event.name === name);
  const [begin, end] = [mark('deed-begins'), mark('deed-ends')];
  if (!begin || !end) throw new Error('the trace has no marks');
  const tasks = all.filter(({ name, pid, tid, ts, tdur }) => pid === begin.pid && tid === begin.tid && /RunTask/.test(name) && tdur !== undefined && ts > begin.ts && ts < end.ts);
  expect(tasks.length, 'tasks that were measured').toBeGreaterThan(50);
  return Math.max(...tasks.map(({ tdur }) => (tdur ?? 0) / 1000));
}

test(`${NODES} nodes with ${PROMISES} promises and ${JOBS} jobs come within a second, and pan, zoom and scroll without a frame over 50 ms`, async ({ browser }) => {
  test.setTimeout(1_200_000);
  const server = await Server.start(nodes);
  try {
    await server.ask('POST', '/users', { name: 'big', role: 'administrator', group: 'g', credits: '100000000', password: PASSWORD });
    const { token } = await server.ask<{ token: string }>('POST', '/sessions', { user: 'big', password: PASSWORD, label: 'size' });
    await until(async () => (await server.list<unknown>('/nodes')).length > NODES, 900_000);
    const first = await promise(server, token);
    const small = { resources: { cpu: '1', memory: '1Gi', gpu: '1' }, duration_s: 3600 };
    await server.ask('POST', '/jobs', { name: 'sweep', work: { command: ['true'] }, ask: small, array: { from: 1, to: JOBS }, after: [{ job: first }] }, token);
    const reply = await fetch(`${server.url}/api/v1/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'big', password: PASSWORD, cookie: true }),
    });
    const cookie = /era_session=([^;]+)/.exec(reply.headers.get('set-cookie') ?? '')?.[1] ?? '';
    const open = async () => {
      const opened = await browser.newContext({ baseURL: server.url, viewport: { width: 1440, height: 900 } });
      await opened.addCookies([{ name: 'era_session', value: cookie, url: server.url }]);
      return opened;
    };
    const first_content_ms = {
      overview: await firstContent(open, '/', 'main [role=meter]'),
      jobs: await firstContent(open, '/jobs', 'main [role=row] a'),
      cluster: await firstContent(open, '/cluster', '[data-node]'),
    };
    console.log(JSON.stringify({ nodes: NODES, promises: PROMISES, jobs: JOBS, first_content_ms }));
    for (const [name, { cold }] of Object.entries(first_content_ms)) expect(Math.min(...cold), name).toBeLessThan(FIRST_MS);

    const context = await open();
    const page = await context.newPage();
    const pan = async ({ mouse }: Page) => {
      await mouse.move(x, y);
      await mouse.down();
      for (let step = 0; step < 100; step += 1) await mouse.move(x - step * 4, y - step * 2);
      await mouse.up();
    };
    const wheel = async ({ mouse }: Page) => {
      for (let step = 0; step < 80; step += 1) await mouse.wheel(0, step < 40 ? 700 : -700);
    };
    let [x, y] = [720, 500];
    // How quick this machine is at the time: the same deed over a page with next to nothing on it,
    // which does a known amount of work.
    const other = await context.newPage();
    await other.goto('/tokens');
    await expect(other.getByRole('heading', { name: 'Tokens' }).first()).toBeVisible();
    const known = async (deed: (page: Page) => Promise<void>) => {
      await other.bringToFront();
      await other.mouse.move(x, y);
      const longest = await longestFrames(other, deed, KNOWN_MS);
      await page.bringToFront();
      return longest;
    };
    // That is asked only where frames were too long.
    const limit = async (longest: number[], deed: (page: Page) => Promise<void>) =>
      median(longest) <= FRAME_MS ? FRAME_MS : Math.round(allowed(FRAME_MS, median(await known(deed)), KNOWN_FRAME_MS));
    await page.bringToFront();

    await page.goto('/jobs');
    await expect(page.getByText(/^(100,0\d\d jobs|the newest 100,\d+)/)).toBeVisible({ timeout: 90_000 });
    const jobs = page.getByRole('table', { name: 'Jobs' });
    await jobs.hover();
    const table = await longestTask(browser, page, async () => {
      for (let step = 0; step < 80; step += 1) await page.mouse.wheel(0, 700);
      await jobs.evaluate((box) => box.scrollTo(0, 1e9));
      expect(await jobs.evaluate((box) => box.scrollTop)).toBeGreaterThan(1e6);
      await expect(jobs.getByRole('link', { name: /sweep|pretrain/ }).first()).toBeVisible();
    });
    await jobs.evaluate((box) => box.scrollTo(0, 0));
    const tableFrames = await longestFrames(page, wheel);
    const tableLimit = await limit(tableFrames, wheel);

    await page.goto('/cluster');
    await expect(page.locator('[data-node]')).toHaveCount(NODES + 1);
    await page.goto('/cluster?view=promises&pool=training');
    const chart = page.getByRole('application');
    await expect(chart).toContainText(new RegExp(`${NODES} rows, [1-9]\\d{2,} bars`));
    await page.getByText('30 days', { exact: true }).click();
    const box = await chart.locator('canvas').boundingBox();
    if (!box) throw new Error('there is no chart');
    [x, y] = [box.x + box.width / 2, box.y + 300];

    const panning = await longestTask(browser, page, () => pan(page));
    const zooming = await longestTask(browser, page, async () => {
      await page.keyboard.down('Control');
      for (let step = 0; step < 40; step += 1) await page.mouse.wheel(0, step < 20 ? -120 : 120);
      await page.keyboard.up('Control');
    });
    const scrolling = await longestTask(browser, page, async () => {
      for (let step = 0; step < 80; step += 1) await page.mouse.wheel(0, 400);
    });
    const longest_ms = { table, panning, zooming, scrolling };
    const frames_ms = { table: tableFrames, panning: await longestFrames(page, pan), scrolling: await longestFrames(page, wheel) };
    const limits_ms = { table: tableLimit, panning: await limit(frames_ms.panning, pan), scrolling: await limit(frames_ms.scrolling, wheel) };
    console.log(JSON.stringify({ longest_task_ms: longest_ms, longest_frames_ms: frames_ms, frame_limits_ms: limits_ms }));
    for (const [name, ms] of Object.entries(longest_ms)) expect(ms, name).toBeLessThan(FRAME_MS);
    for (const name of ['table', 'panning', 'scrolling'] as const) expect(median(frames_ms[name]), `longest frame, ${name}`).toBeLessThanOrEqual(limits_ms[name]);
    // What comes into sight is loaded: rows in the middle, on which promises lie.
    await page.mouse.wheel(0, (-NODES * ROW_HEIGHT) / 2);
    await expect(chart).toContainText(new RegExp(`${NODES} rows, [1-9]\\d* bars`));
    await context.close();
  } finally {
    await server.stop();
  }
});
