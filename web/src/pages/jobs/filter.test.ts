import { describe, expect, it } from 'vitest';
import { ENDS, fromQuery, toServer, WHICH } from './filter';

describe('the filter of jobs', () => {
  it('is what the address says, and everything where it says nothing', () => {
    expect(fromQuery(new URLSearchParams('state=running&name=sw&user=ada'))).toEqual({ which: 'running', name: 'sw', user: 'ada', queue: '', project: '' });
    expect(fromQuery(new URLSearchParams()).which).toBe('all');
    expect(fromQuery(new URLSearchParams('state=')).which).toBe('all');
  });

  it('asks the server for whatever the address says: it knows all states, and says which there are not', () => {
    const asked = (query: string) => toServer(fromQuery(new URLSearchParams(query)))['state'];
    expect(WHICH.map((which) => asked(`state=${which}`))).toEqual([undefined, 'active', 'starting,running,stopping', 'promised', 'waiting', 'over']);
    expect(ENDS.map((which) => asked(`state=${which}`))).toEqual(['succeeded', 'failed', 'cancelled', 'released', 'limit_reached', 'broken']);
    expect(['stopping', 'failed,broken', 'bogus'].map((state) => asked(`state=${state}`))).toEqual(['stopping', 'failed,broken', 'bogus']);
    expect(toServer({ which: 'all', name: 'sweep', user: 'ada', queue: 'night', project: 'thesis' })).toEqual({ name: 'sweep', user: 'ada', queue: 'night', project: 'thesis' });
  });
});
