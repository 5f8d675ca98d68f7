import { describe, expect, it } from 'vitest';
import type { Schemas } from '../../api/types';
import { failing } from './failing';

const task = (changes: Partial<Schemas['Task']>): Schemas['Task'] => ({ part: 0, attempt: 1, rank: 0, node: 'n', gpus: [], launched: '2026-11-15T12:00:00Z', simulated: false, ...changes });

describe('the task that a job failed by', () => {
  it('is the first of the last attempt that ended badly by itself', () => {
    const first = task({ rank: 2, attempt: 2, exit_code: 3, ended: '2026-11-15T12:00:05Z' });
    const tasks = [
      task({ rank: 1, exit_code: 9, ended: '2026-11-15T12:00:01Z' }),
      task({ rank: 0, attempt: 2, exit_code: 0, ended: '2026-11-15T12:00:02Z' }),
      task({ rank: 1, attempt: 2, exit_code: 143, cause: 'stopped', ended: '2026-11-15T12:00:04Z' }),
      task({ rank: 3, attempt: 2, exit_code: 1, ended: '2026-11-15T12:00:06Z' }),
      first,
    ];
    expect(failing(tasks)).toBe(first);
  });

  it('is one that was stopped where there is no other, and none where none is known', () => {
    const stopped = task({ exit_code: 143, cause: 'stopped' });
    expect(failing([stopped])).toBe(stopped);
    expect(failing([task({ exit_code: 0 })])).toBeUndefined();
    expect(failing([])).toBeUndefined();
  });
});
