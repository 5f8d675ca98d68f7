/** Which jobs are shown: read from the address, and asked of the server. */
import type { JobState, JobSummary } from '../../api/types';
import { isOver } from '../../ui/job-states';

export type Which = 'active' | 'running' | 'promised' | 'waiting' | 'over' | 'all';
export const WHICH: readonly Which[] = ['all', 'active', 'running', 'promised', 'waiting', 'over'];

export interface Filter {
  which: Which;
  /** Begins so. */
  name: string;
  user: string;
  queue: string;
  project: string;
}

const STATES: Record<Which, JobState[] | undefined> = {
  all: undefined,
  active: ['waiting', 'promised', 'starting', 'running', 'stopping'],
  running: ['starting', 'running', 'stopping'],
  promised: ['promised'],
  waiting: ['waiting'],
  over: ['succeeded', 'failed', 'cancelled', 'released', 'limit_reached', 'broken'],
};

export function fromQuery(query: URLSearchParams): Filter {
  const which = query.get('state') as Which | null;
  return {
    which: which && WHICH.includes(which) ? which : 'all',
    name: query.get('name') ?? '',
    user: query.get('user') ?? '',
    queue: query.get('queue') ?? '',
    project: query.get('project') ?? '',
  };
}

/** As the server understands it. */
export function toServer(filter: Filter): Record<string, string> {
  const states = STATES[filter.which];
  return {
    ...(states && { state: states.join(',') }),
    ...(filter.name !== '' && { name: filter.name }),
    ...(filter.user !== '' && { user: filter.user }),
    ...(filter.queue !== '' && { queue: filter.queue }),
    ...(filter.project !== '' && { project: filter.project }),
  };
}

export function canCancel(job: JobSummary): boolean {
  return !isOver(job.state) && job.state !== 'stopping';
}

export function canRetry(job: JobSummary): boolean {
  return isOver(job.state);
}
