/**
 * A long list of jobs: the first page at once, the others behind it while the first is read, then
 * kept alive by events. Filters are the server's: jobs that changed are asked for by their numbers
 * under the filter, and those that do not come have left it.
 */
import { api, call } from '../../api/client';
import { live } from '../../api/live.svelte';
import { asProblem, type ProblemError } from '../../api/problem';
import type { JobSummary } from '../../api/types';
import { toServer, type Filter } from './filter';
import { merged } from './rows';

const PAGE = 1000;
/** More rows than anybody scrolls through; filters find the others. */
export const ROWS_MAX = 100_000;
/** Changes are gathered for a moment. */
const GATHER_MS = 500;
/** So many are asked for by their numbers at a time; the server takes no more. */
const IDS_MAX = 100;
/** So many jobs of an array that was just handed in are shown at once; the others as they change. */
const ARRAY_MAX = 1000;
/** Pages between two redraws while the rest comes in. */
const PAGES_AT_ONCE = 10;

export class Listing {
  rows = $state.raw<readonly JobSummary[]>([]);
  loading = $state(true);
  /** Whether all that fits the filter is here. */
  complete = $state(false);
  problem = $state.raw<ProblemError | undefined>();

  private filter: Filter = { which: 'all', name: '', user: '', queue: '', project: '' };
  private current: AbortController | undefined;
  private changed = new Set<number>();
  /** What changed while pages came in: they may have been read before. */
  private during: Set<number> | undefined;
  /** One question after the other, so that no older answer is laid over a newer one. */
  private renewing: Promise<void> = Promise.resolve();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Keeps it alive until the returned function is called. */
  follow(): () => void {
    const quiet = live.listen((event) => {
      if (event.job === undefined || event.job === null) return;
      // An array is one event, and its jobs have numbers that follow one another.
      const count = event.event === 'queued' ? Math.min(ARRAY_MAX, Number(event.parameters?.['count'] ?? 1)) : 1;
      for (let index = 0; index < count; index += 1) this.note(event.job + index);
    });
    const back = live.onComeback(() => void this.reload());
    return () => {
      quiet();
      back();
      clearTimeout(this.timer);
      this.current?.abort();
    };
  }

  async load(filter: Filter): Promise<void> {
    this.filter = filter;
    this.current?.abort();
    const controller = new AbortController();
    this.current = controller;
    this.loading = true;
    this.complete = false;
    await this.take(controller.signal, true);
    if (!controller.signal.aborted) this.loading = false;
  }

  /** All of it again, without taking away what is shown until it is there. */
  private async reload(): Promise<void> {
    if (this.rows.length === 0) return this.load(this.filter);
    this.current?.abort();
    const controller = new AbortController();
    this.current = controller;
    await this.take(controller.signal, false);
  }

  private async take(signal: AbortSignal, early: boolean): Promise<void> {
    const during = new Set<number>();
    this.during = during;
    try {
      await this.pages(signal, early);
      if (!signal.aborted) this.problem = undefined;
    } catch (thrown) {
      if (signal.aborted) return;
      this.problem = asProblem(thrown);
      // What another filter had found is no answer to this one.
      if (early) this.rows = [];
    }
    if (signal.aborted) return;
    this.during = undefined;
    for (const id of during) this.note(id);
  }

  private async pages(signal: AbortSignal, early: boolean): Promise<void> {
    let cursor: string | undefined;
    let rows: JobSummary[] = [];
    for (let page = 0; rows.length < ROWS_MAX; page += 1) {
      // The first page is small: it is what is seen.
      const answer = await this.page(page === 0 ? 100 : PAGE, cursor, signal);
      if (signal.aborted) return;
      rows = rows.concat(answer.items);
      cursor = answer.next ?? undefined;
      const last = cursor === undefined;
      if (last || (early && page % PAGES_AT_ONCE === 0)) {
        this.rows = rows;
        this.loading = false;
      }
      if (last) {
        this.complete = true;
        return;
      }
      // The page is drawn and scrolled in between.
      await new Promise((next) => setTimeout(next, 0));
    }
    this.rows = rows;
  }

  private page(limit: number, cursor: string | undefined, signal: AbortSignal) {
    const query = { ...toServer(this.filter), limit, ...(cursor !== undefined && { cursor }) };
    return call(api.GET('/api/v1/jobs', { params: { query }, signal }));
  }

  private note(id: number): void {
    this.changed.add(id);
    this.during?.add(id);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const ids = [...this.changed];
      this.changed.clear();
      this.renewing = this.renewing.then(() => this.renew(ids));
    }, GATHER_MS);
  }

  /** Asks for jobs that changed, a part of them at a time. */
  private async renew(ids: readonly number[]): Promise<void> {
    const signal = this.current?.signal;
    try {
      for (let from = 0; from < ids.length; from += IDS_MAX) {
        const asked = ids.slice(from, from + IDS_MAX);
        const query = { ...toServer(this.filter), ids: asked.join(','), limit: IDS_MAX };
        const answer = await call(api.GET('/api/v1/jobs', { params: { query }, ...(signal && { signal }) }));
        // Another filter was chosen meanwhile: what belongs to it is loaded anyway.
        if (signal?.aborted) return;
        this.rows = merged(this.rows, asked, answer.items);
      }
    } catch (thrown) {
      if (!signal?.aborted) this.problem = asProblem(thrown);
    }
  }
}
