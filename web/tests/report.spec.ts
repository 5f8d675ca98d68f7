/** The report: five measures over a period, with and without ERA, on the screen and on paper. */
import { ADMIN, expect, findings, test, THEMES, until } from './harness';

test.use({ account: ADMIN });
const FIVE = ['Start-up time', 'Starts that succeed', 'Runs that succeed', 'Utilisation', 'Unit cost'];

test('has the five measures, then the same period without ERA beside them', async ({ page, server }) => {
  await page.goto('/report');
  for (const name of FIVE) await expect(page.getByRole('region', { name, exact: true })).toBeVisible();
  const report = await server.ask<{ with: { run_success: number }; without: { refusals: number } }>('GET', '/report?without=true');
  const runs = page.getByRole('region', { name: 'Runs that succeed' });
  await expect(runs).toContainText(new Intl.NumberFormat('en-GB', { style: 'percent', maximumFractionDigits: 1 }).format(report.with.run_success));
  await expect(runs.getByText('Without')).toBeVisible();
  await expect(page.getByText(`Without: ${report.without.refusals}`, { exact: true }).first()).toBeVisible();
  await expect(page.getByRole('row', { name: /In all/ })).toBeVisible();
});

test('says how much of the period was only simulated', async ({ page, server }) => {
  const ask = { resources: { cpu: '1', memory: '1Gi', gpu: '1' }, duration_s: 60, constraints: { pool: 'inference' } };
  const { job } = await server.ask<{ job: number }>('POST', '/jobs', { work: { command: ['true'] }, ask });
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${job}`)).state === 'succeeded');
  const { simulated } = await server.ask<{ simulated: { jobs: number; nodes: number } }>('GET', '/report');
  expect(simulated.nodes).toBe(7);
  expect(simulated.jobs).toBeGreaterThan(0);
  await page.goto('/report');
  await expect(page.getByText(/^Of these jobs [1-9]\d* ran on simulated nodes, where tasks only sleep: 7 nodes,/)).toBeVisible();
});

test('another period is in the address, and one that ends before it begins is told', async ({ page }) => {
  await page.goto('/report');
  await page.getByRole('radio', { name: '30 d' }).check({ force: true });
  await expect(page).toHaveURL(/days=30/);
  await page.goto('/report?from=2026-03-10&to=2026-03-01');
  await expect(page.getByText('The end must be after the beginning.')).toBeVisible();
});

test('on paper there is the report and nothing around it', async ({ page }) => {
  await page.goto('/report');
  await expect(page.getByRole('region', { name: 'Utilisation', exact: true })).toBeVisible();
  await page.emulateMedia({ media: 'print' });
  await expect(page.getByRole('navigation')).toBeHidden();
  await expect(page.getByRole('button', { name: 'Print' })).toBeHidden();
  // Two measures side by side fill the sheet: the navigation leaves no empty column.
  const box = await page.getByRole('region', { name: 'Unit cost', exact: true }).boundingBox();
  expect(box?.width).toBeGreaterThan(400);
});

test('on paper charts are in dark ink, also where the screen is dark', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto('/report');
  const canvas = page.getByRole('main').locator('canvas').first();
  await expect(canvas).toBeVisible();
  /** Whether something is drawn in a colour: of the axis' letters, in either theme. */
  const drawnIn = (colour: readonly number[]) =>
    canvas.evaluate((drawn: HTMLCanvasElement, wanted) => {
      const pixels = drawn.getContext('2d')?.getImageData(0, 0, drawn.width, drawn.height).data ?? new Uint8ClampedArray();
      let found = 0;
      for (let at = 0; at < pixels.length; at += 4) {
        if ((pixels[at + 3] ?? 0) > 200 && wanted.every((part, index) => Math.abs((pixels[at + index] ?? 0) - part) < 5)) found += 1;
      }
      return found > 10;
    }, colour);
  const inkOf = () =>
    page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement('i'));
      probe.style.color = 'var(--ink-3)';
      const [red = 0, green = 0, blue = 0] = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number);
      probe.remove();
      return [red, green, blue];
    });
  const screen = await inkOf();
  await expect.poll(() => drawnIn(screen)).toBe(true);
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  const paper = await inkOf();
  expect(Math.max(...paper), 'ink on paper is dark').toBeLessThan(Math.min(...screen));
  await expect.poll(() => drawnIn(paper)).toBe(true);
  expect(await drawnIn(screen)).toBe(false);
  await page.emulateMedia({ colorScheme: 'dark', media: 'screen' });
  await expect.poll(() => drawnIn(screen)).toBe(true);
});

for (const theme of THEMES) {
  test(`has nothing for axe to find, in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto('/report');
    await expect(page.getByRole('region', { name: 'Runs that succeed' }).getByText('Without')).toBeVisible();
    expect(await findings(page)).toEqual([]);
  });
}

test('on a phone nothing is wider than the screen', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 740 });
  await page.goto('/report');
  await expect(page.getByRole('region', { name: 'Utilisation', exact: true })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
});
