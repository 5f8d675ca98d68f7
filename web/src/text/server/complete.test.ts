/** Whatever the server can say has a word in Chinese: its own source is the list. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { ENDED, FAULT, HAPPENED, REFUSED, WHY, WRONG } from './zh';

const CRATES = resolve(import.meta.dirname, '../../../../crates');
const snake = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();

/** The variants of an enum, as they are written on the wire. */
function variants(file: string, name: string): string[] {
  const source = readFileSync(resolve(CRATES, file), 'utf8');
  const begin = source.indexOf(`pub enum ${name} {`);
  const body = source.slice(begin, source.indexOf('\n}', begin));
  return [...body.matchAll(/^ {4}([A-Z]\w*)(?=[,{( ])/gm)].map(([, variant = '']) => snake(variant));
}

/** What only the machine itself hears of, what is about no job, and what only wraps or says in words alone. */
const UNSAID = new Set(['out_of_order', 'bad_time', 'nodes_changed', 'changed', 'forgotten', 'quantity', 'refused', 'said']);

it.each([
  ['era-core/src/refusal.rs', 'Refusal', REFUSED],
  ['era-core/src/queue/formula/fault.rs', 'Fault', FAULT],
  ['era-core/src/event.rs', 'Event', HAPPENED],
  ['era-core/src/job.rs', 'Outcome', ENDED],
  ['era-core/src/reason.rs', 'WaitReason', WHY],
  ['era-core/src/resources.rs', 'BadQuantity', WRONG],
  ['era-app/src/wire/wrong.rs', 'Wrong', WRONG],
])('every variant of %s has one', (file, name, sayings) => {
  const all = variants(file, name);
  expect(all.length).toBeGreaterThan(4);
  expect(all.filter((variant) => !(variant in sayings) && !UNSAID.has(variant))).toEqual([]);
});

it('every code that the server gives a refusal by itself has one', () => {
  const files = ['era-app/src', 'era-server/src'].flatMap((crate) => {
    const folder = resolve(CRATES, crate);
    const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    return all.filter((file) => file.endsWith('.rs')).map((file) => join(folder, file));
  });
  const source = files.map((file) => readFileSync(file, 'utf8').split('#[cfg(test)]')[0]).join('\n');
  const codes = [/(?:Failure|AppError)::(?:new|wrong)\(\s*[\w:]+,\s*"([a-z_]+)"/g, /(?:StatusCode|Kind)::\w+,\s*"([a-z_]+)"/g].flatMap((pattern) => [...source.matchAll(pattern)].map(([, code = '']) => code));
  expect(new Set(codes).size).toBeGreaterThan(60);
  expect([...new Set(codes)].filter((code) => !(code in REFUSED))).toEqual([]);
});
