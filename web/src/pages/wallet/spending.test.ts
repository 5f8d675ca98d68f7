import { expect, it } from 'vitest';
import { lastDays, projectOf, PROJECTS_MAX, spending, spentByJob, type StatementLine } from './spending';

const DAY = 86_400_000;
const NOW = new Date(2026, 10, 15, 12).getTime();
const line = (job: number | null, reason: string, amount: string, daysAgo = 0): StatementLine => ({ seq: 1, at: new Date(NOW - daysAgo * DAY).toISOString(), job, reason, amount, balance: '0' });

it('a project is what names have in common', () => {
  const cases = [['sweep-12', 'sweep'], ['vision/resnet-3', 'vision'], ['resnet50', 'resnet'], ['eval', 'eval'], ['42', '42'], ['', ''], [null, ''], ['/odd', '/odd']] as const;
  for (const [name, project] of cases) expect(projectOf(name), String(name)).toBe(project);
});

it('a refund is taken off where the job was paid, and gifts are no spending', () => {
  const spent = spentByJob([line(1, 'refund_unused', '30.00', 0), line(1, 'charge', '-100.00', 3), line(null, 'grant', '500.00'), line(2, 'queue_escrow', '-0.008438'), line(2, 'returned', '0.00828')]);
  expect(spent).toEqual([{ job: 1, at: NOW - 3 * DAY, net: 70 }, { job: 2, at: NOW, net: 0.000158 }]);
});

it('each day has its share, nothing is lost, and what is older is left out', () => {
  const spent = [{ job: 1, at: NOW, net: 5 }, { job: 2, at: NOW - DAY, net: 7 }, { job: 3, at: NOW - 40 * DAY, net: 9 }];
  const names = new Map([[1, 'a-1'], [2, 'b-1']]);
  const made = spending(spent, (job) => names.get(job), NOW, 7, { rest: 'others', unnamed: 'unnamed' });
  expect(made.days).toHaveLength(7);
  expect(made.projects.map(({ name, total }) => [name, total])).toEqual([['b', 7], ['a', 5]]);
  expect(made.projects[0]?.perDay).toEqual([0, 0, 0, 0, 0, 7, 0]);
});

it('too many projects end in one for the rest', () => {
  const spent = Array.from({ length: 12 }, (_, job) => ({ job, at: NOW, net: 12 - job }));
  const made = spending(spent, (job) => `p${'x'.repeat(job)}`, NOW, 3, { rest: 'others', unnamed: '?' });
  expect(made.projects).toHaveLength(PROJECTS_MAX);
  expect(made.projects.reduce((sum, { total }) => sum + total, 0)).toBe(78);
  expect(made.projects.at(-1)?.name).toBe('others');
});

it('days begin at midnight and end today', () => {
  const days = lastDays(NOW, 3);
  expect(days.map((at) => new Date(at).getHours())).toEqual([0, 0, 0]);
  expect(new Date(days[2] ?? 0).getDate()).toBe(15);
});
