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
  headline: string;
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
  return found && runs.length > 0 ? { headline: text(found.headline), runs, best: count(found.best) } : undefined;
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
  /** What the formula gains over it, as a share. */
  gainTest: number;
}

export interface Tuned {
  formula: string;
  verdict: string;
  rules: TunedRule[];
  weights: { name: string; weight: number; lossWithout: number }[];
  factors: { name: string; explains: number }[];
}

export function tuned(result: unknown): Tuned | undefined {
  const found = thing(result);
  if (!found || text(found.formula) === '') return undefined;
  return {
    formula: text(found.formula),
    verdict: text(found.verdict),
    rules: list(found.rules).map((rule) => ({ rule: text(rule.rule), train: count(rule.train) ?? 0, test: count(rule.test) ?? 0, gainTest: count(rule.gain_test) ?? 0 })),
    weights: list(found.weights).map((one) => ({ name: text(one.name), weight: count(one.weight) ?? 0, lossWithout: count(one.loss_without) ?? 0 })),
    factors: list(found.factors).map((one) => ({ name: text(one.name), explains: count(one.explains_waiting) ?? 0 })),
  };
}
