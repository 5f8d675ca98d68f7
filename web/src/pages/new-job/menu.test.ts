import { expect, it } from 'vitest';
import { axisEnds, priceBy, snapped, steps } from './menu';

const HOUR = 3_600_000;
const menu = [
  { by: new Date(4 * HOUR).toISOString(), price: '12.00', start: new Date(0).toISOString() },
  { by: new Date(2 * HOUR).toISOString(), price: '40.00', start: new Date(0).toISOString() },
];

it('a deadline costs what the last line before it costs', () => {
  const all = steps(menu);
  expect(priceBy(all, HOUR)).toBeUndefined();
  expect(priceBy(all, 2 * HOUR)).toBe(40);
  expect(priceBy(all, 3.9 * HOUR)).toBe(40);
  expect(priceBy(all, 400 * HOUR)).toBe(12);
});

it('the axis shows every line and the chosen deadline', () => {
  const all = steps(menu);
  expect(axisEnds(all, undefined, HOUR)[0]).toBe(2 * HOUR);
  expect(axisEnds(all, undefined, HOUR)[1]).toBeGreaterThan(4 * HOUR);
  expect(axisEnds(all, 9 * HOUR, HOUR)[1]).toBeGreaterThan(9 * HOUR);
});

it('a dragged deadline is a quarter of an hour, never too early', () => {
  const all = steps(menu);
  expect(snapped(all, 3 * HOUR + 7 * 60_000)).toBe(3 * HOUR);
  expect(snapped(all, 0)).toBe(2 * HOUR);
});
