import { describe, expect, it } from 'vitest';
import { extent, place, ticks, timeTicks } from './scale';

describe('an axis', () => {
  it('has round ticks', () => {
    expect(ticks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticks(0.13, 0.47, 4)).toEqual([0.2, 0.3, 0.4]);
    expect(ticks(3, 3, 4)).toEqual([3]);
  });

  it('puts values between its ends, and in the middle when it has no length', () => {
    expect(place(5, 0, 10, 0, 100)).toBe(50);
    expect(place(7, 7, 7, 0, 100)).toBe(50);
    expect(place(0, 0, 10, 100, 0)).toBe(100);
  });

  it('ignores what is no number', () => {
    expect(extent([3, Number.NaN, 1, Infinity])).toEqual([1, 3]);
    expect(extent([])).toBeUndefined();
  });

  it('of time has ticks at round hours and marks days', () => {
    const from = new Date(2026, 5, 1, 20, 10).getTime();
    const to = new Date(2026, 5, 2, 8, 0).getTime();
    const found = timeTicks(from, to, 6);
    expect(found.map(({ at }) => new Date(at).getHours())).toEqual([22, 0, 2, 4, 6, 8]);
    expect(found.filter(({ midnight }) => midnight)).toHaveLength(1);
    for (const { at } of found) expect(new Date(at).getMinutes()).toBe(0);
  });

  it('of weeks has whole days', () => {
    const from = new Date(2026, 2, 20).getTime();
    const found = timeTicks(from, from + 30 * 86_400_000, 6);
    expect(found.length).toBeGreaterThan(2);
    expect(found.every(({ midnight }) => midnight)).toBe(true);
  });
});
