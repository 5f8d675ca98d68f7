import { asProblem } from '../../api/problem';
import { problemText } from '../../text/server';

/** The same deed for many jobs, a few at a time, with a count of what failed and why. */
export interface Outcome {
  done: number;
  failed: number;
  /** The first reason. */
  why: string;
}

const AT_ONCE = 6;

export async function forEach(ids: readonly number[], deed: (id: number) => Promise<unknown>): Promise<Outcome> {
  const outcome: Outcome = { done: 0, failed: 0, why: '' };
  const left = [...ids];
  const work = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try {
        await deed(id);
        outcome.done += 1;
      } catch (thrown) {
        outcome.failed += 1;
        outcome.why ||= problemText(asProblem(thrown));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}
