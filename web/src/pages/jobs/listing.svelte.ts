/**
 * A long list of jobs: the first page at once, the others behind it while the first is read, then
 * kept alive by events. Filters are the server's; a change is asked for by its id.
 */
import { api, call } from '../../api/client';
import { live } from '../../api/live.svelte';
import { asProblem, type ProblemError } from '../../api/problem';
import type { JobSummary } from '../../api/types';
import { fits, toServer, type Filter } from './filter';
import { merged } from './rows';

const PAGE = 1000;
/** More rows than anybody scrolls through; filters find the others. */
export const ROWS_MAX = 100_000;
/** Changes are gathered for a moment. */
const GATHER_MS = 500;
/** Up to so many changed jobs are asked for one by one; more make the newest page load again. */
const SINGLE_MAX = 8;
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
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Keeps it alive until the returned function is called. */
  follow(): () => void {
    const quiet = live.listen((event) => {
      if (event.job !== undefined && event.job !== null) this.note(event.job);
    });
    const back = live.onComeback(() => void this.newest());
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
    try {
      await this.pages(controller.signal);
      this.problem = undefined;
    } catch (thrown) {
      if (controller.signal.aborted) return;
      this.problem = asProblem(thrown);
    }
    this.loading = false;
  }

  private async pages(signal: AbortSignal): Promise<void> {
    let cursor: string | undefined;
    let rows: JobSummary[] = [];
    for (let page = 0; rows.length < ROWS_MAX; page += 1) {
      // The first page is small: it is what is seen.
      const answer = await this.page(page === 0 ? 100 : PAGE, cursor, signal);
      if (signal.aborted) return;
      rows = rows.concat(answer.items);
      cursor = answer.next ?? undefined;
      const last = cursor === undefined;
      if (page === 0 || last || page % PAGES_AT_ONCE === 0) {
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

  private page(limit: number, cursor: string | undefined, signal?: AbortSignal) {
    const query = { ...toServer(this.filter), limit, ...(cursor !== undefined && { cursor }) };
    return call(api.GET('/api/v1/jobs', { params: { query }, ...(signal && { signal }) }));
  }

  private note(id: number): void {
    this.changed.add(id);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const ids = [...this.changed];
      this.changed.clear();
      void (ids.length > SINGLE_MAX ? this.newest() : this.single(ids));
    }, GATHER_MS);
  }

  private async single(ids: readonly number[]): Promise<void> {
    const asked = ids.map((id) => call(api.GET('/api/v1/jobs/{id}', { params: { path: { id } } })).catch(() => undefined));
    const found = (await Promise.all(asked)).filter((job) => job !== undefined);
    this.merge(found);
  }

  private async newest(): Promise<void> {
    try {
      this.merge((await this.page(PAGE, undefined)).items);
    } catch (thrown) {
      this.problem = asProblem(thrown);
    }
  }

  private merge(changed: readonly JobSummary[]): void {
    const { filter } = this;
    this.rows = merged(this.rows, changed, (job) => fits(job, filter));
  }
}
