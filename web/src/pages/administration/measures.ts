/** The server's own measures, out of the text that Prometheus reads: pure. */
export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** Every sample of a text; what is no sample is passed over. */
export function samples(text: string): Sample[] {
  const found: Sample[] = [];
  for (const line of text.split('\n')) {
    const read = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!read) continue;
    const value = Number(read[3]);
    if (Number.isFinite(value)) found.push({ name: read[1] ?? '', labels: labelsOf(read[2] ?? ''), value });
  }
  return found;
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name, value] of text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name ?? ''] = (value ?? '').replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));
  }
  return labels;
}

export interface RouteLine {
  route: string;
  count: number;
  /** Seconds in all. */
  total: number;
}

export interface Health {
  jobs: { state: string; count: number }[];
  queues: { queue: string; waiting: number }[];
  seq: number | undefined;
  behind: number | undefined;
  requests: number;
  /** Those that failed by the server's fault. */
  faults: number;
  /** Seconds in the mean. */
  meanS: number | undefined;
  /** Those that took most time in all first. */
  routes: RouteLine[];
}

/** As a job goes through them; one that is not known comes last. */
const STATES = ['waiting', 'promised', 'running', 'stopping', 'ended'];
const placeOf = (state: string) => (STATES.includes(state) ? STATES.indexOf(state) : STATES.length);

export function healthOf(text: string): Health {
  const all = samples(text);
  const of = (name: string) => all.filter((sample) => sample.name === name);
  const one = (name: string) => of(name)[0]?.value;
  const requests = of('era_http_requests_total');
  const routes = new Map<string, RouteLine>();
  const line = (sample: Sample) => {
    const route = `${sample.labels.method ?? ''} ${sample.labels.route ?? ''}`.trim();
    const known = routes.get(route) ?? { route, count: 0, total: 0 };
    routes.set(route, known);
    return known;
  };
  for (const sample of of('era_http_request_seconds_count')) line(sample).count += sample.value;
  for (const sample of of('era_http_request_seconds_sum')) line(sample).total += sample.value;
  const sorted = [...routes.values()].sort((a, b) => b.total - a.total);
  const [count, total] = [sorted.reduce((sum, { count: some }) => sum + some, 0), sorted.reduce((sum, { total: some }) => sum + some, 0)];
  return {
    jobs: of('era_jobs').map(({ labels, value }) => ({ state: labels.state ?? '', count: value })).filter(({ count: some }) => some > 0).sort((a, b) => placeOf(a.state) - placeOf(b.state)),
    queues: of('era_queue_waiting').map(({ labels, value }) => ({ queue: labels.queue ?? '', waiting: value })),
    seq: one('era_journal_seq'),
    behind: one('era_feed_behind'),
    requests: requests.reduce((sum, { value }) => sum + value, 0),
    faults: requests.filter(({ labels }) => (labels.status ?? '').startsWith('5')).reduce((sum, { value }) => sum + value, 0),
    meanS: count > 0 ? total / count : undefined,
    routes: sorted,
  };
}
