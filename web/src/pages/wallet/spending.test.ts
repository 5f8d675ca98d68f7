import { expect, it } from 'vitest';
import { lastDays, PROJECTS_MAX, spending, type Stretch } from './spending';

const DAY = 86_400_000;
const NOW = new Date(2026, 10, 15, 12).getTime();
const WORDS = { rest: 'others', none: 'none' };
const spent = (project: string | undefined, net: string): Stretch['projects'][number] => ({ project, charged: net, refunded: '0', net, cpu_hours: 0, memory_hours: 0, gpu_hours: 0 });
const stretch = (daysAgo: number, ...projects: Stretch['projects']): Stretch => ({ from: new Date(NOW - daysAgo * DAY).toISOString(), projects });

it('each day has its share by project, refunds are taken off, and jobs without one are told apart', () => {
  const made = spending([stretch(1, spent('vision', '7.50'), spent(undefined, '1')), stretch(0, spent('vision', '-2.50'), spent('speech', '4'))], NOW, 7, WORDS);
  expect(made.days).toHaveLength(7);
  expect(made.projects.map(({ name, total }) => [name, total])).toEqual([['vision', 5], ['speech', 4], ['none', 1]]);
  expect(made.projects[0]?.perDay).toEqual([0, 0, 0, 0, 0, 7.5, -2.5]);
});

it('an hour that began before the first day counts in it', () => {
  const first = lastDays(NOW, 2)[0] ?? 0;
  const made = spending([{ from: new Date(first - 1_800_000).toISOString(), projects: [spent('a', '3')] }], NOW, 2, WORDS);
  expect(made.projects[0]?.perDay).toEqual([3, 0]);
});

it('too many projects end in one for the rest, and nothing is lost', () => {
  const many = Array.from({ length: 12 }, (_, n) => spent(`p${n}`, String(12 - n)));
  const made = spending([stretch(0, ...many)], NOW, 3, WORDS);
  expect(made.projects).toHaveLength(PROJECTS_MAX);
  expect(made.projects.reduce((sum, { total }) => sum + total, 0)).toBe(78);
  expect(made.projects.at(-1)?.name).toBe('others');
});

it('days begin at midnight and end today', () => {
  const days = lastDays(NOW, 3);
  expect(days.map((at) => new Date(at).getHours())).toEqual([0, 0, 0]);
  expect(new Date(days[2] ?? 0).getDate()).toBe(15);
});
