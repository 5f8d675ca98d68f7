import { expect, it } from 'vitest';
import { BLANK } from './draft';
import { takeDuration, takeSize, takeValue, takeWindow } from './offers';
import { readSpan } from './spans';

const offer = { start: '2030-01-01T10:00:00Z', finish: '2030-01-01T12:00:30Z', price: '12.50' };

it('each offer changes what it is about, and the value only where it would not win', () => {
  expect(takeValue(BLANK, '9.00').value).toBe('9.00');
  const window = takeWindow({ ...BLANK, value: '20' }, offer);
  expect(new Date(window.by).getTime()).toBeGreaterThanOrEqual(Date.parse(offer.finish));
  expect(window.value).toBe('20');
  expect(takeWindow({ ...BLANK, value: '3' }, offer).value).toBe('12.50');
  expect(takeSize({ ...BLANK, replicas: '8' }, { replicas: 3, offer }).replicas).toBe('3');
  expect(takeSize({ ...BLANK, more: { gpus: 64 } }, { replicas: 32, offer }).more).toEqual({ gpus: 32 });
  expect(readSpan(takeDuration(BLANK, { duration_s: 5400, offer }).time)).toBe(5400);
});

it('an offer is not taken with a limit of cost that would refuse it', () => {
  const limited = { ...BLANK, more: { most: '3' } };
  expect(takeValue(limited, '9.00').more).toEqual({ most: '9.00' });
  expect(takeWindow(limited, offer).more).toEqual({ most: '12.50' });
  expect(takeDuration({ ...BLANK, more: { most: '30' } }, { duration_s: 5400, offer }).more).toEqual({ most: '30' });
});

it('a window that opens earlier than was said moves the start too', () => {
  const from = '2030-06-01T00:00';
  expect(new Date(takeWindow({ ...BLANK, from }, offer).from).getTime()).toBeLessThanOrEqual(Date.parse(offer.start));
});
