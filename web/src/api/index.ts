export { all } from './all';
export { api, call, changeHeaders, idempotencyKey } from './client';
export { allDomains, allNodes, allPolicies, allPools, allQueues } from './lists';
export { clusterChanged, live } from './live.svelte';
export { arrival, Part, PART_FAILED } from './part.svelte';
export { asProblem, ProblemError, problemOf, UNREACHABLE } from './problem';
export { resource, type Resource } from './resource.svelte';
export { session } from './session.svelte';
export type * from './types';
