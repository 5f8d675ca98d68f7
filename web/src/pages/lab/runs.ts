/** Runs of the laboratory: names of the wire, and what was asked in the reader's words. */
import { Ban, CircleCheck, CircleX, Hourglass, LoaderCircle, type IconNode } from 'lucide';
import type { Schemas } from '../../api/types';
import { number, percent } from '../../text';
import type en from '../../text/en/lab';
import type { Translation } from '../../text/words';
import type { Tone } from '../../ui';

export type LabRun = Schemas['LabRun'];
export type LabAsk = Schemas['LabAsk'];

export const looks: Record<LabRun['state'], { tone: Tone; icon: IconNode }> = {
  waiting: { tone: 'warn', icon: Hourglass },
  running: { tone: 'info', icon: LoaderCircle },
  done: { tone: 'good', icon: CircleCheck },
  failed: { tone: 'bad', icon: CircleX },
  cancelled: { tone: 'quiet', icon: Ban },
};

export function isOver(run: LabRun): boolean {
  return run.state !== 'waiting' && run.state !== 'running';
}

/** What was asked, in one line. */
export function asked(ask: LabAsk, t: Translation<typeof en>): string {
  switch (ask.kind) {
    case 'simulate':
      return `${ask.policies.join(', ')}: ${t.workload(number(ask.jobs), number(ask.gpus), percent(ask.load), String(ask.seed))}`;
    case 'replay':
      return t.under([ask.policy, ask.mechanism].filter(Boolean).join(' + '));
    case 'tune':
      return t.towards(ask.objective, number(ask.budget));
  }
}
