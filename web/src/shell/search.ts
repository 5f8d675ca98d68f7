/**
 * What there is by a name, a few of each kind: jobs, data sets, nodes and pools. The server's own
 * lists find it, so nobody finds what they may not see.
 */
import { api, call, type JobSummary, type Schemas } from '../api';

/** So many of each kind. */
const EACH = 5;
/** So many of the newest jobs are looked through for names that only contain what was typed: a whole page of the list. */
const RECENT = 1000;

export type Kind = 'job' | 'data' | 'node' | 'pool';

export interface Found {
  kind: Kind;
  /** What makes it another one than all others. */
  id: string;
  name: string;
  /** What tells it from others of the same name. */
  note: string;
  to: string;
}

const part = encodeURIComponent;
const has = (name: string | null | undefined, text: string) => (name ?? '').toLowerCase().includes(text.toLowerCase());

/** As names are usually written: the server knows how one begins letter by letter, small or capital. */
export function spellings(text: string): string[] {
  const small = text.toLowerCase();
  return [...new Set([text, small, small.charAt(0).toUpperCase() + small.slice(1), text.toUpperCase()])];
}

/** Jobs whose name begins so, the newest first, then newer ones that have it in their name: a few, each once. */
export function jobsNamed(text: string, begins: readonly JobSummary[], recent: readonly JobSummary[]): JobSummary[] {
  const all = [...begins.toSorted((a, b) => b.id - a.id), ...recent.filter(({ name }) => has(name, text))];
  return [...new Map(all.map((job) => [job.id, job])).values()].slice(0, EACH);
}

const jobOf = (job: JobSummary): Found => ({ kind: 'job', id: `job ${job.id}`, name: job.name ?? '', note: `#${job.id}`, to: `/jobs/${job.id}` });
const setOf = ({ owner, name }: Schemas['DataSet']): Found => ({ kind: 'data', id: `data ${owner}/${name}`, name, note: owner, to: `/data/${part(owner)}/${part(name)}` });
const nodeOf = ({ name, pool }: Schemas['Node']): Found => ({ kind: 'node', id: `node ${name}`, name, note: pool, to: `/cluster?node=${part(name)}` });
const poolOf = ({ name }: Schemas['Pool']): Found => ({ kind: 'pool', id: `pool ${name}`, name, note: '', to: `/market?pool=${part(name)}` });

export class Search {
  private recent: Promise<readonly JobSummary[]> | undefined;

  /** What is called so. Where a part of it could not be had and nothing was found, that is thrown. */
  async find(text: string, signal: AbortSignal): Promise<Found[]> {
    const query = { search: text, limit: EACH };
    const answers = await Promise.allSettled([
      this.jobs(text, signal).then((jobs) => jobs.map(jobOf)),
      call(api.GET('/api/v1/data', { params: { query }, signal })).then(({ items }) => items.map(setOf)),
      call(api.GET('/api/v1/nodes', { params: { query }, signal })).then(({ items }) => items.map(nodeOf)),
      call(api.GET('/api/v1/pools', { params: { query }, signal })).then(({ items }) => items.map(poolOf)),
    ]);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed && found.length === 0) throw failed.reason;
    return found;
  }

  private async jobs(text: string, signal: AbortSignal): Promise<JobSummary[]> {
    // The newest are asked for once: they serve all that is typed.
    this.recent ??= call(api.GET('/api/v1/jobs', { params: { query: { limit: RECENT } } })).then(({ items }) => items);
    const begins = spellings(text).map((name) => call(api.GET('/api/v1/jobs', { params: { query: { name, limit: EACH } }, signal })));
    try {
      const [recent, ...pages] = await Promise.all([this.recent, ...begins]);
      return jobsNamed(text, pages.flatMap(({ items }) => items), recent);
    } catch (thrown) {
      this.recent = undefined;
      throw thrown;
    }
  }
}
