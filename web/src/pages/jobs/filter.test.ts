import { describe, expect, it } from 'vitest';
import { fromQuery, toServer, WHICH } from './filter';

describe('the filter of jobs', () => {
  it('is what the address says, and everything where that is nonsense', () => {
    expect(fromQuery(new URLSearchParams('state=running&name=sw&user=ada'))).toEqual({ which: 'running', name: 'sw', user: 'ada', queue: '', project: '' });
    expect(fromQuery(new URLSearchParams('state=%3Cscript%3E')).which).toBe('all');
  });

  it('asks the server for every state, each either active or over', () => {
    const states = (which: (typeof WHICH)[number]) => toServer({ which, name: '', user: '', queue: '', project: '' })['state']?.split(',');
    expect(states('all')).toBeUndefined();
    expect([...(states('running') ?? []), ...(states('promised') ?? []), ...(states('waiting') ?? [])].sort()).toEqual([...(states('active') ?? [])].sort());
    expect(new Set([...(states('active') ?? []), ...(states('over') ?? [])]).size).toBe(11);
    expect(toServer({ which: 'all', name: 'sweep', user: 'ada', queue: 'night', project: 'thesis' })).toEqual({ name: 'sweep', user: 'ada', queue: 'night', project: 'thesis' });
  });
});
