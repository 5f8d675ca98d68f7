/**
 * What the server says, in the reader's language and time zone: by the code and parameters that
 * come with its sentence. What no word is known for stays as the server said it.
 */
import type { ProblemError } from '../../api/problem';
import type { Explanation, Job, Schemas, TimelineLine } from '../../api/types';
import { locale } from '../locale.svelte';
import * as en from './en';
import type { Parameters } from './values';
import * as zh from './zh';

const said = () => (locale.language === 'zh' ? zh : en);

/** Something that was refused, in a sentence. */
export function problemText(problem: Pick<ProblemError, 'code' | 'message' | 'parameters' | 'field'>): string {
  return said().REFUSED[problem.code]?.({ field: problem.field, ...problem.parameters }) ?? problem.message;
}

/** Why a job waits, or when it runs, in a sentence. */
export function whyText(told: Explanation): string {
  const { STANDS, WHY } = said();
  const why = told.why ? WHY[told.why]?.(told.parameters ?? {}) : undefined;
  if (told.state === 'waiting' && why !== undefined) return STANDS.waits(told.position ?? 0, why);
  if (told.state === 'promised' && told.start) return STANDS.promised(told.start);
  if (told.state === 'running' && told.start) return STANDS.running(told.start);
  return told.sentence;
}

/** What happened, in a sentence. */
export function eventText(told: Pick<TimelineLine, 'event' | 'sentence' | 'parameters'>): string {
  return said().HAPPENED[told.event]?.((told.parameters ?? {}) as Parameters) ?? told.sentence;
}

/** How a job ended, in a sentence; what its engine said stays in the engine's words. */
export function endText(job: Pick<Job, 'outcome' | 'reason'>): string {
  const outcome = job.outcome;
  return (outcome && said().ENDED[outcome.code]?.((outcome.parameters ?? {}) as Parameters)) ?? job.reason ?? '';
}

/** What is wrong with a rule, in a sentence. */
export function faultText(checked: Pick<Schemas['RuleChecked'], 'code' | 'parameters' | 'problem'>): string | undefined {
  return (checked.code && said().FAULT[checked.code]?.((checked.parameters ?? {}) as Parameters)) || (checked.problem ?? undefined);
}
