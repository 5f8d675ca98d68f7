import { describe, expect, it } from 'vitest';
import type { JobState, JobSummary } from '../../api/types';
import { fits, fromQuery, toServer, WHICH } from './filter';

const job = (state: JobState, more: Partial<JobSummary> = {}) => ({ id: 1, state, name: 'sweep-3', user: 'ada', queue: null, ...more }) as JobSummary;

describe('the filter of jobs', () => {
  it('is what the address says, and everything where that is nonsense', () => {
    expect(fromQuery(new URLSearchParams('state=running&name=sw&user=ada'))).toEqual({ which: 'running', name: 'sw', user: 'ada', queue: '', project: '' });
    expect(fromQuery(new URLSearchParams('state=%3Cscript%3E')).which).toBe('all');
  });

  it('keeps after a change exactly what the server would list', () => {
    for (const which of WHICH) {
      const filter = { which, name: '', user: '', queue: '', project: '' };
      const asked = toServer(filter)['state']?.split(',');
      for (const state of ['waiting', 'promised', 'starting', 'running', 'stopping', 'succeeded', 'failed', 'cancelled', 'released', 'limit_reached', 'broken'] as const) {
        expect(fits(job(state), filter), `${which} ${state}`).toBe(asked === undefined || asked.includes(state));
      }
    }
    expect(fits(job('running'), { which: 'all', name: 'sweep', user: 'ada', queue: '', project: '' })).toBe(true);
    expect(fits(job('running'), { which: 'all', name: 'x', user: '', queue: '', project: '' })).toBe(false);
    expect(fits(job('running', { project: 'thesis' }), { which: 'all', name: '', user: '', queue: '', project: 'thesis' })).toBe(true);
    expect(fits(job('running'), { which: 'all', name: '', user: '', queue: '', project: 'thesis' })).toBe(false);
    expect(fits(job('waiting', { queue: 'night' }), { which: 'all', name: '', user: '', queue: 'day', project: '' })).toBe(false);
  });
});
