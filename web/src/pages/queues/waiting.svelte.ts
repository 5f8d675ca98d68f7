/**
 * Who waits in a queue, in the order of service as far as the reader may know it, each with why.
 * Administrators are told the order; everybody sees their own jobs with their positions.
 */
import { api, call, resource, session, type Explanation, type JobSummary, type Schemas } from '../../api';

/** Reasons under way at a time: each is a question of its own. */
const AT_ONCE = 5;

export interface Waiter {
  job: JobSummary;
  explanation: Explanation | undefined;
}

export interface Waiters {
  list: Waiter[];
  /** More wait than are shown. */
  more: boolean;
}

type Rule = Schemas['Rule'];

export function waiters(queue: () => string, rule: () => Rule | undefined, shown: () => number) {
  return resource(
    async (signal): Promise<Waiters> => {
      const [name, ordering, most] = [queue(), rule(), shown()];
      const query = { state: 'waiting', queue: name, limit: Math.min(1000, Math.max(200, most + 1)) };
      const [page, order] = await Promise.all([
        call(api.GET('/api/v1/jobs', { params: { query }, signal })),
        session.administers && ordering ? orderOf(name, ordering, signal) : Promise.resolve([]),
      ]);
      const place = new Map(order.map((job, index) => [job, index]));
      const jobs = [...page.items].sort((a, b) => (place.get(a.id) ?? Infinity) - (place.get(b.id) ?? Infinity) || a.id - b.id);
      const list = jobs.slice(0, most).map((job): Waiter => ({ job, explanation: undefined }));
      await explain(list, signal);
      if (order.length === 0) list.sort((a, b) => (a.explanation?.position ?? Infinity) - (b.explanation?.position ?? Infinity) || a.job.id - b.job.id);
      return { list, more: jobs.length > most || page.next != null };
    },
    { on: (event) => ['queued', 'ready', 'running', 'ended', 'requeued', 'edited', 'changed'].includes(event.event), everyMs: 30_000, burstMs: 2500 },
  );
}

async function orderOf(queue: string, rule: Rule, signal: AbortSignal): Promise<number[]> {
  return (await call(api.POST('/api/v1/policies/check', { body: { rule, queue }, signal }))).order_now ?? [];
}

async function explain(list: Waiter[], signal: AbortSignal): Promise<void> {
  const left = [...list];
  const work = async () => {
    for (let next = left.shift(); next && !signal.aborted; next = left.shift()) {
      try {
        next.explanation = await call(api.GET('/api/v1/jobs/{id}/explain', { params: { path: { id: next.job.id } }, signal }));
      } catch {
        // It may have started or ended since the list was read: it goes with the next list.
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
