import { expect, it } from 'vitest';
import { lines, periodOf, type Chargeback } from './chargeback';

const line = (user: string, project: string | undefined, charged: string, refunded: string, gpu_hours = 1): Chargeback['lines'][number] =>
  ({ user, project, charged, refunded, net: String(Number(charged) - Number(refunded)), gpu_hours, cpu_hours: 2, memory_hours: 3 });
const group = (name: string, ...own: Chargeback['lines']): Chargeback => ({ group: name, from: '', to: '', lines: own });

it('groups come with their sums, the dearest first, then their members by project', () => {
  const all = lines([group('x', line('c', 'p', '3.50', '1'), line('a', undefined, '1.50', '0', 4)), group('y', line('b', 'q', '7', '0')), group('z')]);
  expect(all.map(({ group: of, user, project, net }) => [of, user, project, net])).toEqual([
    ['y', undefined, undefined, 7],
    ['y', 'b', 'q', 7],
    ['x', undefined, undefined, 4],
    ['x', 'c', 'p', 2.5],
    ['x', 'a', undefined, 1.5],
    ['z', undefined, undefined, 0],
  ]);
  expect(all[2]).toMatchObject({ charged: 5, refunded: 1, gpuHours: 5, cpuHours: 4, memoryHours: 6 });
});

it('a period is the server’s own, a month of the calendar, or so many days', () => {
  const now = new Date(2026, 10, 15, 12).getTime();
  const own = { from: '2026-11-01T00:00:00Z', to: '2026-12-01T00:00:00Z' };
  expect(periodOf('period', now, own)).toEqual({ from: '2026-11-01T00:00:00.000Z', to: new Date(now).toISOString() });
  expect(periodOf('last-month', now, own)).toEqual({ from: new Date(2026, 9, 1).toISOString(), to: new Date(2026, 10, 1).toISOString() });
  expect(periodOf('month', now, undefined).from).toBe(new Date(2026, 10, 1).toISOString());
  expect(periodOf('90', now, own).from).toBe(new Date(now - 90 * 86_400_000).toISOString());
  expect(periodOf('period', now, undefined).from).toBe(new Date(now - 30 * 86_400_000).toISOString());
});
