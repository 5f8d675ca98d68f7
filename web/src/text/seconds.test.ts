import { expect, it } from 'vitest';
import { seconds } from './seconds';

it('lengths of every size are read at a glance', () => {
  const cases = [[0, '0 s'], [0.00012, '120 µs'], [0.0085, '8.5 ms'], [0.25, '250 ms'], [1.5022, '1.5 s'], [3725, '1 h 2 min']] as const;
  for (const [length, read] of cases) expect(seconds(length)).toBe(read);
});
