/** The page in Chinese has no English sentence on it, wherever its words come from. */
import { ADMIN, expect, findings, test, until } from './harness';
import { DOORS, everyPage, filledPages, toDoor } from './harness/pages';
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
  await until(async () => (await server.ask<{ state: string }>('GET', `/jobs/${seeded.done}`)).state === 'succeeded');
  const look = async (name: string) => {
    await expect(page.locator('main h1').first()).toBeVisible();
    await page.waitForTimeout(700);
    expect(await english(page), name).toEqual([]);
  };
  for (const [, path] of [...everyPage(seeded), ...(await filledPages(server))]) {
    await page.goto(path);
    await look(path);
  }
  for (const door of DOORS) {
    await toDoor(page, server, door);
    await look(door);
  }
});

test('what is wrong with a field is told in Chinese, exactly and with its numbers', async ({ page }) => {
  await page.goto('/administration');
  await page.getByRole('button', { name: '新建账户' }).click();
  await page.getByRole('textbox', { name: '名称' }).fill('two words');
  await page.getByRole('button', { name: '创建' }).click();
  await expect(page.getByText('“名称”不对：“two words” 不能作账户名')).toBeVisible();
  expect(await english(page)).toEqual([]);

  await page.goto('/lab');
  await page.getByRole('button', { name: '新建运行' }).first().click();
  await page.getByLabel('自定义公式').fill('max(wait, gpus)');
  await page.getByRole('button', { name: '开始', exact: true }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('“策略”不对：此处的公式不能含逗号');
  expect(await english(page)).toEqual([]);

  await page.goto('/jobs/new');
  await page.getByRole('textbox', { name: /^GPU 数/ }).fill('1.5');
  await expect(page.getByText(/“1.5” 既不是一块 GPU 的一部分，也不是整数/).first()).toBeVisible();
  expect(await english(page)).toEqual([]);
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
