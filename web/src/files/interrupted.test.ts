import { expect, it } from 'vitest';
import { forgotten, noted, readInterrupted, type Interrupted } from './interrupted';

const one = (name: string, sent = 1): Interrupted => ({ owner: 'ada', name, files: 2, bytes: 10, sent, path: 'a.bin' });

it('reads back what was stored, and nothing else', () => {
  expect(readInterrupted(JSON.stringify([one('x'), { owner: 'ada' }, 7, null]))).toEqual([one('x')]);
  for (const text of [null, '', '{', '{"a":1}', '[[]]']) expect(readInterrupted(text)).toEqual([]);
});

it('knows the newest of each set, and forgets what is over', () => {
  const all = noted(noted([one('y')], one('x', 3)), one('x', 5));
  expect(all).toEqual([one('x', 5), one('y')]);
  expect(forgotten(all, 'ada', 'x')).toEqual([one('y')]);
});
