/** The page in Chinese has no English sentence on it, wherever its words come from. */
import { ADMIN, expect, findings, test, until } from './harness';
import type { Page } from '@playwright/test';

test.use({ account: ADMIN, locale: 'zh-CN' });

/** Runs of four or more English words that are seen, but for commands, code and what programs print. */
function english(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const apart = 'code, pre, .mono, textarea, noscript, script, style, [lang=en], .log';
    const found: string[] = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode.textContent?.trim() ?? '';
      if (/(?:[A-Za-z’']{2,}[ ,.;:]+){3,}[A-Za-z]{2,}/.test(text) && !walk.currentNode.parentElement?.closest(apart)) found.push(text);
    }
    return found;
  });
}

test('no page of the Chinese page speaks English', async ({ page, server, seeded }) => {
  test.setTimeout(180_000);
  const paths = [
    '/', '/welcome', '/jobs', `/jobs/${seeded.done}`, `/jobs/${seeded.promised}`, `/jobs/${seeded.waiting}`, `/jobs/${seeded.done}?tab=metrics`,
    `/jobs/${seeded.done}?tab=usage`, `/jobs/${seeded.done}?tab=outputs`, `/compare?jobs=${seeded.done},${seeded.promised}`, '/jobs/new?template=gpu', '/market?pool=training',
    '/cluster', '/cluster?node=h100-0', '/cluster?view=promises', '/cluster?view=domains', '/queues', '/queues?view=policies&policy=priority', '/data', '/wallet?of=ada', '/report', '/lab',
    '/administration', '/administration?tab=groups', '/administration?tab=market', '/administration?tab=audit', '/administration?tab=health', '/tokens',
  ];
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${seeded.done}`)).state === 'succeeded');
  for (const path of paths) {
    await page.goto(path);
    await expect(page.locator('main h1').first()).toBeVisible();
    await page.waitForTimeout(700);
    expect(await english(page), path).toEqual([]);
  }
});

test('what happened to a job, how it ended and what is wrong with a formula are told in Chinese', async ({ page, server, seeded }) => {
  await page.goto(`/jobs/${seeded.done}`);
  await expect(page.getByText('进入队列 default')).toBeVisible();
  await expect(page.getByText(/^已发往 .*，最晚到 /)).toBeVisible();
  await expect(page.getByText('成功：所有任务都以代码 0 退出。').first()).toBeVisible();
  await page.goto(`/jobs/${seeded.promised}`);
  await expect(page.getByText(/^已获承诺，价格 [\d.,]+ 信用点：.*h100-/)).toBeVisible();

  const ask = { resources: { cpu: '100m', memory: '64Mi' }, duration_s: 60, constraints: { pool: 'default' } };
  const failing = await server.ask<{ job: number }>('POST', '/jobs', { name: 'fails', work: { command: ['sh', '-c', 'exit 3'] }, ask });
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${failing.job}`)).state === 'failed');
  await page.goto(`/jobs/${failing.job}`);
  await expect(page.getByText('失败：有任务以代码 3 退出。').first()).toBeVisible();
  await expect(page.getByText('副本 0 以代码 3 退出')).toBeVisible();

  await page.goto('/queues?view=policies&policy=priority');
  await page.getByLabel('公式', { exact: true }).fill('wiat + 1');
  await expect(page.getByRole('alert')).toContainText('没有名为 wiat 的数、文本或函数（是否指 wait？）');
  expect(await findings(page)).toEqual([]);
});
