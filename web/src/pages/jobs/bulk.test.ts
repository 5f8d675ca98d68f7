import { expect, it } from 'vitest';
import { forEach } from './bulk';

it('one that fails does not keep the others from being done', async () => {
  const seen: number[] = [];
  const outcome = await forEach([1, 2, 3, 4, 5, 6, 7, 8, 9], async (id) => {
    seen.push(id);
    if (id % 4 === 0) throw new Error(`not ${id}`);
  });
  expect(seen.sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(outcome).toEqual({ done: 7, failed: 2, why: 'not 4' });
});

it('only a few are under way at a time', async () => {
  let [now, most] = [0, 0];
  await forEach(Array.from({ length: 40 }, (_, index) => index), async () => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((wait) => setTimeout(wait, 1));
    now -= 1;
  });
  expect(most).toBeLessThanOrEqual(6);
});
