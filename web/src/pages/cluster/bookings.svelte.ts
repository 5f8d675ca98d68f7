/**
 * What is booked on the nodes that are seen, for as long as the calendar is open. A node is asked
 * for when it first comes into sight, a few at a time; what was loaded is asked for again when
 * something changed and it is seen, so that a cluster of thousands costs what is looked at.
 */
import { api, call, clusterChanged, live, type Booking } from '../../api';
import { asProblem, type ProblemError } from '../../api/problem';

/** Questions under way at a time: a browser opens no more connections to one server. */
const AT_ONCE = 5;
/** Promises come in bursts: what is seen is asked for again no more often than this. */
const REFRESH_MS = 2500;

export interface Period {
  from: number;
  to: number;
}

export class Bookings {
  /** By node. A new map whenever something came, at most once a frame. */
  byNode = $state.raw<ReadonlyMap<string, readonly Booking[]>>(new Map());
  problem = $state.raw<ProblemError | undefined>();
  /** How many of the nodes in sight have not been answered yet. */
  awaited = $state(0);

  private readonly known = new Map<string, readonly Booking[]>();
  private readonly stale = new Set<string>();
  private readonly asked = new Set<string>();
  private seen: readonly string[] = [];
  private stopped = new AbortController();
  private publishing = false;

  constructor(private readonly period: () => Period) {}

  /** Begins to follow the live stream; ends with the function that it gives. */
  follow(): () => void {
    this.stopped = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const changed = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        this.refresh();
      }, REFRESH_MS);
    };
    const quiet = live.listen((event) => clusterChanged(event) && changed());
    const back = live.onComeback(changed);
    return () => {
      quiet();
      back();
      clearTimeout(timer);
      this.stopped.abort();
    };
  }

  /** These nodes are in sight, the first ones first. */
  look(nodes: readonly string[]): void {
    this.seen = nodes;
    this.pump();
  }

  refresh(): void {
    for (const name of this.known.keys()) this.stale.add(name);
    this.problem = undefined;
    this.pump();
  }

  private pump(): void {
    const wanted = this.seen.filter((name) => !this.asked.has(name) && (!this.known.has(name) || this.stale.has(name)));
    this.awaited = this.seen.filter((name) => !this.known.has(name)).length;
    if (this.problem) return;
    for (const name of wanted.slice(0, Math.max(0, AT_ONCE - this.asked.size))) void this.ask(name);
  }

  private async ask(name: string): Promise<void> {
    const { signal } = this.stopped;
    this.asked.add(name);
    this.stale.delete(name);
    const { from, to } = this.period();
    const query = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    try {
      this.known.set(name, await call(api.GET('/api/v1/nodes/{name}/bookings', { params: { path: { name }, query }, signal })));
      this.publish();
    } catch (thrown) {
      if (!signal.aborted) this.failed(name, asProblem(thrown));
    } finally {
      this.asked.delete(name);
    }
    if (!signal.aborted) this.pump();
  }

  private failed(name: string, problem: ProblemError): void {
    // A node that has left since the list was read has nothing booked.
    if (problem.status === 404) this.known.set(name, []);
    else this.problem = problem;
  }

  private publish(): void {
    if (this.publishing) return;
    this.publishing = true;
    requestAnimationFrame(() => {
      this.publishing = false;
      this.byNode = new Map(this.known);
    });
  }
}
