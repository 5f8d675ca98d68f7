/**
 * The one road to the server: typed by the OpenAPI document, with the session's second secret on
 * every change, and problem details thrown as {@link ProblemError}.
 *
 *     const job = await call(api.GET('/api/v1/jobs/{id}', { params: { path: { id: 7 } } }));
 */
import createClient, { type Middleware } from 'openapi-fetch';
import { asProblem, problemOf } from './problem';
import type { paths } from './schema';

/** The secret that a login gave, sent back with every change. Kept by the session. */
let csrf: string | undefined;
/** Told when the server no longer knows who asks. */
let onSignedOut: () => void = () => {};

export function setCsrf(secret: string | undefined): void {
  csrf = secret;
}

export function whenSignedOut(told: () => void): void {
  onSignedOut = told;
}

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Headers that a request by hand needs, such as an upload with progress. */
export function changeHeaders(): Record<string, string> {
  return csrf === undefined ? {} : { 'x-csrf-token': csrf };
}

const guard: Middleware = {
  onRequest({ request }) {
    if (!READS.has(request.method)) {
      for (const [name, value] of Object.entries(changeHeaders())) request.headers.set(name, value);
    }
    return request;
  },
  onResponse({ response, schemaPath }) {
    if (response.status === 401 && schemaPath !== '/api/v1/sessions') onSignedOut();
  },
};

export const api = createClient<paths>({ credentials: 'same-origin' });
api.use(guard);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer, or the problem thrown. */
export async function call<T>(request: Promise<Answer<T>>): Promise<NonNullable<T>> {
  let answer: Answer<T>;
  try {
    answer = await request;
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'AbortError') throw thrown;
    throw asProblem(thrown);
  }
  if (!answer.response.ok) throw problemOf(answer.response.status, answer.error);
  return answer.data as NonNullable<T>;
}

/** A key that makes repeating a submission harmless: the same work again is the same job. */
export function idempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
