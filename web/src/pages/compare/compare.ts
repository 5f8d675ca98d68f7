/** Several jobs side by side: their parameters as rows, and which of them differ. Pure. */
import type { Job } from '../../api/types';

export interface Row {
  name: string;
  values: string[];
  /** The same as they are shown: credits as credits. */
  shown: string[];
  /** Whether not all are the same. */
  differs: boolean;
}

/** The jobs that an address names: numbers by comma, each once, not too many. */
export function chosen(text: string | null, most: number): number[] {
  const numbers = (text ?? '').split(',').filter((part) => /^\d{1,15}$/.test(part)).map(Number);
  return [...new Set(numbers)].slice(0, most);
}

/** Every value of what was handed in, by its place there: `ask.resources.gpu`. */
export function flat(value: unknown, name = ''): [string, string][] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return [[name, value.map((one) => (typeof one === 'object' ? JSON.stringify(one) : String(one))).join(' ')]];
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([key, inner]) => flat(inner, name === '' ? key : `${name}.${key}`));
  }
  return [[name, String(value)]];
}

type Alike = (amounts: readonly string[]) => (amount: string) => string;

/** What a bid offers: an amount, or one for each time by which it is finished. */
const OFFERS = ['value', 'most'];
const WORTH = /(?<="worth":")-?[\d.]+(?=")/g;

/** Amounts among the values of a row, with the same digits in all of them. */
function written(values: readonly string[], alike: Alike): string[] {
  const alone = /^-?\d+(\.\d+)?$/;
  const amounts = values.flatMap((value) => (alone.test(value) ? [value] : (value.match(WORTH) ?? [])));
  const money = alike(amounts);
  return values.map((value) => (alone.test(value) ? money(value) : value.replace(WORTH, money)));
}

/** Rows of what was handed in, those that differ first; credits are written by `alike`. */
export function parameterRows(jobs: readonly Job[], alike: Alike): Row[] {
  const flattened = jobs.map((job) => new Map([...flat(job.spec), ...argumentsOf(job.spec.work.command ?? [])]));
  const names = [...new Set(flattened.flatMap((one) => [...one.keys()]))].filter((name) => name !== 'name' && name !== 'priority');
  const rows = names.map((name) => {
    const values = flattened.map((one) => one.get(name) ?? '');
    return { name, values, shown: OFFERS.includes(name) ? written(values, alike) : values, differs: new Set(values).size > 1 };
  });
  return rows.sort((a, b) => Number(b.differs) - Number(a.differs) || (a.name < b.name ? -1 : 1));
}

/** `--rate 0.1` and `--rate=0.1` of a command, as parameters of their own. */
export function argumentsOf(command: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (const [index, word] of command.entries()) {
    const joined = /^--([\w-]+)=(.*)$/.exec(word);
    const next = command[index + 1];
    if (joined) found.push([`--${joined[1]}`, joined[2] ?? '']);
    else if (/^--[\w-]+$/.test(word)) found.push([word, next !== undefined && !next.startsWith('-') ? next : 'yes']);
  }
  return found;
}
