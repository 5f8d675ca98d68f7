export { all } from './all';
export { api, call, changeHeaders, idempotencyKey } from './client';
export { clusterChanged, live } from './live.svelte';
export { asProblem, ProblemError, problemOf, UNREACHABLE } from './problem';
export { resource, type Resource } from './resource.svelte';
export { session } from './session.svelte';
export type * from './types';
