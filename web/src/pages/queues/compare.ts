/** Two rules side by side, and a queue before and after: pure. */
import { tokens } from './formula';

export interface Piece {
  kind: 'same' | 'gone' | 'new';
  text: string;
}

const NONE: ReadonlySet<string> = new Set();
/** Beyond this many words a comparison word by word is neither quick nor readable. */
const WORDS_MAX = 600;

/** What went and what came, word by word, keeping as much as can be kept (longest common subsequence). */
export function compared(before: string, after: string): Piece[] {
  const [old, fresh] = [tokens(before, NONE).map(({ text }) => text), tokens(after, NONE).map(({ text }) => text)];
  if (old.length > WORDS_MAX || fresh.length > WORDS_MAX) return [{ kind: 'gone', text: before }, { kind: 'new', text: after }];
  const kept = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      kept[i]![j] = old[i] === fresh[j] ? kept[i + 1]![j + 1]! + 1 : Math.max(kept[i + 1]![j]!, kept[i]![j + 1]!);
    }
  }
  const pieces: Piece[] = [];
  const add = (kind: Piece['kind'], text: string) => {
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      add('same', old[i]!);
      i += 1;
      j += 1;
    } else if (j >= fresh.length || (i < old.length && kept[i + 1]![j]! >= kept[i]![j + 1]!)) {
      add('gone', old[i]!);
      i += 1;
    } else {
      add('new', fresh[j]!);
      j += 1;
    }
  }
  return pieces;
}

export interface Placed {
  job: number;
  /** Its place then, from 1. */
  place: number;
  /** How many places it gains; negative where it loses; nothing where it was beyond what was shown. */
  gains: number | undefined;
}

/** A queue as it would stand, each job with what it gains or loses. */
export function reordered(now: readonly number[], then: readonly number[]): Placed[] {
  const before = new Map(now.map((job, index) => [job, index]));
  return then.map((job, index) => {
    const was = before.get(job);
    return { job, place: index + 1, gains: was === undefined ? undefined : was - index };
  });
}

export interface RuleText {
  order: string;
  formula?: string | null | undefined;
  limits?: number[] | undefined;
}

/** A rule on one line, to be compared. */
export function written(rule: RuleText): string {
  if (rule.order === 'priority') return `priority: ${rule.formula ?? ''}`;
  return rule.order === 'las' ? `las: ${(rule.limits ?? []).join(' ')}` : rule.order;
}
