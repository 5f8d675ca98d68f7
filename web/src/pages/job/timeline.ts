/** What happened to a job and what was paid for it, as one line of time. Pure. */
import type { Schemas, TimelineLine } from '../../api/types';
import type { Tone } from '../../ui/Badge.svelte';
import { states } from '../../ui/job-states';

type StatementLine = Schemas['StatementLine'];
export type Step = { event: TimelineLine } | { paid: StatementLine };

/** By the journal's order; what was paid stands after what it was paid for. */
export function merged(events: readonly TimelineLine[], bill: readonly StatementLine[]): Step[] {
  const all = [...events.map((event) => ({ seq: event.seq, step: { event } })), ...bill.map((paid) => ({ seq: paid.seq, step: { paid } }))];
  return all.sort((a, b) => a.seq - b.seq).map(({ step }) => step);
}

const TONES: Record<string, Tone> = { promised: 'promise', running: 'info', broken: 'bad', stopping: 'warn', launched: 'info', queued: 'warn' };

/** How something that happened looks: the end of a job as the state that it left. */
export function toneOf({ event, parameters }: Pick<TimelineLine, 'event' | 'parameters'>): Tone {
  if (event !== 'ended') return TONES[event] ?? 'quiet';
  return new Map(Object.entries(states)).get(String(parameters?.['outcome']))?.tone ?? 'quiet';
}

interface Words {
  worth: (credits: string) => string;
  worthBy: (credits: string, by: string) => string;
  atMost: (credits: string) => string;
  heldQuote: string;
  notBefore: (at: string) => string;
  finishedBy: (at: string) => string;
}

/** The parts of a bid, worth first, then its window; none where nothing was bid. */
export function bidOf({ value, most, hold, ask }: Schemas['NewJob'], t: Words, credits: (amount: string | number) => string, moment: (at: string) => string): string[] {
  const steps = Array.isArray(value) ? (value as { by: string; worth: string }[]) : [];
  const worth = [
    ...(typeof value === 'string' || typeof value === 'number' ? [t.worth(credits(value))] : steps.map((step) => t.worthBy(credits(step.worth), moment(step.by)))),
    ...(most !== undefined && most !== null ? [t.atMost(credits(most))] : []),
    ...(hold !== undefined && hold !== null ? [t.heldQuote] : []),
  ];
  if (worth.length === 0) return [];
  return [...worth, ...(ask.earliest ? [t.notBefore(moment(ask.earliest))] : []), ...(ask.deadline ? [t.finishedBy(moment(ask.deadline))] : [])];
}
