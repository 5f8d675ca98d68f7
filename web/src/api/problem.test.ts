import { expect, it } from 'vitest';
import { asProblem, problemOf, UNREACHABLE } from './problem';

it('a refusal keeps its sentence, its code and its counter-offers', () => {
  const offers = { value: '12.50' };
  const problem = problemOf(409, { type: 'urn:era:declined', title: 'declined', status: 409, detail: 'too dear', code: 'declined', counter_offers: offers, field: 'value' });
  expect(problem).toMatchObject({ message: 'too dear', code: 'declined', status: 409, field: 'value', counterOffers: offers });
});

it('what a proxy answers instead is told as far as it goes', () => {
  expect(problemOf(418, '<html>a teapot</html>').message).toContain('a teapot');
  expect(problemOf(418, undefined).message).toBe('HTTP 418');
  for (const body of ['<html>bad gateway</html>', undefined]) expect(problemOf(502, body)).toMatchObject({ code: UNREACHABLE, status: 502 });
  expect(problemOf(503, { type: 'urn:era:busy', title: 'busy', status: 503, detail: 'later', code: 'busy' }).code).toBe('busy');
});

it('no answer at all is one kind of problem', () => {
  expect(asProblem(new TypeError('Failed to fetch')).code).toBe(UNREACHABLE);
  expect(asProblem('odd').code).toBe('unexpected');
});
