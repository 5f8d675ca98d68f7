import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Toasts } from './toast.svelte';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const undo = { text: 'Undo', run: () => {} };
const texts = (toasts: Toasts) => toasts.all.map(({ text }) => text);

it('news goes by itself, what can be undone stays for 20 seconds, and what failed until it was read', () => {
  const toasts = new Toasts();
  toasts.add({ tone: 'good', text: 'done' });
  toasts.add({ tone: 'good', text: 'moved', action: undo });
  toasts.add({ tone: 'bad', text: 'failed' });
  vi.advanceTimersByTime(6_100);
  expect(texts(toasts)).toEqual(['moved', 'failed']);
  vi.advanceTimersByTime(13_000);
  expect(texts(toasts)).toEqual(['moved', 'failed']);
  vi.advanceTimersByTime(1_000);
  expect(texts(toasts)).toEqual(['failed']);
  vi.advanceTimersByTime(3_600_000);
  expect(texts(toasts)).toEqual(['failed']);
});

it('none goes while somebody is at them, also of those that come meanwhile; then each has what was left', () => {
  const toasts = new Toasts();
  toasts.add({ tone: 'good', text: 'moved', action: undo });
  vi.advanceTimersByTime(15_000);
  toasts.hold();
  toasts.add({ tone: 'good', text: 'later' });
  vi.advanceTimersByTime(600_000);
  expect(texts(toasts)).toEqual(['moved', 'later']);
  toasts.release();
  vi.advanceTimersByTime(4_900);
  expect(texts(toasts)).toEqual(['moved', 'later']);
  vi.advanceTimersByTime(200);
  expect(texts(toasts)).toEqual(['later']);
  vi.advanceTimersByTime(1_000);
  expect(texts(toasts)).toEqual([]);
});
