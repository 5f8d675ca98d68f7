/** Which jobs are shown: read from the address, and asked of the server. */
import type { JobState, JobSummary } from '../../api/types';
import { isOver, states } from '../../ui/job-states';

/** What is offered; an address may name any states of the server's, by comma. */
export const WHICH = ['all', 'active', 'running', 'promised', 'waiting', 'over'] as const;
/** How a job may have ended. */
export const ENDS = (Object.keys(states) as JobState[]).filter(isOver);

export interface Filter {
  /** One of `WHICH` or of `ENDS`, or what else the address says. */
  which: string;
  /** Begins so. */
  name: string;
  user: string;
  queue: string;
  project: string;
}

export function fromQuery(query: URLSearchParams): Filter {
  return {
    which: query.get('state') || 'all',
    name: query.get('name') ?? '',
    user: query.get('user') ?? '',
    queue: query.get('queue') ?? '',
    project: query.get('project') ?? '',
  };
}

/** As the server understands it, who also says which states there are not. */
export function toServer(filter: Filter): Record<string, string> {
  // What begins and what ends runs as well, to a reader.
  const state = filter.which === 'running' ? 'starting,running,stopping' : filter.which;
  return {
    ...(state !== 'all' && { state }),
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
