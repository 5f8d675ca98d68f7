/** What a deed would cost or bring back, asked of the server before anybody is asked to agree. */
import { api, call, idempotencyKey } from '../../api';
import type { NewJob, Quote, Schemas } from '../../api/types';

export type Refund = Schemas['Refund'];

/** What giving a job up would bring back; nothing where that cannot be told. */
export function refundOf(id: number): Promise<Refund | undefined> {
  return call(api.GET('/api/v1/jobs/{id}/refund', { params: { path: { id } } })).catch(() => undefined);
}

/** Refunds together. */
export function together(refunds: readonly Refund[]): { back: number; kept: number; runs: boolean } {
  const sum = (of: 'back' | 'kept') => refunds.reduce((all, refund) => all + Number(refund[of]), 0);
  return { back: sum('back'), kept: sum('kept'), runs: refunds.some((refund) => refund.runs) };
}

/** A job as it would be handed in again, and what it costs now; one for a queue has no price before it runs. */
export async function priced(id: number): Promise<{ job: NewJob; quote: Quote | undefined }> {
  const { job, promise } = await call(api.GET('/api/v1/jobs/{id}/again', { params: { path: { id } } }));
  if (!promise) return { job, quote: undefined };
  const value = job.value ?? undefined;
  const { quote } = await call(api.POST('/api/v1/quotes', { body: { ask: job.ask, ...(value !== undefined && { value }) } }));
  return { job, quote };
}

/** Hands a job in again, for no more than was agreed to; a fresh one leaves its checkpoints behind. */
export function retry(id: number, most: string | undefined, fresh: boolean) {
  const header = { 'idempotency-key': idempotencyKey() };
  const query = { ...(most !== undefined && { most }), ...(fresh && { fresh }) };
  return call(api.POST('/api/v1/jobs/{id}/retry', { params: { path: { id }, header, query } }));
}
