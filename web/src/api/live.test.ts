import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Live, retryAfterMs, type LiveState } from './live.svelte';

it('a lost connection is tried again soon, then ever more seldom, never later than 20 s', () => {
  const waits = Array.from({ length: 12 }, (_, tries) => retryAfterMs(tries, 0.5));
  expect(waits[0]).toBe(500);
  for (const [index, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual(waits[index - 1] ?? 0);
  expect(retryAfterMs(100, 1)).toBeLessThan(20_000);
});

it('pages that lost their server together do not come back together', () => {
  expect(retryAfterMs(3, 0)).toBeLessThan(retryAfterMs(3, 1));
});

describe('a stream that ends', () => {
  const HOUR_MS = 3_600_000;
  let live: Live;
  /** What ends each stream that was opened. */
  let ends: (() => void)[];
  let away: boolean;
  let asked: (string | null)[];

  beforeEach(() => {
    vi.useFakeTimers();
    [ends, away, asked] = [[], false, []];
    // A window of its own: it shares its stream with no other.
    vi.stubGlobal('navigator', {});
    vi.stubGlobal('fetch', async (_: string, init: { headers: Record<string, string>; signal: AbortSignal }) => {
      asked.push(init.headers['last-event-id'] ?? null);
      if (away) throw new TypeError('no answer');
      const text = new TextEncoder();
      const body = new ReadableStream({
        start(stream) {
          const id = `${asked.length}.0`;
          stream.enqueue(text.encode(`id: ${id}\nevent: running\ndata: {"id":"${id}","event":"running"}\n\n`));
          // The server says that it is alive, as it does every 15 s.
          const beat = setInterval(() => stream.enqueue(text.encode(': alive\n\n')), 15_000);
          const end = (close: () => void) => {
            clearInterval(beat);
            close();
          };
          ends.push(() => end(() => stream.close()));
          init.signal.addEventListener('abort', () => end(() => stream.error(new Error('left'))));
        },
      });
      return new Response(body);
    });
    live = new Live();
  });
  afterEach(() => {
    live.stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  /** Every state that it was in, a tick at a time. */
  async function statesWhile(ms: number, step: number): Promise<Set<LiveState>> {
    const states = new Set<LiveState>();
    for (let passed = 0; passed < ms; passed += step) {
      await vi.advanceTimersByTimeAsync(step);
      states.add(live.state);
    }
    return states;
  }

  it('after an hour is no loss: the next one goes on where it ended, and what was missed is looked at', async () => {
    let back = 0;
    live.onComeback(() => (back += 1));
    live.start();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(live.state).toBe('live');
    ends[0]?.();
    expect(await statesWhile(2000, 10)).toEqual(new Set(['live']));
    expect(asked).toEqual([null, '1.0']);
    expect(back).toBe(1);
  });

  it('and cannot be opened again is one, until it can', async () => {
    let back = 0;
    live.onComeback(() => (back += 1));
    live.start();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    away = true;
    ends[0]?.();
    await vi.advanceTimersByTimeAsync(50);
    expect(live.state).toBe('stale');
    away = false;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(live.state).toBe('live');
    expect(back).toBe(1);
  });

  it('at once, again and again, is not asked for without a pause', async () => {
    live.start();
    const ending = setInterval(() => ends.splice(0).forEach((end) => end()), 1);
    await vi.advanceTimersByTimeAsync(10_000);
    clearInterval(ending);
    expect(live.state).toBe('stale');
    expect(asked.length).toBeLessThan(30);
  });
});
