/**
 * A job while it is being written: everything as text, as the form and the YAML have it. What the
 * form has no control for is kept in `more`, so that nothing that was written gets lost.
 *
 * What the texts mean, what is wrong with them, and what is left open, the server says
 * (`POST /jobs/check`): it reads the same texts as the command line does. Here are only those that
 * it cannot know: a line for a shell, and times of the reader's clock.
 */
import type { Ask, NewJob, QuoteAsk } from '../../api/types';
import { instant, localTime, localTimeUp, writeSpan } from './spans';

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
  /** Whether the reader wants a promised slot, or a place in a queue; null where the text alone says it. */
  promise: boolean | null;
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
  gpu: '', gpuModel: '', cpu: '', memory: '', replicas: '', time: '',
  promise: true, from: '', by: '', value: '', queue: '', pool: '', preemptible: false, array: '', after: '', more: {}, otherResources: {},
};

/**
 * Fields of a job that the form has no control for: they stand in `more` under their own names, which
 * are those of the YAML, and of the command line's flags.
 */
export const KEPT = { overrun: 'word', priority: 'number', release_when_idle: 'flag', attributes: 'map' } as const;
export const KEPT_KEYS = Object.keys(KEPT) as (keyof typeof KEPT)[];

export const isKept = (key: string): key is keyof typeof KEPT => key in KEPT;

/** Whether a draft says something of such a field. */
export function says({ more }: Pick<Draft, 'more'>, key: keyof typeof KEPT): boolean {
  return KEPT[key] === 'flag' ? more[key] === true : more[key] !== undefined;
}

/**
 * Whether it says that it takes the price: a promised slot of which nobody says what it is worth. A
 * text says so itself, or by a beginning alone, as on the command line.
 */
export function takesPrice({ promise, from, value, more }: Pick<Draft, 'promise' | 'from' | 'value' | 'more'>): boolean {
  const valued = value.trim() !== '' || Array.isArray(more['value']);
  if (promise !== null) return promise && !valued;
  return more['accept_price'] === true || (from.trim() !== '' && !valued);
}

const text = (given: string) => (given.trim() === '' ? undefined : given.trim());
/** Without what is not said. */
const said = (all: Record<string, unknown>) => Object.fromEntries(Object.entries(all).filter(([, given]) => given !== undefined));

/** What is left empty the server says. */
function resources(draft: Draft): Record<string, unknown> {
  const gpu = draft.gpu.trim() === '0' ? undefined : text(draft.gpu);
  return { ...draft.otherResources, ...said({ cpu: text(draft.cpu), memory: text(draft.memory), gpu, 'gpu.model': text(draft.gpuModel) }) };
}

/** The part that is priced. */
function askOf(draft: Draft): Ask {
  const windowed = draft.promise !== false;
  const place = constraints(draft);
  return said({
    resources: resources(draft),
    duration_s: text(draft.time),
    replicas: text(draft.replicas),
    gpus: draft.more['gpus'],
    earliest: windowed ? instant(draft.from) : undefined,
    deadline: windowed ? instant(draft.by) : undefined,
    constraints: Object.keys(place).length > 0 ? place : undefined,
  }) as Ask;
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

/** What it is worth: one amount, or the steps that the YAML has. */
function valueOf(draft: Draft): unknown {
  const steps = draft.more['value'];
  if (draft.value.trim() !== '' || !Array.isArray(steps)) return text(draft.value);
  return steps.map((step: { by?: unknown; worth?: unknown }) => ({ by: instant(String(step.by)) ?? '', worth: String(step.worth) }));
}

/** The question for a price, on the terms of the job. */
export function quoteAskOf({ ask, value, most, accept_price }: NewJob): QuoteAsk {
  return said({ ask, value, most, accept_price }) as QuoteAsk;
}

/** The job as it takes what was held: what it is worth was said when the price was made. */
export function taking({ value: _value, most: _most, accept_price: _accept, ...job }: NewJob, hold: number): NewJob {
  return { ...job, hold };
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

/** The job as it is handed in, with the code that was uploaded. Texts are sent as they were written. */
export function jobOf(draft: Draft): NewJob {
  const [bids, queues] = [draft.promise !== false, draft.promise !== true];
  const { secrets, terminal } = draft.more;
  const inputs = draft.inputs.map(({ data, path }) => ({ data, ...(path !== '' && { path }) }));
  return said({
    name: text(draft.name),
    project: text(draft.project),
    work: said({
      command: commandOf(draft.command),
      code: text(draft.code),
      env: Object.keys(draft.env).length > 0 ? draft.env : undefined,
      inputs: inputs.length > 0 ? inputs : undefined,
      image: text(draft.image),
      secrets,
      terminal: terminal === true || undefined,
    }),
    ask: askOf(draft),
    value: bids ? valueOf(draft) : undefined,
    most: bids ? mostOf(draft) : undefined,
    accept_price: takesPrice(draft) || undefined,
    queue: queues ? text(draft.queue) : undefined,
    array: queues ? text(draft.array) : undefined,
    after: queues ? text(draft.after) : undefined,
    preemptible: draft.preemptible || undefined,
    ...Object.fromEntries(KEPT_KEYS.filter((key) => says(draft, key)).map((key) => [key, draft.more[key]])),
  }) as NewJob;
}

function writeArray({ from, to, step, limit }: NonNullable<NewJob['array']>): string {
  return `${from}-${to}${step !== undefined && step !== 1 ? `:${step}` : ''}${limit === undefined || limit === null ? '' : `%${limit}`}`;
}

/** A draft of a job as the server would have it handed in again; `promise`: whether it asks for one. */
export function draftOf(job: NewJob, promise: boolean): Draft {
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
    array: job.array ? writeArray(job.array) : '',
    more,
    otherResources: others,
  };
}
