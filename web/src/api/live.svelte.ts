/**
 * What happens on the platform, as it happens. One stream of server-sent events for the whole
 * page: it reconnects by itself after the last event that it has seen, so that none is missed, and
 * says when what is shown may be stale. Pages ask {@link resource} for data and say which events
 * concern it; they never open a stream of their own.
 */
import { SseReader } from './sse';
import type { Event } from './types';

export type LiveState = 'off' | 'connecting' | 'live' | 'stale';

/** The server says that it is alive every 15 s; after this much silence it is not. */
const SILENCE_MS = 40_000;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 15_000;

/** How long to wait before try number `tries` (from 0), spread so that pages do not come back at once. */
export function retryAfterMs(tries: number, spread: number): number {
  const base = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(tries, 10));
  return base * (0.75 + spread * 0.5);
}

type Listener = (event: Event) => void;

class Live {
  /** `stale`: what is shown may be older than the server's. */
  state = $state<LiveState>('off');
  /** When something last came, for whoever shows how old things are. */
  lastHeard = $state(Date.now());

  private listeners = new Set<Listener>();
  private comeback = new Set<() => void>();
  private lastId: string | undefined;
  private stopping: AbortController | undefined;

  start(): void {
    if (this.stopping) return;
    this.stopping = new AbortController();
    void this.run(this.stopping.signal);
  }

  stop(): void {
    this.stopping?.abort();
    this.stopping = undefined;
    this.lastId = undefined;
    this.state = 'off';
  }

  /** Calls for every event until the returned function is called. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls when a connection that was lost is there again. */
  onComeback(again: () => void): () => void {
    this.comeback.add(again);
    return () => this.comeback.delete(again);
  }

  private async run(signal: AbortSignal): Promise<void> {
    let tries = 0;
    while (!signal.aborted) {
      this.state = tries === 0 ? 'connecting' : 'stale';
      const lost = tries > 0;
      try {
        await this.listenOnce(signal, () => {
          tries = 0;
          if (lost) for (const again of this.comeback) again();
        });
        // The server ends a stream after an hour; coming back at once is what it expects.
      } catch {
        // Whatever it was, the state says so and the next try tells more.
      }
      if (signal.aborted) return;
      this.state = 'stale';
      await pause(retryAfterMs(tries, Math.random()), signal);
      tries += 1;
    }
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
      this.state = 'live';
      opened();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parse = new SseReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        this.lastHeard = Date.now();
        for (const message of parse.read(value)) this.tell(message.id, message.data);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private tell(id: string | undefined, data: string): void {
    if (id !== undefined) this.lastId = id;
    let event: Event;
    try {
      event = JSON.parse(data) as Event;
    } catch {
      return;
    }
    for (const listener of this.listeners) listener(event);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export const live = new Live();
