/**
 * A draft as YAML and back, in the keys that `era submit job.yaml` reads. Loaded when the YAML is
 * first looked at. Mistakes of its form are told with line and column; what its texts mean the
 * server says, as of the form's.
 */
import { isMap, isScalar, LineCounter, parseDocument, stringify, type Document } from 'yaml';
import { BLANK, commandLine, commandWords, isKept, KEPT, KEPT_KEYS, needsShell, says, takesPrice, type Draft, type DraftInput } from './draft';
import { instant, localTime } from './spans';

export interface Mistake {
  line: number;
  column: number;
  /** Which kind, and what was written. */
  code: 'long' | 'map' | 'key' | 'value' | 'names' | 'flag' | 'time' | 'list' | 'syntax';
  given: string;
  /** What the reader of YAML says of its syntax. */
  detail?: string;
}

export type Read = { draft: Draft; mistake?: undefined; note?: 'code' | undefined } | { draft?: undefined; mistake: Mistake; note?: undefined };

/** What the page knows beside the text. */
export interface Beside {
  /** The hash of the folder that was dropped. */
  code: string;
}

/** Longest text that is read: what `era submit` takes. */
const TEXT_MAX = 1 << 20;
const TEXTS = ['name', 'project', 'image', 'queue'] as const;
const FLAGS = ['preemptible', 'terminal', 'accept_price', ...KEPT_KEYS.filter((key) => KEPT[key] === 'flag')];
const KNOWN = new Set([
  'name', 'project', 'command', 'code', 'env', 'secrets', 'inputs', 'image', 'terminal', 'resources', 'replicas', 'gpus', 'time', 'from', 'by', 'value', 'most', 'accept_price',
  'queue', 'preemptible', 'constraints', 'array', 'after', ...KEPT_KEYS,
]);

/** The text of a draft. */
export function toYaml(draft: Draft): string {
  const { constraints, value, most, accept_price: _, ...more } = draft.more;
  const [bids, queues] = [draft.promise !== false, draft.promise !== true];
  const place = { ...(typeof constraints === 'object' ? constraints : {}), ...(draft.pool !== '' && { pool: draft.pool }) };
  const text = (given: string) => (given.trim() === '' ? undefined : given.trim());
  const inputs = draft.inputs.map(({ data, path }) => (path === '' ? data : { data, path }));
  const all = {
    name: text(draft.name),
    project: text(draft.project),
    command: draft.command.trim() === '' ? undefined : needsShell(draft.command) ? draft.command.trim() : commandWords(draft.command),
    // Where the file lies is where the code is; the page has what was dropped.
    code: draft.code === '' ? undefined : '.',
    env: Object.keys(draft.env).length > 0 ? draft.env : undefined,
    inputs: inputs.length > 0 ? inputs : undefined,
    image: text(draft.image),
    resources: resourcesOf(draft),
    replicas: text(draft.replicas),
    time: text(draft.time),
    ...(bids && { from: draft.from === '' ? undefined : localTime(draft.from), by: draft.by === '' ? undefined : localTime(draft.by), value: text(draft.value) ?? value, most, accept_price: takesPrice(draft) || undefined }),
    ...(queues && { queue: text(draft.queue), array: text(draft.array), after: text(draft.after) }),
    constraints: Object.keys(place).length > 0 ? place : undefined,
    preemptible: draft.preemptible || undefined,
    ...Object.fromEntries(Object.entries(more).filter(([key]) => !isKept(key) || says(draft, key))),
  };
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return stringify(given, { lineWidth: 100, defaultStringType: 'PLAIN' });
}

function resourcesOf(draft: Draft): Record<string, string | number> {
  const amounts = { gpu: draft.gpu, 'gpu.model': draft.gpuModel, cpu: draft.cpu, memory: draft.memory, ...draft.otherResources };
  const given = Object.entries(amounts).filter(([, amount]) => amount.trim() !== '');
  return Object.fromEntries(given.map(([name, amount]) => [name, /^\d+(\.\d+)?$/.test(amount) ? Number(amount) : amount]));
}

/** The draft that a text makes; its code stays what was dropped. */
export function fromYaml(text: string, beside: Beside): Read {
  const lines = new LineCounter();
  if (text.length > TEXT_MAX) return { mistake: { line: 1, column: 1, code: 'long', given: '' } };
  // Aliases could make a small text into a huge one.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const error = document.errors[0];
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (error) return { mistake: { ...at(error.pos[0]), code: 'syntax', given: error.code, detail: error.message.split(' at line ')[0] ?? error.message } };
  if (document.contents === null) return { draft: { ...BLANK, code: beside.code, promise: null } };
  if (!isMap(document.contents)) return { mistake: { line: 1, column: 1, code: 'map', given: '' } };
  for (const pair of document.contents.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : '';
    const offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0;
    if (!KNOWN.has(key)) return { mistake: { ...at(offset), code: 'key', given: key } };
  }
  try {
    const draft = read(document, beside);
    return { draft, note: beside.code === '' && namesFolder(document.get('code')) ? 'code' : undefined };
  } catch (thrown) {
    const wrong = thrown instanceof Misread ? thrown : undefined;
    const node = wrong ? document.get(wrong.key, true) : undefined;
    const offset = typeof node === 'object' && node !== null && 'range' in node ? ((node as { range?: [number] }).range?.[0] ?? 0) : 0;
    if (wrong) return { mistake: { ...at(offset), code: wrong.code, given: wrong.given } };
    return { mistake: { ...at(offset), code: 'syntax', given: 'RESOURCE_EXHAUSTION', detail: thrown instanceof Error ? thrown.message : String(thrown) } };
  }
}

/** A page cannot read the folder that a file names. */
const namesFolder = (code: unknown) => !['undefined', 'null', '', 'none', 'false'].includes(String(code));

class Misread extends Error {
  constructor(
    readonly key: string,
    readonly code: Mistake['code'],
    readonly given: string,
  ) {
    super(code);
  }
}

function read(document: Document, beside: Beside): Draft {
  const all = document.toJS({ maxAliasCount: 20 }) as Record<string, unknown>;
  const text = (key: string): string => {
    const given = all[key];
    if (given === undefined || given === null) return '';
    if (typeof given === 'object') throw new Misread(key, 'value', key);
    return String(given);
  };
  const map = (key: string): Record<string, string> => {
    const given = all[key] ?? {};
    if (typeof given !== 'object' || Array.isArray(given)) throw new Misread(key, 'names', key);
    return Object.fromEntries(Object.entries(given as object).map(([name, value]) => [name, String(value)]));
  };
  for (const key of FLAGS) if (!['boolean', 'undefined'].includes(typeof (all[key] ?? undefined))) throw new Misread(key, 'flag', key);
  const { gpu = '', 'gpu.model': gpuModel = '', cpu = '', memory = '', ...otherResources } = map('resources');
  const { pool, ...place } = (all['constraints'] ?? {}) as Record<string, unknown>;
  const more: Record<string, unknown> = {};
  for (const key of ['gpus', 'terminal', 'accept_price', ...KEPT_KEYS]) {
    if (all[key] !== undefined) more[key] = all[key];
  }
  const secrets = list(all['secrets']).map((name) => {
    if (typeof name === 'object') throw new Misread('secrets', 'value', 'secrets');
    return String(name);
  });
  if (secrets.length > 0) more['secrets'] = secrets;
  if (Object.keys(place).length > 0) more['constraints'] = place;
  const stepped = Array.isArray(all['value']);
  if (stepped) more['value'] = all['value'];
  const most = text('most');
  if (most !== '') more['most'] = most;
  const [name, project, image, queue] = TEXTS.map((key) => text(key)) as [string, string, string, string];
  const window = (key: 'from' | 'by') => {
    const given = text(key);
    const at = instant(given);
    if (given !== '' && at === undefined) throw new Misread(key, 'time', given);
    return at === undefined ? '' : localTime(at);
  };
  return {
    ...BLANK,
    from: window('from'),
    by: window('by'),
    value: stepped ? '' : text('value'),
    more,
    name,
    project,
    image,
    queue,
    command: Array.isArray(all['command']) ? commandLine(all['command'].map(String)) : text('command'),
    code: beside.code,
    env: map('env'),
    inputs: list(all['inputs']).map(input),
    gpu,
    gpuModel,
    cpu,
    memory,
    otherResources,
    replicas: replicas(all['replicas']),
    time: text('time'),
    promise: null,
    pool: typeof pool === 'string' ? pool : '',
    preemptible: all['preemptible'] === true,
    array: text('array').trim(),
    after: list(all['after']).map(String).join(', '),
  };
}

/** A list, or one alone. */
function list(given: unknown): unknown[] {
  if (given === undefined || given === null) return [];
  return Array.isArray(given) ? given : [given];
}

function input(given: unknown): DraftInput {
  if (typeof given === 'string') {
    const [data = '', path = ''] = given.split(':');
    return { data, path };
  }
  if (typeof given !== 'object' || given === null) throw new Misread('inputs', 'list', 'inputs');
  const { data = '', path = '' } = given as { data?: string; path?: string };
  return { data: String(data), path: String(path) };
}

function replicas(given: unknown): string {
  if (given === undefined || given === null) return '';
  if (typeof given === 'object') {
    const { min, max } = given as { min?: unknown; max?: unknown };
    return `${min}..${max}`;
  }
  return String(given);
}
