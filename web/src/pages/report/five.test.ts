import { expect, it } from 'vitest';
import { pairs, periodOf, verdictOf, type Measures } from './five';

const of = (total_s: number | null, start_first: number, unit_cost: string | null): Measures =>
  ({ jobs: 3, start_up: { total_s }, start_first, start_second: 1, system_faults: 0, refusals: 0, run_success: 0.8, utilisation: 0.5, unit_cost, unit_cost_by_model: [] }) as unknown as Measures;

it('less time and money are better, and so is more of all else', () => {
  const all = pairs(of(2, 0.9, '3.00'), of(8, 0.6, '2.00'), of(3, 0.9, '3.00'));
  expect(all.map(({ measure, verdict }) => [measure, verdict])).toEqual([
    ['startUp', 'better'],
    ['startFirst', 'better'],
    ['runSuccess', 'same'],
    ['utilisation', 'same'],
    ['unitCost', 'worse'],
  ]);
  expect(all[0]?.ratio).toBe(0.25);
});

it('what is not known is not judged', () => {
  expect(pairs(of(null, 0.9, null), undefined, undefined).every(({ verdict }) => verdict === undefined)).toBe(true);
  expect(verdictOf('utilisation', Number.NaN)).toBeUndefined();
});

it('a period is so many days, or whole days of the calendar, and never ends later than now', () => {
  const now = new Date(2026, 10, 15, 12).getTime();
  expect(periodOf(7, null, null, now)?.from.getTime()).toBe(now - 7 * 86_400_000);
  const chosen = periodOf(7, '2026-11-01', '2026-11-03', now);
  expect([chosen?.from.getDate(), chosen?.to.getDate()]).toEqual([1, 4]);
  expect(periodOf(7, '2026-11-10', '2026-12-30', now)?.to.getTime()).toBe(now);
  expect(periodOf(7, '2026-11-10', '2026-11-01', now)).toBeUndefined();
});
