/**
 * A folder of code on its way to the server: only contents that it lacks are sent, then a tree that
 * names them. The tree's hash is what a job calls its code.
 */
import { api, call, changeHeaders } from '../api/client';
import { problemOf } from '../api/problem';
import type { Found } from './folder';
import { hashOf } from './hash';

export interface Progress {
  step: 'hash' | 'send';
  done: number;
  all: number;
}

/** Most hashes in one question. */
const ASKED_MAX = 1000;

export async function sendCode(found: readonly Found[], progress: (at: Progress) => void, signal: AbortSignal): Promise<string> {
  const all = found.reduce((sum, { file }) => sum + file.size, 0);
  let done = 0;
  const entries = [];
  const contents = new Map<string, File>();
  for (const { path, file } of found) {
    const hash = await hashOf(file, undefined, signal);
    done += file.size;
    progress({ step: 'hash', done, all });
    entries.push({ path, bytes: file.size, hash });
    contents.set(hash, file);
  }
  const missing = await lacking([...contents.keys()], signal);
  const toSend = missing.reduce((sum, hash) => sum + (contents.get(hash)?.size ?? 0), 0);
  let sent = 0;
  for (const hash of missing) {
    const file = contents.get(hash);
    if (file) await put(hash, file, signal);
    sent += file?.size ?? 0;
    progress({ step: 'send', done: sent, all: toSend });
  }
  // In order of bytes, as the server keeps them.
  entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  return (await call(api.POST('/api/v1/trees', { body: { files: entries }, signal }))).hash;
}

async function lacking(hashes: string[], signal: AbortSignal): Promise<string[]> {
  const missing: string[] = [];
  for (let at = 0; at < hashes.length; at += ASKED_MAX) {
    const body = { hashes: hashes.slice(at, at + ASKED_MAX) };
    missing.push(...(await call(api.POST('/api/v1/blobs/missing', { body, signal }))).hashes);
  }
  return missing;
}

async function put(hash: string, file: Blob, signal: AbortSignal): Promise<void> {
  const headers = { ...changeHeaders(), 'content-type': 'application/octet-stream' };
  const response = await fetch(`/api/v1/blobs/${hash}`, { method: 'PUT', body: file, headers, signal });
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => undefined));
}
