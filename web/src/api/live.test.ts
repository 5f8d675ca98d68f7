import { expect, it } from 'vitest';
import { retryAfterMs } from './live.svelte';

it('a lost connection is tried again soon, then ever more seldom, never later than 20 s', () => {
  const waits = Array.from({ length: 12 }, (_, tries) => retryAfterMs(tries, 0.5));
  expect(waits[0]).toBe(500);
  for (const [index, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual(waits[index - 1] ?? 0);
  expect(retryAfterMs(100, 1)).toBeLessThan(20_000);
});

it('pages that lost their server together do not come back together', () => {
  expect(retryAfterMs(3, 0)).toBeLessThan(retryAfterMs(3, 1));
});
