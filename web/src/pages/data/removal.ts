/** Takes files out of a set so that it can be undone: what they were is known before they go. */
import { api, call } from '../../api';
import type { FileEntry } from './sets';

/** Most entries of one request. */
const AT_ONCE = 2000;

/** Every file that these paths mean; one that ends with a slash means all below it. */
export async function filesUnder(owner: string, name: string, paths: readonly string[]): Promise<FileEntry[]> {
  const found: FileEntry[] = [];
  for (const wanted of paths) {
    let cursor: string | undefined;
    do {
      const query = { prefix: wanted, limit: wanted.endsWith('/') ? 1000 : 1, ...(cursor !== undefined && { cursor }) };
      const page = await call(api.GET('/api/v1/data/{owner}/{name}/files', { params: { path: { owner, name }, query } }));
      if (wanted.endsWith('/')) found.push(...page.items);
      // `a` is before `ab` in the order of paths, so the first is the one.
      else found.push(...page.items.filter((file) => file.path === wanted));
      cursor = wanted.endsWith('/') ? (page.next ?? undefined) : undefined;
    } while (cursor !== undefined);
  }
  return found;
}

export async function removeFiles(owner: string, name: string, remove: readonly string[]): Promise<void> {
  for (let at = 0; at < remove.length; at += AT_ONCE) {
    const body = { remove: remove.slice(at, at + AT_ONCE) };
    await call(api.PATCH('/api/v1/data/{owner}/{name}/files', { params: { path: { owner, name } }, body }));
  }
}

/** Names them in the set again: their contents are still there. */
export async function restoreFiles(owner: string, name: string, files: readonly FileEntry[]): Promise<void> {
  for (let at = 0; at < files.length; at += AT_ONCE) {
    const body = { put: files.slice(at, at + AT_ONCE) };
    await call(api.PATCH('/api/v1/data/{owner}/{name}/files', { params: { path: { owner, name } }, body }));
  }
}
