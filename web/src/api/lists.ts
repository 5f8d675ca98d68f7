/** Lists that the page needs whole: all of their pages. */
import { all } from './all';
import { api, call } from './client';

export const allNodes = (signal: AbortSignal) => all((query) => call(api.GET('/api/v1/nodes', { params: { query }, signal })));
export const allPools = (signal: AbortSignal) => all((query) => call(api.GET('/api/v1/pools', { params: { query }, signal })));
export const allDomains = (signal: AbortSignal) => all((query) => call(api.GET('/api/v1/domains', { params: { query }, signal })));
export const allQueues = (signal: AbortSignal) => all((query) => call(api.GET('/api/v1/queues', { params: { query }, signal })));
export const allPolicies = (signal: AbortSignal) => all((query) => call(api.GET('/api/v1/policies', { params: { query }, signal })));
