import { expect, it } from 'vitest';
import { untouched, windowAt } from './clicked-hour';
import { BLANK } from './draft';
import { localTime } from './spans';

const NOON = new Date(2030, 4, 3, 12, 0).toISOString();

it('a clicked hour is a window in which every start lies in that hour', () => {
  expect(windowAt(NOON, 3600)).toEqual({ from: '2030-05-03T12:00', by: '2030-05-03T13:59' });
  expect(windowAt(NOON, 1800)).toEqual({ from: '2030-05-03T12:00', by: '2030-05-03T13:29' });
  // Part of a minute more would let it start in the hour after.
  expect(windowAt(NOON, 90)).toEqual({ from: '2030-05-03T12:00', by: '2030-05-03T13:00' });
});

it('the hour that is under way begins now and leaves the rest of it', () => {
  const now = new Date(2030, 4, 3, 12, 40, 30);
  expect(windowAt(now.toISOString(), 7200)).toEqual({ from: localTime(now), by: '2030-05-03T14:59' });
});

it('what is not understood makes no window, and one has no end until the length of the job is known', () => {
  expect(windowAt('soon', 3600)).toBeUndefined();
  expect(windowAt(NOON, undefined)).toEqual({ from: '2030-05-03T12:00', by: '' });
});

it('a window is left alone once the reader has changed it', () => {
  const made = { from: '2030-05-03T12:00', by: '2030-05-03T13:59' };
  expect(untouched({ ...BLANK, ...made }, made)).toBe(true);
  expect(untouched({ ...BLANK, ...made, by: '2030-05-04T00:00' }, made)).toBe(false);
});
