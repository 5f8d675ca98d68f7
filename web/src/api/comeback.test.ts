import { expect, it } from 'vitest';
import { Comeback } from './comeback';

/** A browser whose server answers after so many questions. */
function browser(awayFor: number) {
  const kept = new Map<string, string>();
  const seen = { asked: 0, reloads: 0, busy: false };
  const comeback = new Comeback({
    kept: { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value), removeItem: (key) => void kept.delete(key) },
    answers: async () => (seen.asked += 1) > awayFor,
    busy: () => seen.busy,
    pause: () => new Promise((next) => setTimeout(next, 0)),
    reload: () => (seen.reloads += 1),
  });
  return { comeback, seen };
}
const settled = () => new Promise((next) => setTimeout(next, 50));

it('loads the document anew once the server answers, and not before', async () => {
  const { comeback, seen } = browser(3);
  comeback.await('/market');
  await expect.poll(() => seen.reloads).toBe(1);
  expect(seen.asked).toBe(4);
});

it('does so once for a page: what fails in a new document needs no third one', async () => {
  const { comeback } = browser(0);
  expect(comeback.mayHelp('/market')).toBe(true);
  comeback.await('/market');
  await expect.poll(() => comeback.mayHelp('/market')).toBe(false);
  expect(comeback.mayHelp('/jobs')).toBe(true);
  comeback.arrived('/market');
  expect(comeback.mayHelp('/market')).toBe(true);
});

it('lets it be where the reader has gone elsewhere', async () => {
  const { comeback, seen } = browser(1);
  comeback.await('/market')();
  await settled();
  expect(seen.reloads).toBe(0);
});

it('what came says nothing of what did not: of two that cannot be had, neither asks for documents for ever', async () => {
  const { comeback } = browser(0);
  comeback.await('charts');
  await expect.poll(() => comeback.mayHelp('charts')).toBe(false);
  comeback.await('yaml');
  await expect.poll(() => comeback.mayHelp('yaml')).toBe(false);
  comeback.arrived('/jobs/:id');
  expect([comeback.mayHelp('charts'), comeback.mayHelp('yaml')]).toEqual([false, false]);
});

it('waits until the reader has written what is being written', async () => {
  const { comeback, seen } = browser(0);
  seen.busy = true;
  comeback.await('charts');
  await settled();
  expect(seen.reloads).toBe(0);
  seen.busy = false;
  await expect.poll(() => seen.reloads).toBe(1);
});
