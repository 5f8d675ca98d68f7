import { describe, expect, it } from 'vitest';
import { judged, replayed, simulated, soonest, tuned } from './result';

// Cut out of what the command line prints.
const SIMULATED = {
  trace_jobs: 400,
  runs: [
    { policy: 'fifo', mean_wait_s: 30805.6, p99_wait_s: 200299, mean_jct_s: 49099.6, p99_jct_s: 511479, utilisation: 0.317, fairness: 0.97, value: 31229.5 },
    { policy: 'sjf', mean_wait_s: 30801.5, p99_wait_s: 200299, mean_jct_s: 49095.6, p99_jct_s: 511479, utilisation: 0.317, fairness: 0.97, value: 31229.5 },
  ],
  best: 1,
};
const SIDE = { accepted: 10, mean_wait_s: 1.473, value: 2_000_000, paid: 1200 };
const REPLAYED = {
  same: true,
  rules: ['policy sjf', 'mechanism first-fit'],
  comparison: {
    total: { id: 0, jobs: 10, recorded: SIDE, other: { ...SIDE, mean_wait_s: 1.267 }, net_change: -500_000, wait_change_s: -0.206 },
    users: [{ id: 5, jobs: 5, recorded: SIDE, other: SIDE, net_change: 0, wait_change_s: 0 }],
    groups: [],
    not_comparable: { still_waiting_when_the_record_ends: 6 },
  },
};
const TUNED = {
  formula: '1 * wait / 3600',
  rules: [{ rule: 'in force', train: 0, test: 6533.06, gain_train: 0, gain_test: 0.3788 }],
  weights: [{ name: 'age', weight: 1, loss_without: -0 }],
  factors: [{ name: 'limit', explains_waiting: 0.9898, explains_run_time: 1, classes: [] }],
};

describe('a result', () => {
  it('of a simulation is its runs and the best of them', () => {
    const found = simulated(SIMULATED);
    expect(found?.runs.map(({ policy, meanJctS }) => [policy, meanJctS])).toEqual([['fifo', 49099.6], ['sjf', 49095.6]]);
    expect(found?.best).toBe(1);
    expect(found && soonest(found)).toMatchObject({ best: { policy: 'sjf' }, next: { policy: 'fifo' } });
    expect(found && soonest({ ...found, runs: found.runs.slice(1), best: 0 })).toMatchObject({ next: undefined, sooner: 0 });
  });

  it('of a replay is both sides, in credits, and what cannot be compared', () => {
    const found = replayed(REPLAYED);
    expect(found?.total).toMatchObject({ jobs: 10, netChange: -0.5, recorded: { value: 2, paid: 0.0012 }, other: { meanWaitS: 1.267 } });
    expect(found?.notComparable).toEqual([{ why: 'still_waiting_when_the_record_ends', jobs: 6 }]);
  });

  it('of a search is the formula and what it gains', () => {
    expect(tuned(TUNED)).toMatchObject({ formula: '1 * wait / 3600', rules: [{ rule: 'in force', gainTest: 0.3788 }], factors: [{ name: 'limit', explains: 0.9898 }] });
  });

  it('of a search says whether the gain holds on later work', () => {
    const rules = (train: number, test: number, plain = 0.1) => [
      { rule: 'tuned', train: 0, test: 0, gainTrain: 0, gainTest: 0 },
      { rule: 'in force', train: 0, test: 0, gainTrain: train, gainTest: test },
      { rule: 'fifo', train: 0, test: 0, gainTrain: 0, gainTest: plain },
    ];
    expect(judged(rules(0.4, -0.1))?.kind).toBe('no');
    expect(judged(rules(0.4, 0.1))?.kind).toBe('care');
    expect(judged(rules(0.4, 0.3, -0.2))?.kind).toBe('plain');
    expect(judged(rules(0.4, 0.3))).toEqual({ kind: 'good', train: 0.4, test: 0.3 });
    expect(judged([])).toBeUndefined();
  });

  it('of any other shape is none, and breaks nothing', () => {
    for (const odd of [undefined, null, 7, 'x', [], {}, { runs: 'many' }, { comparison: 3 }, { formula: 4 }, { runs: [null, 3] }]) {
      expect(simulated(odd)).toBeUndefined();
      expect(replayed(odd)).toBeUndefined();
      expect(tuned(odd)).toBeUndefined();
    }
  });
});
