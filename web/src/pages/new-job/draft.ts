/**
 * A job while it is being written: everything as text, as the form and the YAML have it. What the
 * form has no control for is kept in `more`, so that nothing that was written gets lost.
 */
import type { Ask, NewJob, QuoteAsk } from '../../api/types';
import { instant, localTime, localTimeUp, readSpan, writeSpan } from './spans';

export interface DraftInput {
  data: string;
  path: string;
}

export interface Draft {
  name: string;
  /** What it is done for. */
  project: string;
  /** A line for the shell, or words with quotes. */
  command: string;
  /** The hash of the uploaded folder. */
  code: string;
  env: Record<string, string>;
  inputs: DraftInput[];
  image: string;
  gpu: string;
  gpuModel: string;
  cpu: string;
  memory: string;
  /** `4`, or `2..8`. */
  replicas: string;
  time: string;
  /** Whether a slot is promised, or it waits in a queue. */
  promise: boolean;
  from: string;
  by: string;
  value: string;
  queue: string;
  pool: string;
  preemptible: boolean;
  /** Many of the same: `0-99`, `0-99:2`, `0-99%10`. */
  array: string;
  /** After other jobs: `12, 13:any`. */
  after: string;
  /** Other keys of the YAML, as they were. */
  more: Readonly<Record<string, unknown>>;
  /** Other resources, such as `gpu.memory` and devices. */
  otherResources: Readonly<Record<string, string>>;
}

export const BLANK: Draft = {
  name: '', project: '', command: '', code: '', env: {}, inputs: [], image: '',
  gpu: '', gpuModel: '', cpu: '1', memory: '1Gi', replicas: '', time: '1h',
  promise: true, from: '', by: '', value: '', queue: '', pool: '', preemptible: false, array: '', after: '', more: {}, otherResources: {},
};

/**
 * Fields of a job that the form has no control for: they stand in `more` under their own names, which
 * are those of the YAML, and of the command line's flags. A `bid` is a flag that queues have not.
 */
export const KEPT = { overrun: 'word', priority: 'number', accept_price: 'bid', release_when_idle: 'flag', attributes: 'map' } as const;
export const KEPT_KEYS = Object.keys(KEPT) as (keyof typeof KEPT)[];

export const isKept = (key: string): key is keyof typeof KEPT => key in KEPT;

/** Whether a draft says something of such a field. */
export function says({ more, promise }: Pick<Draft, 'more' | 'promise'>, key: keyof typeof KEPT): boolean {
  const kind = KEPT[key];
  return kind === 'flag' || kind === 'bid' ? more[key] === true && (kind === 'flag' || promise) : more[key] !== undefined;
}

export type Field = 'command' | 'gpu' | 'cpu' | 'memory' | 'replicas' | 'time' | 'from' | 'by' | 'value' | 'project' | 'array' | 'after';
/** What is wrong, by field; the words are the page's. */
export type Wrong = Partial<Record<Field, 'missing' | 'notRead' | 'past' | 'order'>>;

const AMOUNT = /^\d+(\.\d+)?(m|[kKMGTP]i?B?|[eE]\d+)?$/;
/** An amount of credits, as it is written. */
export const CREDITS = /^\d{1,10}(\.\d{1,6})?$/;

/** The replicas of a text, nothing where none are said. */
export function readReplicas(text: string): number | { min: number; max: number } | undefined | 'bad' {
  const plain = text.trim();
  if (plain === '') return undefined;
  const range = /^(\d{1,6})(?:\s*\.\.\s*(\d{1,6}))?$/.exec(plain);
  const min = Number(range?.[1]);
  const max = range?.[2] === undefined ? min : Number(range[2]);
  if (!range || min < 1 || max < min) return 'bad';
  return range[2] === undefined ? min : { min, max };
}

export interface Indices {
  from: number;
  to: number;
  step?: number;
  limit?: number;
}

/** Most jobs of one array. */
const COUNT_MAX = 100_000;

/** The indices of an array: `0-99`, `0-99:2`, `0-99%10`, `1,3,5`, or one alone; nothing where none are said. */
export function readArray(text: string): Indices | undefined | 'bad' {
  const plain = text.trim();
  if (plain === '') return undefined;
  const [, listed, most] = /^(\d{1,9}(?:,\d{1,9})+)(%\d+)?$/.exec(plain) ?? [];
  if (listed !== undefined) {
    const indices = listed.split(',').map(Number);
    const [first = 0, second = 0] = indices;
    const even = indices.every((index, at) => index === first + at * (second - first));
    return even && second > first ? readArray(`${first}-${indices.at(-1)}:${second - first}${most ?? ''}`) : 'bad';
  }
  const [, first, last, step, limit] = /^(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?(?:%(\d{1,9}))?$/.exec(plain) ?? [];
  if (first === undefined) return 'bad';
  const [from, to] = [Number(first), Number(last ?? first)];
  if (to < from || step === '0' || limit === '0' || (to - from) / Number(step ?? 1) + 1 > COUNT_MAX) return 'bad';
  return { from, to, ...(step !== undefined && { step: Number(step) }), ...(limit !== undefined && { limit: Number(limit) }) };
}

export function writeArray({ from, to, step, limit }: Indices): string {
  return `${from}-${to}${step !== undefined && step !== 1 ? `:${step}` : ''}${limit === undefined || limit === null ? '' : `%${limit}`}`;
}

export interface Before {
  job: number;
  when: 'ok' | 'any';
}

/** Jobs that must be over first: `12`, `12:ok`, `12:any`, by comma. */
export function readAfter(text: string): Before[] | 'bad' {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length === 1 && parts[0] === '') return [];
  const read = parts.map((part) => /^(\d{1,15})(?::(ok|any))?$/.exec(part));
  if (read.some((one) => one === null)) return 'bad';
  return read.map((one) => ({ job: Number(one?.[1]), when: one?.[2] === 'any' ? 'any' : 'ok' }));
}

export function writeAfter(after: readonly { job: number; when?: string | undefined }[]): string {
  return after.map(({ job, when }) => (when === 'any' ? `${job}:any` : String(job))).join(', ');
}

/** What the server takes for what people call a thing: in any script, and in one line. */
const TITLE = /^(?=.*[\p{L}\p{N}\p{P}\p{S}])[^\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb]{1,63}$/u;

/** What keeps a draft from being priced. */
export function wrongIn(draft: Draft, now: number): Wrong {
  const wrong: Wrong = {};
  for (const field of ['gpu', 'cpu', 'memory'] as const) {
    const text = draft[field].trim();
    if (text !== '' && !AMOUNT.test(text)) wrong[field] = 'notRead';
  }
  if (readReplicas(draft.replicas) === 'bad') wrong.replicas = 'notRead';
  if (draft.project.trim() !== '' && !TITLE.test(draft.project.trim())) wrong.project = 'notRead';
  if (!draft.promise) {
    if (readArray(draft.array) === 'bad') wrong.array = 'notRead';
    if (readAfter(draft.after) === 'bad') wrong.after = 'notRead';
  }
  if (readSpan(draft.time) === undefined) wrong.time = draft.time.trim() === '' ? 'missing' : 'notRead';
  if (draft.promise) {
    const [from, by] = [instant(draft.from), instant(draft.by)];
    if (draft.from.trim() !== '' && from === undefined) wrong.from = 'notRead';
    if (draft.by.trim() !== '' && by === undefined) wrong.by = 'notRead';
    if (by !== undefined && Date.parse(by) <= now) wrong.by = 'past';
    else if (by !== undefined && from !== undefined && by <= from) wrong.by = 'order';
    if (draft.value.trim() !== '' && !CREDITS.test(draft.value.trim())) wrong.value = 'notRead';
  }
  return wrong;
}

/**
 * Whether it says something by which the command line knows a bid for a promise: what it is worth,
 * what it may cost, or when it must run.
 */
export function isBid({ from, by, value, more }: Pick<Draft, 'from' | 'by' | 'value' | 'more'>): boolean {
  return [from, by, value].some((text) => text.trim() !== '') || Array.isArray(more['value']) || more['most'] !== undefined || more['accept_price'] === true;
}

/** What is left empty the server says. */
function resources(draft: Draft): Record<string, string> {
  const gpu = draft.gpu.trim() === '0' ? '' : draft.gpu.trim();
  const given: [string, string][] = [['cpu', draft.cpu.trim()], ['memory', draft.memory.trim()], ['gpu', gpu], ['gpu.model', draft.gpuModel.trim()]];
  return { ...draft.otherResources, ...Object.fromEntries(given.filter(([, amount]) => amount !== '')) };
}

/** The part that is priced. Only of a draft that has nothing wrong. */
export function askOf(draft: Draft): Ask {
  const replicas = readReplicas(draft.replicas);
  const [from, by] = [instant(draft.from), instant(draft.by)];
  const place = constraints(draft);
  return {
    resources: resources(draft),
    duration_s: readSpan(draft.time) ?? 0,
    ...(replicas !== undefined && replicas !== 'bad' && { replicas }),
    ...(typeof draft.more['gpus'] === 'number' && { gpus: draft.more['gpus'] }),
    ...(draft.promise && from !== undefined && { earliest: from }),
    ...(draft.promise && by !== undefined && { deadline: by }),
    ...(Object.keys(place).length > 0 && { constraints: place }),
  } as Ask;
}

function constraints(draft: Draft): Record<string, unknown> {
  const other = draft.more['constraints'];
  const kept = typeof other === 'object' && other !== null ? (other as Record<string, unknown>) : {};
  return { ...kept, ...(draft.pool !== '' && { pool: draft.pool }) };
}

/** The most that it may cost, where the YAML says so. */
export function mostOf({ more }: Pick<Draft, 'more'>): string | undefined {
  return more['most'] === undefined ? undefined : String(more['most']);
}

/**
 * What it is worth: one amount, or the steps that the YAML has, or else the most that it may cost;
 * nothing where nothing is said.
 */
export function valueOf(draft: Draft): QuoteAsk['value'] {
  const [amount, steps] = [draft.value.trim(), draft.more['value']];
  if (amount === '' && Array.isArray(steps)) {
    return steps.map((step: { by?: unknown; worth?: unknown }) => ({ by: instant(String(step.by)) ?? '', worth: String(step.worth) }));
  }
  return amount === '' ? mostOf(draft) : amount;
}

/** The question for a price. */
export function quoteAskOf(draft: Draft): QuoteAsk {
  const value = valueOf(draft);
  return { ask: askOf(draft), ...(value !== undefined && { value }) };
}

/** What a backslash takes its meaning from, between double quotes. */
const ESCAPED = '"\\$`';

/** The words of a command line: quotes keep spaces, a backslash keeps the next letter. */
export function commandWords(line: string): string[] {
  return cut(line).words;
}

/** Words, and whether there is something among them that only a shell can read. */
function cut(line: string): { words: string[]; shell: boolean } {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  let shell = false;
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] ?? '';
    const next = line[at + 1];
    if (quote !== "'" && /[$`]/.test(letter)) shell = true;
    if (quote === '' && /[|&;<>*?\n()[\]{}~#!]/.test(letter)) shell = true;
    if (quote !== '') {
      if (letter === quote) quote = '';
      else if (letter === '\\' && quote === '"' && next !== undefined && ESCAPED.includes(next)) word = (word ?? '') + (line[(at += 1)] ?? '');
      else word = (word ?? '') + letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= '';
    } else if (letter === '\\' && next !== undefined) word = (word ?? '') + (line[(at += 1)] ?? '');
    else if (/\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + letter;
  }
  if (word !== undefined) words.push(word);
  return { words, shell };
}

/** Words as a line that reads back. */
export function commandLine(words: readonly string[]): string {
  return words.map(quoted).join(' ');
}

export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Commands that a shell has and no file: by themselves they would not be found. */
const SHELLS_OWN = /^(\w+=|(cd|exit|export|source|set|unset|ulimit|umask|exec|eval|trap|wait|\.|:)(\s|$))/;

/** What the shell would have to read: then it is the shell that runs it. */
export function needsShell(line: string): boolean {
  return SHELLS_OWN.test(line.trim()) || cut(line.trim()).shell;
}

/** The words that are run for a line. */
export function commandOf(line: string): string[] {
  return needsShell(line) ? ['sh', '-c', line.trim()] : commandWords(line);
}

/** The job as it is handed in, with the code that was uploaded. */
export function jobOf(draft: Draft): NewJob {
  const most = mostOf(draft);
  const { secrets, terminal } = draft.more;
  const [array, after] = [readArray(draft.array), readAfter(draft.after)];
  return {
    ...(draft.name.trim() !== '' && { name: draft.name.trim() }),
    ...(draft.project.trim() !== '' && { project: draft.project.trim() }),
    work: {
      command: commandOf(draft.command),
      ...(draft.code !== '' && { code: draft.code }),
      ...(Object.keys(draft.env).length > 0 && { env: draft.env }),
      ...(draft.inputs.length > 0 && { inputs: draft.inputs.map(({ data, path }) => ({ data, ...(path !== '' && { path }) })) }),
      ...(draft.image !== '' && { image: draft.image }),
      ...(secrets !== undefined && { secrets }),
      ...(terminal === true && { terminal }),
    },
    ask: askOf(draft),
    ...(draft.promise && most !== undefined && { most }),
    ...(!draft.promise && draft.queue !== '' && { queue: draft.queue }),
    ...(draft.preemptible && { preemptible: true }),
    ...(!draft.promise && typeof array === 'object' && { array }),
    ...(!draft.promise && after !== 'bad' && after.length > 0 && { after }),
    ...Object.fromEntries(KEPT_KEYS.filter((key) => says(draft, key)).map((key) => [key, draft.more[key]])),
  } as NewJob;
}

/** A draft of a job as the server would have it handed in again; `promise`: whether it asks for one. */
export function draftOf(job: NewJob, promise = Boolean(job.value ?? job.hold ?? job.accept_price)): Draft {
  const { cpu, memory, gpu, 'gpu.model': model, ...others } = Object.fromEntries(
    Object.entries(job.ask.resources ?? {}).map(([name, amount]) => [name, String(amount)]),
  );
  const { pool, ...place } = (job.ask.constraints ?? {}) as Record<string, unknown>;
  const replicas = job.ask.replicas;
  const more: Record<string, unknown> = {};
  for (const key of KEPT_KEYS) if (job[key]) more[key] = job[key];
  if (Array.isArray(job.value)) more['value'] = (job.value as { by: string; worth: string }[]).map(({ by, worth }) => ({ by: localTimeUp(by), worth }));
  if (job.work.secrets?.length) more['secrets'] = job.work.secrets;
  if (job.work.terminal) more['terminal'] = true;
  if (job.ask.gpus) more['gpus'] = job.ask.gpus;
  if (Object.keys(place).length > 0) more['constraints'] = place;
  const command = job.work.command ?? [];
  const shell = command.length === 3 && command[0] === 'sh' && command[1] === '-c';
  return {
    ...BLANK,
    name: job.name ?? '',
    project: job.project ?? '',
    command: shell ? (command[2] ?? '') : commandLine(command),
    code: job.work.code ?? '',
    env: job.work.env ?? {},
    inputs: (job.work.inputs ?? []).map(({ data, path }) => ({ data, path: path ?? '' })),
    image: job.work.image ?? '',
    cpu: cpu ?? '',
    memory: memory ?? '',
    gpu: gpu ?? '',
    gpuModel: model ?? '',
    replicas: replicas === undefined || replicas === null ? '' : typeof replicas === 'number' ? String(replicas) : `${replicas.min}..${replicas.max}`,
    time: job.ask.duration_s ? writeSpan(job.ask.duration_s) : '',
    promise,
    from: job.ask.earliest ? localTime(job.ask.earliest) : '',
    by: job.ask.deadline ? localTimeUp(job.ask.deadline) : '',
    value: typeof job.value === 'string' ? job.value : '',
    queue: job.queue ?? '',
    pool: typeof pool === 'string' ? pool : '',
    preemptible: job.preemptible ?? false,
    // What it came after is over, or will never be: a copy starts for itself.
    array: job.array ? writeArray(job.array as Indices) : '',
    more,
    otherResources: others,
  };
}
