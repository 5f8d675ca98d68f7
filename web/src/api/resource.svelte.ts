/**
 * Data of the server that a component shows: loaded when the component appears, loaded again when
 * what it depends on changes or an event concerns it, and let go with the component.
 *
 *     const jobs = resource((signal) => call(api.GET('/api/v1/jobs', { signal })), {
 *       on: (event) => event.job !== undefined,
 *     });
 *     {#if jobs.data}…{:else if jobs.error}<ErrorNote problem={jobs.error} />{/if}
 *
 * Runes that `load` reads before its first `await` are what it depends on.
 */
import { untrack } from 'svelte';
import { live } from './live.svelte';
import { asProblem, type ProblemError } from './problem';
import type { Event } from './types';

/** Events come in bursts: no two reloads within this, where nothing else is said. */
const BURST_MS = 400;

export interface Options {
  /** Which events make it load again. */
  on?: (event: Event) => boolean;
  /** Also every so often, while the page is seen. */
  everyMs?: number;
  /** No two reloads by events within this: more for what is dear to load. */
  burstMs?: number;
}

export interface Resource<T> {
  readonly data: T | undefined;
  readonly error: ProblemError | undefined;
  readonly loading: boolean;
  /** Load again now. */
  refresh(): void;
  /** Show this at once, until the server says more. */
  set(data: T): void;
}

export function resource<T>(load: (signal: AbortSignal) => Promise<T>, options: Options = {}): Resource<T> {
  let data = $state.raw<T | undefined>(undefined);
  let error = $state.raw<ProblemError | undefined>(undefined);
  let loading = $state(true);
  let round = $state(0);
  let current: AbortController | undefined;

  async function run(started: Promise<T>, controller: AbortController): Promise<void> {
    try {
      const loaded = await started;
      if (controller.signal.aborted) return;
      data = loaded;
      error = undefined;
    } catch (thrown) {
      if (controller.signal.aborted) return;
      error = asProblem(thrown);
    }
    loading = false;
  }

  $effect(() => {
    void round;
    const controller = new AbortController();
    untrack(() => current?.abort());
    current = controller;
    // Called here and not later, so that what it reads is what it depends on.
    const started = load(controller.signal);
    untrack(() => {
      loading = true;
      void run(started, controller);
    });
    return () => controller.abort();
  });

  const refresh = () => {
    round += 1;
  };

  $effect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    let unseen = false;
    const soon = () => {
      // Nobody looks: it is loaded when somebody does.
      if (document.visibilityState === 'hidden') unseen = true;
      if (unseen || timer !== undefined) return;
      const wait = Math.max(60, last + (options.burstMs ?? BURST_MS) - Date.now());
      timer = setTimeout(() => {
        timer = undefined;
        last = Date.now();
        refresh();
      }, wait);
    };
    const { on, everyMs } = options;
    const quiet = on ? live.listen((event) => on(event) && soon()) : () => {};
    const back = live.onComeback(soon);
    const beat = everyMs ? setInterval(soon, everyMs) : undefined;
    const seen = () => {
      if (!unseen || document.visibilityState === 'hidden') return;
      unseen = false;
      soon();
    };
    document.addEventListener('visibilitychange', seen);
    return () => {
      quiet();
      back();
      clearTimeout(timer);
      clearInterval(beat);
      document.removeEventListener('visibilitychange', seen);
    };
  });

  return {
    get data() {
      return data;
    },
    get error() {
      return error;
    },
    get loading() {
      return loading;
    },
    refresh,
    set(next: T) {
      data = next;
    },
  };
}
