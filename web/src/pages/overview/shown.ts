/** Which jobs the overview shows where there are too many, and how many there are. */
import type { JobSummary, Schemas } from '../../api';

/** How many jobs are in these states together; with a `+` where the server stopped counting. */
export function counted({ counts, at_least }: Schemas['JobCounts'], states: readonly string[], number: (value: number) => string): string {
  const more = at_least?.some((state) => states.includes(state)) ?? false;
  return `${number(states.reduce((sum, state) => sum + (counts[state] ?? 0), 0))}${more ? '+' : ''}`;
}

const by = (state: string) => ({ promised: 1, waiting: 2 })[state] ?? 0;

/**
 * What runs, then what is promised, the soonest first, then what waits; where there are more than
 * `most`, some of each, so that none hides the others.
 */
export function shown(jobs: readonly JobSummary[], most: number): JobSummary[] {
  const groups: JobSummary[][] = [[], [], []];
  for (const job of jobs) groups[by(job.state)]?.push(job);
  const start = ({ promised_start }: JobSummary) => (promised_start ? Date.parse(promised_start) : Infinity);
  for (const group of groups) group.sort((a, b) => (start(a) === start(b) ? b.id - a.id : start(a) - start(b)));
  const taken = groups.map((group) => Math.min(group.length, Math.floor(most / groups.length)));
  let left = most - taken.reduce((sum, count) => sum + count, 0);
  groups.forEach((group, index) => {
    const more = Math.min(left, group.length - (taken[index] ?? 0));
    taken[index] = (taken[index] ?? 0) + more;
    left -= more;
  });
  return groups.flatMap((group, index) => group.slice(0, taken[index]));
}
