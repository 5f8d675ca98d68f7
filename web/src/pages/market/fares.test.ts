import { describe, expect, it } from 'vitest';
import type { PricePoint } from '../../api/types';
import { calendarOf, cheapestStart, ends, fullest, heat, priceOf, stairs, stepSeconds } from './fares';

function point(from: Date, gpu: number, cpu = 0.5): PricePoint {
  const to = new Date(from.getTime() + 3_600_000);
  return { from: from.toISOString(), to: to.toISOString(), cpu: String(cpu), memory: '0.01', gpu: String(gpu), promised: [0, 0, 0], forecast: [0, 0, 0] };
}

describe('the calendar', () => {
  it('has a row a day and a cell an hour by the reader’s clock', () => {
    const points = [22, 23, 24, 25].map((hour) => point(new Date(2026, 5, 1, hour), hour));
    const { days, fares } = calendarOf(points);
    expect(days).toEqual([new Date(2026, 5, 1).getTime(), new Date(2026, 5, 2).getTime()]);
    expect(fares.map(({ day, hour, price }) => [day, hour, price])).toEqual([[0, 22, 22], [0, 23, 23], [1, 0, 24], [1, 1, 25]]);
  });

  it('shows the cheaper of two stretches of one hour, and where it begins', () => {
    const half = new Date(2026, 5, 1, 8, 30);
    const { fares } = calendarOf([point(new Date(2026, 5, 1, 8), 6), point(half, 4)]);
    expect(fares).toHaveLength(1);
    expect(fares[0]).toMatchObject({ price: 4, from: half.getTime() });
  });

  it('asks for stretches that fit into hours of any zone', () => {
    expect([0, -60, 330, -570, 345].map(stepSeconds)).toEqual([3600, 3600, 1800, 1800, 900]);
  });
});

describe('what of a pool is used', () => {
  it('is told of what is used most, and of GPUs where nothing is used more', () => {
    expect(fullest([0.98, 0.4, 0], true)).toEqual({ resource: 'cpu', share: 0.98 });
    expect(fullest([0.2, 0.9, 0.3], true)).toEqual({ resource: 'memory', share: 0.9 });
    expect(fullest([0.5, 0.1, 0.5], true)).toEqual({ resource: 'gpu', share: 0.5 });
    expect(fullest([], true)).toEqual({ resource: 'gpu', share: 0 });
    expect(fullest([0, 0, 1], false)).toEqual({ resource: 'cpu', share: 0 });
  });
});

describe('prices', () => {
  it('are of GPUs where there are any, else of cores', () => {
    expect(priceOf(point(new Date(), 8))).toBe(8);
    expect(priceOf(point(new Date(), 0, 0.7))).toBe(0.7);
  });

  it('are hot by their ratio, and cool where all are the same', () => {
    expect(heat(4, 4, 64)).toBe(0);
    expect(heat(16, 4, 64)).toBeCloseTo(0.5);
    expect(heat(64, 4, 64)).toBe(1);
    expect(heat(5, 5, 5)).toBe(0);
    expect(heat(5, 0, 10)).toBe(0.5);
  });

  it('for several hours in a row are cheapest where their sum is least, the earlier among equals', () => {
    const { fares } = calendarOf([5, 1, 9, 2, 3, 3, 2].map((price, hour) => point(new Date(2026, 5, 1, hour), price)));
    expect(cheapestStart(fares, 1)?.fare.hour).toBe(1);
    expect(cheapestStart(fares, 2)).toMatchObject({ mean: 2.5, fare: { hour: 3 } });
    expect(cheapestStart(fares, 9)).toBeUndefined();
    expect(ends(fares)).toEqual([1, 9]);
  });
});

describe('past prices', () => {
  it('hold until the next one, and the last one until now', () => {
    const steps = stairs([{ at: 10, price: 4 }, { at: 20, price: 6 }], 6, 30);
    expect(steps.map(({ at, price }) => [at, price])).toEqual([[10, 4], [20, 4], [20, 6], [30, 6]]);
  });

  it('end with what it costs now, also where nothing was written down yet', () => {
    expect(stairs([{ at: 10, price: 4 }], 5, 30).map(({ at, price }) => [at, price])).toEqual([[10, 4], [30, 4], [30, 5]]);
    expect(stairs([], 5, 30)).toEqual([{ at: 30, price: 5 }]);
    expect(stairs([], undefined, 30)).toEqual([]);
  });
});
