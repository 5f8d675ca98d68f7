import { describe, expect, it } from 'vitest';
import { match } from './paths';

describe('a path', () => {
  it('gives its names', () => {
    expect(match('/jobs/:id', '/jobs/7')).toEqual({ id: '7' });
    expect(match('/data/:owner/:name', '/data/ada/a%2Fb%20c')).toEqual({ owner: 'ada', name: 'a/b c' });
  });

  it('with or without a slash at its end is the same', () => {
    expect(match('/jobs', '/jobs/')).toEqual({});
    expect(match('/', '/')).toEqual({});
  });

  it('that fits nothing gives nothing, also when it is damaged', () => {
    expect(match('/jobs/:id', '/jobs')).toBeUndefined();
    expect(match('/jobs/:id', '/jobs/7/8')).toBeUndefined();
    expect(match('/jobs/:id', '/jobs/%E0%A4%A')).toBeUndefined();
  });
});
