import { expect, it } from 'vitest';
import { Comeback } from './comeback';
import { Part, PART_FAILED } from './part.svelte';
import { UNREACHABLE } from './problem';

/** A part that fails so often before it comes, in a browser whose server answers when it is let. */
function failing(times: number, kept = new Map<string, string>()) {
  const seen = { loads: 0, reloads: 0, answers: false };
  const comeback = new Comeback({
    kept: { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value), removeItem: (key) => void kept.delete(key) },
    answers: async () => seen.answers,
    busy: () => false,
    pause: () => new Promise((next) => setTimeout(next, 0)),
    reload: () => (seen.reloads += 1),
  });
  const load = async () => {
    seen.loads += 1;
    if (seen.loads <= times) throw new TypeError('Failed to fetch');
    return 'library';
  };
  return { part: new Part('charts', load, comeback), seen, kept };
}
const settled = () => new Promise((next) => setTimeout(next, 50));

it('comes once for all who ask', async () => {
  const { part, seen } = failing(0);
  expect(await Promise.all([part.get(), part.get()])).toEqual(['library', 'library']);
  expect(seen.loads).toBe(1);
});

it('is asked for in a new document once the server answers, for all who wait together', async () => {
  const { part, seen } = failing(1);
  await expect(part.get()).rejects.toMatchObject({ code: UNREACHABLE });
  part.wait();
  part.wait()();
  await settled();
  expect(seen.reloads).toBe(0);
  seen.answers = true;
  await expect.poll(() => seen.reloads).toBe(1);
});

it('asks for nothing more where nobody waits for it any longer', async () => {
  const { part, seen } = failing(1);
  await expect(part.get()).rejects.toThrow();
  part.wait()();
  seen.answers = true;
  await settled();
  expect(seen.reloads).toBe(0);
});

it('says so where a new document did not help either, and needs no third one', async () => {
  const first = failing(1);
  first.seen.answers = true;
  await expect(first.part.get()).rejects.toMatchObject({ code: UNREACHABLE });
  first.part.wait();
  await expect.poll(() => first.seen.reloads).toBe(1);
  const second = failing(1, first.kept);
  second.seen.answers = true;
  await expect(second.part.get()).rejects.toMatchObject({ code: PART_FAILED });
  second.part.wait();
  await settled();
  expect(second.seen.reloads).toBe(0);
  // The reader may ask for one.
  second.part.retry();
  await expect.poll(() => second.seen.reloads).toBe(1);
});
