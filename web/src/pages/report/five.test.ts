import { expect, it } from 'vitest';
import { differenceOf, pairs, periodOf, verdictOf, type Measures } from './five';

const of = (total_s: number | null, start_first: number, unit_cost: string | null): Measures =>
  ({ jobs: 3, start_up: { total_s }, start_first, start_second: 1, system_faults: 0, refusals: 0, run_success: 0.8, utilisation: 0.5, unit_cost, unit_cost_by_model: [] }) as unknown as Measures;

it('less time and money are better, and so is more of all else', () => {
  const ratio = { start_up: 0.25, start_first: 1.5, run_success: 1, utilisation: 1, unit_cost: 1.5 };
  const all = pairs(of(2, 0.9, '3.00'), { without: of(8, 0.6, '2.00'), replayed: of(2, 0.9, '3.00'), ratio });
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
  expect(pairs(of(null, 0.9, null), undefined).every(({ verdict }) => verdict === undefined)).toBe(true);
  expect(verdictOf('utilisation', Number.NaN)).toBeUndefined();
});

it('a ratio that the server withholds is made up nowhere else', () => {
  const [startUp, startFirst] = pairs(of(0.008, 0.9, null), { without: of(10, 0.9, null), replayed: of(603.9, 0.9, null), ratio: { start_first: 1 }, withheld: ['start_up'] });
  expect([startUp?.ratio, startUp?.verdict, startUp?.withheld]).toEqual([undefined, undefined, true]);
  expect([startFirst?.verdict, startFirst?.withheld]).toEqual(['same', false]);
});

it('a difference is a multiple where it is large, and a share where it is small', () => {
  expect(differenceOf(0.02)).toEqual({ times: 50, less: true });
  expect(differenceOf(3)).toEqual({ times: 3, less: false });
  expect(differenceOf(0.8).share).toBeCloseTo(0.2);
  expect(differenceOf(1.25)).toEqual({ share: 0.25, less: false });
  expect(differenceOf(0)).toEqual({ share: 1, less: true });
});

it('a period is so many days, or whole days of the calendar, and never ends later than now', () => {
  const now = new Date(2026, 10, 15, 12).getTime();
  expect(periodOf(7, null, null, now)?.from.getTime()).toBe(now - 7 * 86_400_000);
  const chosen = periodOf(7, '2026-11-01', '2026-11-03', now);
  expect([chosen?.from.getDate(), chosen?.to.getDate()]).toEqual([1, 4]);
  expect(periodOf(7, '2026-11-10', '2026-12-30', now)?.to.getTime()).toBe(now);
  expect(periodOf(7, '2026-11-10', '2026-11-01', now)).toBeUndefined();
});
