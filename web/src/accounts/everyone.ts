/** Every account, or group, that the reader may see: all pages of the list. */
import { api, call } from '../api';
import type { Schemas } from '../api/types';

export type User = Schemas['User'];
export type Group = Schemas['Group'];
const PAGE = 1000;

export async function allUsers(signal: AbortSignal): Promise<User[]> {
  return all((query) => call(api.GET('/api/v1/users', { params: { query }, signal })));
}

export async function allGroups(signal: AbortSignal): Promise<Group[]> {
  return all((query) => call(api.GET('/api/v1/groups', { params: { query }, signal })));
}

async function all<T>(ask: (query: { limit: number; cursor?: string }) => Promise<{ items: T[]; next?: string | null }>): Promise<T[]> {
  const found: T[] = [];
  let next: string | undefined;
  do {
    const page = await ask({ limit: PAGE, ...(next !== undefined && { cursor: next }) });
    found.push(...page.items);
    next = page.next ?? undefined;
  } while (next !== undefined);
  return found;
}
