/** Every account, or group, that the reader may see: all pages of the list. */
import { all, api, call } from '../api';
import type { Schemas } from '../api/types';

export type User = Schemas['User'];
export type Group = Schemas['Group'];

export async function allUsers(signal: AbortSignal): Promise<User[]> {
  return all((query) => call(api.GET('/api/v1/users', { params: { query }, signal })));
}

export async function allGroups(signal: AbortSignal): Promise<Group[]> {
  return all((query) => call(api.GET('/api/v1/groups', { params: { query }, signal })));
}
