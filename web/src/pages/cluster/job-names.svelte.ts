/** What the jobs are called that run or are promised, as far as the reader may see them. */
import { api, call, resource, type JobSummary } from '../../api';

/** A thousand a page: enough names for a map; further jobs are shown by their numbers. */
const PAGES_MAX = 3;

export interface JobNames {
  of(job: number): string | undefined;
  job(id: number): JobSummary | undefined;
  /** Another object whenever names came. */
  readonly known: object | undefined;
  /** Its name, or its number where it has none or is somebody else's. */
  label(job: number): string;
}

export function jobNames(): JobNames {
  const jobs = resource(
    async (signal) => {
      const found = new Map<number, JobSummary>();
      let cursor: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const query = { state: 'active', limit: 1000, ...(cursor && { cursor }) };
        const answer = await call(api.GET('/api/v1/jobs', { params: { query }, signal }));
        for (const job of answer.items) found.set(job.id, job);
        cursor = answer.next ?? undefined;
        if (!cursor) break;
      }
      return found;
    },
    { on: (event) => event.event === 'promised' || event.event === 'queued', burstMs: 3000 },
  );
  const nameOf = (id: number) => jobs.data?.get(id)?.name ?? undefined;
  return {
    of: nameOf,
    job: (id) => jobs.data?.get(id),
    label: (id) => nameOf(id) ?? `#${id}`,
    get known() {
      return jobs.data;
    },
  };
}
