/**
 * One content on its way to the server, piece by piece, so that a cut loses at most what the
 * server had not yet written: it is asked how much is there, and goes on from that.
 */
import { changeHeaders } from '../api/client';
import { asProblem, problemOf, type ProblemError } from '../api/problem';

/** Bytes of one request: small enough that a pause is felt at once, large enough to be fast. */
export const PIECE_BYTES = 8 << 20;

export interface Piece {
  from: number;
  to: number;
  /** Tells the server which part of the whole this is; absent where the body is all of it. */
  range: string | undefined;
}

/** The next piece of a content of which so much is there; nothing once all of it is. */
export function nextPiece(offset: number, all: number, most = PIECE_BYTES): Piece | undefined {
  if (all === 0) return offset === 0 ? { from: 0, to: 0, range: undefined } : undefined;
  if (offset >= all) return undefined;
  const to = Math.min(all, offset + most);
  return { from: offset, to, range: `bytes ${offset}-${to - 1}/${all}` };
}

/** What another try meets again: a full quota or disk is no fault of the line. */
const STAYS: ReadonlySet<number> = new Set([501, 507]);
/** A request that was cut may still be ending on the server, and then says one of these. */
const ENDING: ReadonlySet<string> = new Set(['broken_off', 'upload_busy', 'wrong_offset']);

/** Whether trying again by itself may help: what was refused for a reason stays refused. */
export function passes({ status, code }: ProblemError): boolean {
  if (STAYS.has(status)) return false;
  return status === 0 || status === 408 || status === 429 || status >= 500 || ENDING.has(code);
}

/** How much of a content the server has of this account's upload. */
export async function sentSoFar(hash: string, signal: AbortSignal): Promise<number> {
  const response = await fetch(`/api/v1/blobs/${hash}`, { method: 'HEAD', signal });
  if (!response.ok) throw problemOf(response.status, undefined);
  const offset = Number(response.headers.get('upload-offset') ?? 0);
  return Number.isSafeInteger(offset) && offset > 0 ? offset : 0;
}

/** Sends what is missing of a content; tells how many of its bytes are there. */
export async function sendContent(hash: string, file: Blob, progress: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  let offset = await sentSoFar(hash, signal);
  // More than there is belongs to no content of this hash: begin anew.
  if (offset > file.size) offset = 0;
  progress(offset);
  if (offset === file.size && offset > 0) {
    // Every byte is there, but the line was cut before the server had verified them.
    return put(`${hash}?offset=${offset}`, new Blob([]), undefined, () => {}, signal);
  }
  for (let piece = nextPiece(offset, file.size); piece; piece = nextPiece(offset, file.size)) {
    const { from, to } = piece;
    await put(hash, file.slice(from, to), piece.range, (bytes) => progress(from + bytes), signal);
    progress(to);
    if (to === file.size) return;
    offset = to;
  }
}

/** `fetch` does not tell how much of a body has been sent; this older road does. */
function put(place: string, body: Blob, range: string | undefined, progress: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open('PUT', `/api/v1/blobs/${place}`);
    const headers = { ...changeHeaders(), 'content-type': 'application/octet-stream', ...(range && { 'content-range': range }) };
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    const stop = () => request.abort();
    signal.addEventListener('abort', stop);
    const settle = (settled: () => void) => {
      signal.removeEventListener('abort', stop);
      settled();
    };
    request.upload.onprogress = (event) => progress(event.loaded);
    request.onload = () => settle(() => (request.status < 300 ? resolve() : reject(problemOf(request.status, parsed(request.responseText)))));
    request.onerror = () => settle(() => reject(asProblem(new TypeError('the connection was cut'))));
    request.onabort = () => settle(() => reject(new DOMException('stopped', 'AbortError')));
    request.send(body);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
