/** How each state of a job looks; its word is in the catalogue `states`. */
import { Ban, CircleCheck, CircleX, CornerDownLeft, Hourglass, LoaderCircle, Play, Ticket, TimerOff, TriangleAlert, Unlink, type IconNode } from 'lucide';
import type { JobState } from '../api/types';
import type { Tone } from './Badge.svelte';

export const states: Record<JobState, { tone: Tone; icon: IconNode }> = {
  waiting: { tone: 'warn', icon: Hourglass },
  promised: { tone: 'promise', icon: Ticket },
  starting: { tone: 'info', icon: LoaderCircle },
  running: { tone: 'info', icon: Play },
  stopping: { tone: 'warn', icon: TriangleAlert },
  succeeded: { tone: 'good', icon: CircleCheck },
  failed: { tone: 'bad', icon: CircleX },
  cancelled: { tone: 'quiet', icon: Ban },
  released: { tone: 'quiet', icon: CornerDownLeft },
  limit_reached: { tone: 'warn', icon: TimerOff },
  broken: { tone: 'bad', icon: Unlink },
};

const OVER: ReadonlySet<JobState> = new Set(['succeeded', 'failed', 'cancelled', 'released', 'limit_reached', 'broken']);

export function isOver(state: JobState): boolean {
  return OVER.has(state);
}
