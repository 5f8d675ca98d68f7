/**
 * What the server refused, and what never reached it, as one kind of error. The sentence is the
 * server's own; programs act on `code`, and so do the words of other languages.
 */
import type { CounterOffers, Schemas } from './types';

export type Problem = Schemas['Problem'];

/** No server answered: no network, nobody listens, or a proxy that reaches nobody. */
export const UNREACHABLE = 'unreachable';

export class ProblemError extends Error {
  readonly code: string;
  readonly status: number;
  readonly field: string | undefined;
  /** What its sentence says besides the code. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly requestId: string | undefined;
  readonly counterOffers: CounterOffers | undefined;
  readonly retryAfterS: number | undefined;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = 'ProblemError';
    this.code = problem.code;
    this.status = problem.status;
    this.field = problem.field ?? undefined;
    this.parameters = (problem.parameters as Record<string, unknown> | undefined) ?? {};
    this.requestId = problem.request_id ?? undefined;
    this.counterOffers = problem.counter_offers ?? undefined;
    this.retryAfterS = problem.retry_after_s ?? undefined;
  }
}

/** A problem whatever was thrown. */
export function asProblem(thrown: unknown): ProblemError {
  if (thrown instanceof ProblemError) return thrown;
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  // `fetch` throws nothing but TypeErrors when no answer came.
  const code = thrown instanceof TypeError ? UNREACHABLE : 'unexpected';
  return new ProblemError({ type: `urn:era:${code}`, title: code, status: 0, detail, code });
}

/** A problem out of the body of a refusal, whatever a proxy on the way made of it. */
export function problemOf(status: number, body: unknown): ProblemError {
  if (typeof body === 'object' && body !== null && 'code' in body && 'detail' in body) {
    return new ProblemError(body as Problem);
  }
  // A proxy's own words: none of the servers behind it answers.
  if (status >= 502 && status <= 504) {
    return new ProblemError({ type: `urn:era:${UNREACHABLE}`, title: UNREACHABLE, status, detail: `HTTP ${status}`, code: UNREACHABLE });
  }
  const detail = typeof body === 'string' && body.trim() !== '' ? body.slice(0, 400) : `HTTP ${status}`;
  return new ProblemError({ type: 'urn:era:refused', title: 'refused', status, detail, code: 'refused' });
}
