/**
 * What happens on the platform, as it happens. One stream of server-sent events for all windows of
 * a browser, since over plain HTTP a browser opens only six connections: one window holds it and
 * tells the others, and when it closes another takes over. The stream reconnects by itself after
 * the last event that it has seen, so that none is missed, and says when what is shown may be
 * stale. Pages ask {@link resource} for data and say which events concern it; they never open a
 * stream of their own.
 */
import { SseReader } from './sse';
import type { Event } from './types';

export type LiveState = 'off' | 'connecting' | 'live' | 'stale';

/** The server says that it is alive every 15 s; after this much silence it is not. */
const SILENCE_MS = 40_000;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 15_000;

/** A stream that ended after this much was ended by the server, which does so every hour: no loss. */
const LASTED_MS = 5_000;

/** How long to wait before try number `tries` (from 0), spread so that pages do not come back at once. */
export function retryAfterMs(tries: number, spread: number): number {
  const base = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(tries, 10));
  return base * (0.75 + spread * 0.5);
}

/**
 * Whether calendars, prices, machines or queues are no longer as they were, whoever changed them.
 * Of what others do, most readers hear no more than this; it comes every two seconds at most.
 */
export function clusterChanged(event: Event): boolean {
  return event.event === 'cluster_changed';
}

type Listener = (event: Event) => void;

/** What the window that holds the stream tells the others, and what a new one asks. */
type Word = { event: Event; id: string | undefined } | { state: LiveState } | { hello: true } | { back: true };
const SHARED = 'era.live';

export class Live {
  /** `stale`: what is shown may be older than the server's. */
  state = $state<LiveState>('off');
  /** When something last came, for whoever shows how old things are. */
  lastHeard = $state(Date.now());

  private listeners = new Set<Listener>();
  private comeback = new Set<() => void>();
  private lastId: string | undefined;
  private stopping: AbortController | undefined;
  private others: BroadcastChannel | undefined;
  private leads = false;
  private silence: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    if (this.stopping) return;
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    this.state = 'connecting';
    // Locks are for encrypted connections and this very machine; elsewhere each window listens.
    if (!('locks' in navigator)) {
      void this.run(signal);
      return;
    }
    this.others = new BroadcastChannel(SHARED);
    this.others.onmessage = (message: MessageEvent<Word>) => this.heard(message.data);
    this.others.postMessage({ hello: true } satisfies Word);
    navigator.locks
      .request(SHARED, { signal }, () => {
        this.leads = true;
        return this.run(signal);
      })
      // Told to stop while it waited for its turn.
      .catch(() => undefined);
  }

  stop(): void {
    this.stopping?.abort();
    this.stopping = undefined;
    this.others?.close();
    this.others = undefined;
    this.leads = false;
    clearTimeout(this.silence);
    this.lastId = undefined;
    this.state = 'off';
  }

  /** Calls for every event until the returned function is called. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls when a connection that ended is there again: what is not in the journal may have been missed. */
  onComeback(again: () => void): () => void {
    this.comeback.add(again);
    return () => this.comeback.delete(again);
  }

  /** A word of another window. */
  private heard(word: Word): void {
    if ('hello' in word) {
      if (this.leads) this.others?.postMessage({ state: this.state } satisfies Word);
      return;
    }
    if (this.leads) return;
    this.lastHeard = Date.now();
    clearTimeout(this.silence);
    this.silence = setTimeout(() => !this.leads && this.become('stale'), SILENCE_MS);
    if ('state' in word) this.become(word.state);
    else if ('back' in word) this.isBack();
    else this.tell(word.id, word.event);
  }

  private become(state: LiveState): void {
    const back = this.state === 'stale' && state === 'live';
    this.state = state;
    if (this.leads) this.others?.postMessage({ state } satisfies Word);
    if (back) this.isBack();
  }

  private isBack(): void {
    for (const again of this.comeback) again();
  }

  private async run(signal: AbortSignal): Promise<void> {
    clearTimeout(this.silence);
    let tries = 0;
    let ended = false;
    while (!signal.aborted) {
      const began = Date.now();
      const again = ended;
      ended = false;
      try {
        await this.listenOnce(signal, () => {
          tries = 0;
          if (again) this.wentOn();
        });
        // The server ends a stream after an hour; coming back at once is what it expects, and only
        // where that fails is anything lost.
        ended = Date.now() - began >= LASTED_MS;
      } catch {
        // Whatever it was, the state says so and the next try tells more.
      }
      if (signal.aborted) return;
      if (ended) continue;
      this.become('stale');
      await pause(retryAfterMs(tries, Math.random()), signal);
      tries += 1;
    }
  }

  /** The next stream follows the one that ended: looked at again is what may have changed between. */
  private wentOn(): void {
    if (this.leads) this.others?.postMessage({ back: true } satisfies Word);
    this.isBack();
  }

  private async listenOnce(signal: AbortSignal, opened: () => void): Promise<void> {
    const silence = new AbortController();
    const either = AbortSignal.any([signal, silence.signal]);
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' };
      if (this.lastId !== undefined) headers['last-event-id'] = this.lastId;
      const response = await fetch('/api/v1/events/stream', { headers, signal: either, cache: 'no-store' });
      if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
      this.become('live');
      opened();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parse = new SseReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        this.lastHeard = Date.now();
        // The server's heartbeat is passed on too: silence means trouble to every window.
        this.others?.postMessage({ state: 'live' } satisfies Word);
        for (const message of parse.read(value)) this.took(message.id, message.data);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private took(id: string | undefined, data: string): void {
    let event: Event;
    try {
      event = JSON.parse(data) as Event;
    } catch {
      return;
    }
    this.others?.postMessage({ event, id } satisfies Word);
    this.tell(id, event);
  }

  private tell(id: string | undefined, event: Event): void {
    if (id !== undefined) this.lastId = id;
    for (const listener of this.listeners) listener(event);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal.addEventListener('abort', over);
  });
}

export const live = new Live();
