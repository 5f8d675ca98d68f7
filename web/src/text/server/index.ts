/**
 * What the server says, in the reader's language: its own sentence in English, and in Chinese by
 * the code and parameters that come with it. What no word is known for stays as the server said it.
 */
import type { ProblemError } from '../../api/problem';
import type { Explanation } from '../../api/types';
import { locale } from '../locale.svelte';
import { HAPPENED, REFUSED, STANDS, WHY } from './zh';

/** Something that was refused, in a sentence. */
export function problemText(problem: Pick<ProblemError, 'code' | 'message' | 'parameters'>): string {
  if (locale.language === 'en') return problem.message;
  return REFUSED[problem.code]?.(problem.parameters) ?? problem.message;
}

/** Why a job waits, or when it runs, in a sentence. */
export function whyText(told: Explanation): string {
  if (locale.language === 'en') return told.sentence;
  const why = told.why ? WHY[told.why]?.(told.parameters ?? {}) : undefined;
  if (told.state === 'waiting' && why !== undefined) return STANDS.waits(told.position ?? 0, why);
  if (told.state === 'promised' && told.start) return STANDS.promised(told.start);
  if (told.state === 'running' && told.start) return STANDS.running(told.start);
  return told.sentence;
}

/** What happened, and the particulars apart where only the server has words for them. */
export function eventText(told: { event: string; sentence: string }): { what: string; more: string | undefined } {
  const what = locale.language === 'en' ? undefined : HAPPENED[told.event];
  return what === undefined ? { what: told.sentence, more: undefined } : { what, more: told.sentence };
}
