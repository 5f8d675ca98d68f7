/** What a job tells and uses: all of it once it is over, else what there is and then what comes. */
import { api, call } from '../../api/client';
import { asProblem, type ProblemError } from '../../api/problem';
import { follow } from '../../api/socket';
import type { MetricPoint } from '../../api/types';

/** Points in memory; the server thins what is older. */
const POINTS_MAX = 200_000;
/** Redrawing for every message would keep the page busy. */
const GATHER_MS = 400;

export class Recorded {
  points = $state.raw<readonly MetricPoint[]>([]);
  loading = $state(true);
  problem = $state.raw<ProblemError | undefined>();
  private known = '';
  private round = $state(0);

  /** Asks again for what could not be had. */
  retry(): void {
    this.problem = undefined;
    this.loading = true;
    this.round += 1;
  }

  /** Until the returned function is called. */
  watch(id: number, over: boolean): (() => void) | undefined {
    void this.round;
    const key = `${id} ${over}`;
    if (over) {
      if (this.known === key) return undefined;
      const stop = new AbortController();
      call(api.GET('/api/v1/jobs/{id}/metrics', { params: { path: { id }, query: { points: 1000 } }, signal: stop.signal })).then(
        (page) => {
          this.points = page.items;
          this.problem = undefined;
          this.loading = false;
          this.known = key;
        },
        (thrown: unknown) => {
          if (stop.signal.aborted) return;
          this.problem = asProblem(thrown);
          this.loading = false;
        },
      );
      return () => stop.abort();
    }
    let waiting: MetricPoint[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    this.points = [];
    const show = () => {
      timer = undefined;
      this.points = [...this.points, ...waiting].slice(-POINTS_MAX);
      waiting = [];
      this.loading = false;
    };
    const following = follow<MetricPoint>(
      () => `/api/v1/jobs/${id}/metrics/ws`,
      (items) => {
        waiting.push(...items);
        timer ??= setTimeout(show, GATHER_MS);
      },
      show,
    );
    // A job that has told nothing sends nothing: that is an answer too.
    const quiet = setTimeout(() => (this.loading = false), 1500);
    return () => {
      clearTimeout(timer);
      clearTimeout(quiet);
      following.stop();
    };
  }
}
