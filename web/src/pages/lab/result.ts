/**
 * What a run found, out of the object that the command line prints. Each reader takes what it
 * knows and gives nothing for what it does not, so that a newer server breaks no page.
 */
type Thing = Readonly<Record<string, unknown>>;

const thing = (value: unknown): Thing | undefined => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Thing) : undefined);
const list = (value: unknown): Thing[] => (Array.isArray(value) ? value.map(thing).filter((one) => one !== undefined) : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const count = (value: unknown): number | undefined => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);

export interface SimulatedRun {
  policy: string;
  meanWaitS: number;
  p99WaitS: number;
  meanJctS: number;
  p99JctS: number;
  utilisation: number;
  fairness: number;
  value: number;
}

export interface Simulated {
  runs: SimulatedRun[];
  /** Which of them is best. */
  best: number | undefined;
}

export function simulated(result: unknown): Simulated | undefined {
  const found = thing(result);
  const runs = list(found?.runs).map((run): SimulatedRun => {
    const of = (name: string) => count(run[name]) ?? 0;
    return {
      policy: text(run.policy),
      meanWaitS: of('mean_wait_s'),
      p99WaitS: of('p99_wait_s'),
      meanJctS: of('mean_jct_s'),
      p99JctS: of('p99_jct_s'),
      utilisation: of('utilisation'),
      fairness: of('fairness'),
      value: of('value'),
    };
  });
  return found && runs.length > 0 ? { runs, best: count(found.best) } : undefined;
}

/** Which policy finishes jobs soonest, and by which share sooner than the next; none where all are alike. */
export function soonest({ runs, best }: Simulated): { best: SimulatedRun; next: SimulatedRun | undefined; sooner: number } | undefined {
  const first = runs[best ?? 0];
  if (!first) return undefined;
  const next = runs.filter((run) => run !== first).sort((a, b) => a.meanJctS - b.meanJctS)[0];
  return { best: first, next, sooner: next && next.meanJctS > 0 ? 1 - first.meanJctS / next.meanJctS : 0 };
}

export interface Side {
  accepted: number;
  meanWaitS: number;
  /** In credits. */
  value: number;
  paid: number;
}

export interface Compared {
  id: number;
  jobs: number;
  recorded: Side;
  other: Side;
  /** In credits. */
  netChange: number;
  waitChangeS: number;
}

export interface Replayed {
  same: boolean;
  rules: string[];
  total: Compared | undefined;
  users: Compared[];
  groups: Compared[];
  /** What is odd about the comparison, by its name there. */
  notComparable: { why: string; jobs: number }[];
}

const MICRO = 1e6;

function compared(value: unknown): Compared | undefined {
  const found = thing(value);
  if (!found) return undefined;
  const side = (of: unknown): Side => {
    const given = thing(of) ?? {};
    return { accepted: count(given.accepted) ?? 0, meanWaitS: count(given.mean_wait_s) ?? 0, value: (count(given.value) ?? 0) / MICRO, paid: (count(given.paid) ?? 0) / MICRO };
  };
  return {
    id: count(found.id) ?? 0,
    jobs: count(found.jobs) ?? 0,
    recorded: side(found.recorded),
    other: side(found.other),
    netChange: (count(found.net_change) ?? 0) / MICRO,
    waitChangeS: count(found.wait_change_s) ?? 0,
  };
}

export function replayed(result: unknown): Replayed | undefined {
  const found = thing(result);
  const comparison = thing(found?.comparison);
  if (!found || !comparison) return undefined;
  const all = (value: unknown) => list(value).flatMap((one) => compared(one) ?? []);
  return {
    same: found.same === true,
    rules: Array.isArray(found.rules) ? found.rules.map(text) : [],
    total: compared(comparison.total),
    users: all(comparison.users),
    groups: all(comparison.groups),
    notComparable: Object.entries(thing(comparison.not_comparable) ?? {}).map(([why, jobs]) => ({ why, jobs: count(jobs) ?? 0 })),
  };
}

export interface TunedRule {
  rule: string;
  train: number;
  test: number;
  /** What the formula gains over it, as a share: where it learned, and on later work. */
  gainTrain: number;
  gainTest: number;
}

export interface Tuned {
  formula: string;
  rules: TunedRule[];
  weights: { name: string; weight: number; lossWithout: number }[];
  factors: { name: string; explains: number }[];
}

export function tuned(result: unknown): Tuned | undefined {
  const found = thing(result);
  if (!found || text(found.formula) === '') return undefined;
  return {
    formula: text(found.formula),
    rules: list(found.rules).map((rule) => ({ rule: text(rule.rule), train: count(rule.train) ?? 0, test: count(rule.test) ?? 0, gainTrain: count(rule.gain_train) ?? 0, gainTest: count(rule.gain_test) ?? 0 })),
    weights: list(found.weights).map((one) => ({ name: text(one.name), weight: count(one.weight) ?? 0, lossWithout: count(one.loss_without) ?? 0 })),
    factors: list(found.factors).map((one) => ({ name: text(one.name), explains: count(one.explains_waiting) ?? 0 })),
  };
}

export interface Verdict {
  /** Not to be applied; fitted to the past; a plain rule does better; worth a try. */
  kind: 'no' | 'care' | 'plain' | 'good';
  train: number;
  test: number;
}

/** Whether what was learned holds on work that was not seen. */
export function judged(rules: readonly TunedRule[]): Verdict | undefined {
  const force = rules.find(({ rule }) => rule === 'in force');
  if (!force) return undefined;
  const { gainTrain: train, gainTest: test } = force;
  const plain = Math.min(...rules.slice(1).map(({ gainTest }) => gainTest));
  return { kind: gained(train, test) === 'good' && plain < 0 ? 'plain' : gained(train, test), train, test };
}

/** The same of the two gains alone. */
export function gained(train: number, test: number): 'no' | 'care' | 'good' {
  return test <= 0 ? 'no' : test < train / 2 ? 'care' : 'good';
}
