import { describe, expect, it } from 'vitest';
import { states } from '../../ui/job-states';
import { bidOf, merged, toneOf } from './timeline';

const at = '2026-11-20T18:00:00Z';
const event = (seq: number, what: string) => ({ seq, at, event: what, sentence: what });
const paid = (seq: number, reason: string) => ({ seq, at, reason, amount: '1', balance: '0' });

describe('a timeline', () => {
  it('has what was paid after what it was paid for, and the settlement last', () => {
    const steps = merged([event(1, 'promised'), event(4, 'running'), event(9, 'ended')], [paid(1, 'charge'), paid(9, 'refund_unused')]);
    expect(steps.map((step) => ('event' in step ? step.event.event : step.paid.reason))).toEqual(['promised', 'charge', 'running', 'ended', 'refund_unused']);
  });

  it('shows an end as the state that it is', () => {
    const ended = (outcome: string) => toneOf({ event: 'ended', parameters: { outcome } });
    for (const state of ['succeeded', 'failed', 'cancelled', 'released', 'limit_reached', 'broken'] as const) expect(ended(state)).toBe(states[state].tone);
    expect([ended('succeeded'), ended('failed'), ended('unfulfilled'), toneOf({ event: 'ended' })]).toEqual(['good', 'bad', 'quiet', 'quiet']);
  });

  const t = {
    worth: (credits: string) => `worth ${credits}`,
    worthBy: (credits: string, by: string) => `worth ${credits} by ${by}`,
    atMost: (credits: string) => `at most ${credits}`,
    heldQuote: 'held',
    notBefore: (from: string) => `from ${from}`,
    finishedBy: (by: string) => `until ${by}`,
  };
  const bid = (more: object, window: object = {}) => bidOf({ work: {}, ask: { resources: {}, duration_s: 60, ...window }, ...more }, t, String, String);

  it('begins with the bid: its worth and its window', () => {
    expect(bid({ value: '5000' }, { earliest: 'a', deadline: 'b' })).toEqual(['worth 5000', 'from a', 'until b']);
    expect(bid({ value: [{ by: 'x', worth: '3' }, { by: 'y', worth: '2' }], most: '2' })).toEqual(['worth 3 by x', 'worth 2 by y', 'at most 2']);
    expect(bid({ hold: 7 })).toEqual(['held']);
    expect(bid({ queue: 'default' }, { deadline: 'b' })).toEqual([]);
  });
});
