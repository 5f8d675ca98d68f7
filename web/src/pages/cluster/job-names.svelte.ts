/** What the jobs are called that hold machines or will, as far as the reader may see them. */
import { api, call, resource, type JobSummary } from '../../api';

/** A thousand a page: most clusters hold fewer jobs than these, and of more the missing are asked for. */
const PAGES_MAX = 3;
/** What waits holds nothing, and there may be very much of it. */
const HOLDING = 'promised,starting,running,stopping';
/** What says that others hold machines than before. */
const CHANGES: ReadonlySet<string> = new Set(['promised', 'launched', 'replanned']);
/** So many are asked for by their numbers at a time; the server takes no more. */
const IDS_MAX = 100;
/** After so many, those that came and went since the page was opened are let go of. */
const ASKED_MAX = 20_000;

export interface JobNames {
  of(job: number): string | undefined;
  job(id: number): JobSummary | undefined;
  /** Another object whenever names came. */
  readonly known: object | undefined;
  /** Its name, or its number where it has none or is somebody else's. */
  label(job: number): string;
  /** These are shown: what is not known of them is asked for. */
  need(jobs: Iterable<number>): void;
}

export function jobNames(): JobNames {
  const jobs = resource(
    async (signal) => {
      const found = new Map<number, JobSummary>();
      let cursor: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const query = { state: HOLDING, limit: 1000, ...(cursor && { cursor }) };
        const answer = await call(api.GET('/api/v1/jobs', { params: { query }, signal }));
        for (const job of answer.items) found.set(job.id, job);
        cursor = answer.next ?? undefined;
        if (!cursor) break;
      }
      return { found, complete: cursor === undefined };
    },
    { on: (event) => CHANGES.has(event.event), burstMs: 3000 },
  );
  // What was asked for by number, whether it came or not: what is somebody else's is not asked twice.
  let more = $state.raw<ReadonlyMap<number, JobSummary>>(new Map());
  const asked = new Set<number>();
  const stopped = new AbortController();
  let wanted: number[] = [];
  let asking = false;
  $effect(() => () => stopped.abort());

  async function ask(): Promise<void> {
    asking = true;
    while (wanted.length > 0 && !stopped.signal.aborted) {
      const ids = wanted.splice(0, IDS_MAX);
      try {
        const query = { ids: ids.join(','), limit: IDS_MAX };
        const { items } = await call(api.GET('/api/v1/jobs', { params: { query }, signal: stopped.signal }));
        more = new Map([...more, ...items.map((job) => [job.id, job] as const)]);
      } catch {
        // They are shown by their numbers until they are needed again.
        for (const id of ids) asked.delete(id);
        wanted = [];
      }
    }
    asking = false;
  }

  function need(ids: Iterable<number>): void {
    // Where all that the reader may see is here, what is missing is somebody else's.
    if (!jobs.data || jobs.data.complete) return;
    if (asked.size > ASKED_MAX) {
      asked.clear();
      more = new Map();
    }
    for (const id of ids) {
      if (jobs.data.found.has(id) || asked.has(id)) continue;
      asked.add(id);
      wanted.push(id);
    }
    if (wanted.length > 0 && !asking) void ask();
  }

  const jobOf = (id: number) => jobs.data?.found.get(id) ?? more.get(id);
  const nameOf = (id: number) => jobOf(id)?.name ?? undefined;
  const known = $derived(jobs.data && { found: jobs.data.found, more });
  return {
    of: nameOf,
    job: jobOf,
    label: (id) => nameOf(id) ?? `#${id}`,
    need,
    get known() {
      return known;
    },
  };
}
