import { expect, it } from 'vitest';
import { healthOf, samples } from './measures';

const TEXT = `# TYPE era_http_requests_total counter
era_http_requests_total{method="GET",route="/readyz",status="200"} 8
era_http_requests_total{method="GET",route="/api/v1/jobs",status="503"} 2

era_journal_seq 15
era_feed_behind 3
era_jobs{state="running"} 4
era_jobs{state="ended"} 2
era_jobs{state="stopping"} 0
era_jobs{state="waiting"} 1
era_queue_waiting{queue="a \\"b\\""} 7
era_http_request_seconds_bucket{method="GET",route="/readyz",le="+Inf"} 8
era_http_request_seconds_sum{method="GET",route="/readyz"} 0.8
era_http_request_seconds_count{method="GET",route="/readyz"} 8
era_http_request_seconds_sum{method="GET",route="/api/v1/jobs"} 1.2
era_http_request_seconds_count{method="GET",route="/api/v1/jobs"} 2
nonsense
era_odd NaN
`;

it('reads samples with their labels, and nothing else', () => {
  const all = samples(TEXT);
  expect(all[0]).toEqual({ name: 'era_http_requests_total', labels: { method: 'GET', route: '/readyz', status: '200' }, value: 8 });
  expect(all.some(({ name }) => name === 'era_odd' || name === 'nonsense')).toBe(false);
});

it('knows what is behind, what fails and where the time goes', () => {
  const health = healthOf(TEXT);
  expect(health).toMatchObject({ seq: 15, behind: 3, requests: 10, faults: 2, meanS: 0.2 });
  expect(health.jobs).toEqual([{ state: 'waiting', count: 1 }, { state: 'running', count: 4 }, { state: 'ended', count: 2 }]);
  expect(health.queues).toEqual([{ queue: 'a "b"', waiting: 7 }]);
  expect(health.routes.map(({ route }) => route)).toEqual(['GET /api/v1/jobs', 'GET /readyz']);
});

it('nothing is nothing', () => {
  expect(healthOf('')).toEqual({ jobs: [], queues: [], seq: undefined, behind: undefined, requests: 0, faults: 0, meanS: undefined, routes: [] });
});
