/**
 * What the server says, by its codes, where its own English sentence would not do: times belong in
 * the reader's zone. What has no word here stays as the server said it.
 */
import { momentToSecond, number } from '../format';
import { at, lasting, money, n, ofGroup, slot, slots, span, spending, type Parameters, type Sayings, type Slot } from './values';

const on = ({ nodes, more }: Slot) => (nodes.length === 0 ? '' : ` on ${nodes.join(', ')}${more > 0 ? ` and ${number(more)} more` : ''}`);
const place = (given: Slot) => `${lasting(given)}${on(given)}`;

/** How a job stands. */
export const STANDS = {
  waits: (position: number, why: string) => (position > 0 ? `It waits at position ${number(position)} of its queue: ${why}.` : `Not in its queue yet: ${why}.`),
  promised: (start: string) => `It has a promise: it starts ${momentToSecond(start)}.`,
  running: (since: string) => `It has been running since ${momentToSecond(since)}.`,
};

/** Why a job does not start now. */
export const WHY: Sayings = {
  after: ({ job, when }) => (when === 'any' ? `it waits for job ${job} to end` : `it waits for job ${job} to succeed`),
  not_before: ({ until }) => `it must not start before ${at(until)}`,
  // The same sentence as where it is refused, within another one.
  quota: ({ refusal }) => {
    const { code, ...given } = (refusal ?? {}) as Parameters;
    const said = REFUSED[String(code)]?.(given);
    return said && `${said.charAt(0).toLowerCase()}${said.slice(1).replace(/\.$/, '')}`;
  },
};

/** What quotas are counted in: one of it, several, and how many of the server's units make one. */
const UNIT: Readonly<Record<string, readonly [string, string, number]>> = {
  cores: ['core', 'cores', 1],
  'milli-cores': ['core', 'cores', 1000],
  'GiB of memory': ['GiB of memory', 'GiB of memory', 1],
  'MiB of memory': ['GiB of memory', 'GiB of memory', 1024],
  gpus: ['GPU', 'GPUs', 1],
  'milli-gpus': ['GPU', 'GPUs', 1000],
  'core hours': ['core-hour', 'core-hours', 1],
  'milli-core hours': ['core-hour', 'core-hours', 1000],
  'GiB hours of memory': ['GiB-hour', 'GiB-hours', 1],
  'MiB hours of memory': ['GiB-hour', 'GiB-hours', 1024],
  'gpu hours': ['GPU-hour', 'GPU-hours', 1],
  'milli-gpu hours': ['GPU-hour', 'GPU-hours', 1000],
};
const counted = (what: unknown, given: unknown) => {
  const [one, several, size] = UNIT[String(what)] ?? ['', String(what), 1];
  const amount = Number(given) / size;
  return `${number(amount, 3)} ${amount === 1 ? one : several}`;
};
const who = (scope: unknown) => (ofGroup(scope) ? 'The group' : 'The account');

export const REFUSED: Sayings = {
  quota_concurrent: ({ scope, what, limit, held, asked }) => `${who(scope)} may hold ${counted(what, limit)} at once: ${counted(what, held)} in use, and this asks for ${counted(what, asked)}. Ask for less, or for another time.`,
  quota_period: ({ scope, what, limit, used, asked }) => {
    const budget = spending(what, limit, used, asked);
    return budget
      ? `${ofGroup(scope) ? 'The group’s' : 'The account’s'} budget is ${budget.limit} credits a period: ${budget.used} are spent, and this may cost ${budget.asked}. Ask for less, or for a larger budget.`
      : `${who(scope)} may use ${counted(what, limit)} in a period: ${counted(what, used)} used, and this asks for ${counted(what, asked)}. Ask for less, or for more quota.`;
  },
  part_failed: () => 'This part of the page could not be loaded: reload the page.',
  unreachable: () => 'The server does not answer: check the connection, then try again.',
  bad_duration: ({ given, most }) => `A duration of ${span(given)} is out of range: give more than zero and at most ${span(most)}.`,
  bad_window: () => 'The window is empty or out of range: give a deadline after the start.',
  window_past: ({ deadline }) => `The deadline ${at(deadline)} has passed: give a later one.`,
  beyond_horizon: ({ earliest, limit }) => `The earliest start ${at(earliest)} is too far away: bids reach until ${at(limit)}.`,
  window_too_short: ({ window, duration }) => `What is left of the window (${span(window)}) is shorter than the duration (${span(duration)}): give a later deadline or a shorter duration.`,
};

const WHY_STOPPED: Readonly<Record<string, (code: unknown) => string>> = {
  cancelled: () => 'it was cancelled',
  released: () => 'the rest of its time is given back',
  limit: () => 'its time is over',
  preempted: () => 'it gives way, and waits again',
  lost: () => 'hardware under it was lost',
  drained: () => 'its node is drained; it goes on elsewhere',
  failed: (code) => `one of its tasks exited with code ${code}`,
};

/** How a job ended. */
export const ENDED: Sayings = {
  succeeded: () => 'Succeeded: every task exited with code 0.',
  failed: ({ code }) => `Failed: a task exited with code ${code}.`,
  out_of_memory: () => 'Failed: it used more memory than it had asked for. Ask for more.',
  out_of_disk: () => 'Failed: it filled more disk than it may. Write less, or have the limit raised.',
  cancelled: () => 'Cancelled.',
  unfulfilled: ({ job }) => `Given up: job ${job} had to succeed first, and did not.`,
  released: () => 'Over: what was left of its time was given back.',
  limit_reached: () => 'Over: its time was up.',
  broken: () => 'The promise could not be kept, since its hardware was gone and no room was left in its window. It is refunded.',
};

/** What happened to a job, by the kind of its event. */
export const HAPPENED: Sayings = {
  bid_declined: ({ price }) => (price === undefined ? 'Bid declined: there is no room' : `Bid declined: ${money(price)} credits would have won`),
  promised: ({ price, slots: all }) => `Promised for ${money(price)} credits: ${slots(all).map(place).join('; then ')}`,
  queued: ({ queue, count }) => (Number(count) > 1 ? `${n(count)} jobs wait in queue ${queue}` : `Waits in queue ${queue}`),
  ready: () => 'What it waited for is over',
  held: ({ price, expires }) => `Quote of ${money(price)} credits held until ${at(expires)}`,
  hold_ended: () => 'The hold is over',
  moved: ({ rank, from, to }) => `Replica ${rank} moved from ${from} to ${to}; its start is as it was`,
  launched: ({ attempt, slot: given }) => {
    const where = slot(given);
    return where && `Sent out${on(where)}${Number(attempt) > 1 ? ` (attempt ${n(attempt)})` : ''}, until ${at(where.to)} at most`;
  },
  running: ({ attempt }) => (Number(attempt) > 1 ? `Runs again (attempt ${n(attempt)})` : 'Runs'),
  stopping: ({ why, code, until }) => {
    const said = WHY_STOPPED[String(why)]?.(code);
    return said && `Told to stop by ${at(until)}: ${said}`;
  },
  task_ended: ({ rank, code }) => (code === undefined ? `Replica ${rank} was lost` : `Replica ${rank} exited with code ${code}`),
  part_done: ({ part }) => `Part ${n(Number(part) + 1)} is over`,
  requeued: () => 'Waits again, with its age and its checkpoint',
  replanned: ({ slot: given }) => {
    const where = slot(given);
    return where && `Planned anew because its hardware is gone: ${place(where)}`;
  },
  broken: () => 'The promise cannot be kept and is refunded: its hardware is gone and no room is left in its window',
  extended: ({ to, price }) => `Extended until ${at(to)} for ${money(price)} credits`,
  resized: ({ replicas }) => `Has ${n(replicas)} ${Number(replicas) === 1 ? 'replica' : 'replicas'} now`,
  ended: (given) => ENDED[String(given['outcome'])]?.(given),
  edited: () => 'Changed by its owner',
  checkpointed: ({ done_ms }) => `Saved its work: ${span(done_ms)} need not be run again`,
  idle_reported: ({ released }) => (released === true ? 'Its GPUs are idle and are given back, as its owner allowed' : 'Its GPUs are idle'),
};

/** What is wrong with a formula: the server says it well. */
export const FAULT: Sayings = {};
