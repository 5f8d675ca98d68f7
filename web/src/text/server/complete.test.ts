/** Whatever the scheduler can say has a word in Chinese: its own source is the list. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { ENDED, FAULT, HAPPENED, REFUSED, WHY } from './zh';

const CORE = resolve(import.meta.dirname, '../../../../crates/era-core/src');
const snake = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();

/** The variants of an enum, as they are written on the wire. */
function variants(file: string, name: string): string[] {
  const source = readFileSync(resolve(CORE, file), 'utf8');
  const begin = source.indexOf(`pub enum ${name} {`);
  const body = source.slice(begin, source.indexOf('\n}', begin));
  return [...body.matchAll(/^ {4}([A-Z]\w*)(?=[,{( ])/gm)].map(([, variant = '']) => snake(variant));
}

/** What only the machine itself hears of, and what is about no job. */
const UNSAID = new Set(['out_of_order', 'bad_time', 'nodes_changed', 'changed', 'forgotten']);

it.each([
  ['refusal.rs', 'Refusal', REFUSED],
  ['queue/formula/fault.rs', 'Fault', FAULT],
  ['output.rs', 'Event', HAPPENED],
  ['job.rs', 'Outcome', ENDED],
  ['explain.rs', 'Reason', WHY],
])('every variant of %s has one', (file, name, sayings) => {
  const all = variants(file, name);
  expect(all.length).toBeGreaterThan(5);
  expect(all.filter((variant) => !(variant in sayings) && !UNSAID.has(variant))).toEqual([]);
});
