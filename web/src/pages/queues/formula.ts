/**
 * The text of a formula as an editor needs it: its words, what may be completed, and where a
 * character of the server's count lies. What it means is the server's business alone. Pure.
 */
export type Kind = 'number' | 'name' | 'unknown' | 'function' | 'text' | 'word' | 'sign' | 'space';

export interface Token {
  kind: Kind;
  text: string;
  from: number;
}

/** Functions and texts of the language; the numbers come from the server. */
export const FUNCTIONS = ['if', 'min', 'max', 'abs', 'clamp', 'log2', 'ln', 'sqrt'] as const;
export const TEXTS = ['field', 'framework', 'network'] as const;
const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'not']);

const PATTERN = /(\s+)|("[^"]*"?)|(\d[\d_]*\.?\d*)|([A-Za-z_][A-Za-z0-9_]*)|(<=|>=|==|!=|.)/gsu;

export function tokens(source: string, names: ReadonlySet<string>): Token[] {
  const found: Token[] = [];
  for (const match of source.matchAll(PATTERN)) {
    const [text, space, string, number, name] = match;
    const kind: Kind = space ? 'space' : string ? 'text' : number ? 'number' : name ? kindOf(name, names) : 'sign';
    found.push({ kind, text, from: match.index });
  }
  return found;
}

function kindOf(name: string, names: ReadonlySet<string>): Kind {
  if (WORDS.has(name)) return 'word';
  if ((FUNCTIONS as readonly string[]).includes(name)) return 'function';
  return names.has(name) || (TEXTS as readonly string[]).includes(name) ? 'name' : 'unknown';
}

/** The word that ends at the caret, and where it begins; none within a text in quotes. */
export function wordAt(source: string, caret: number): { from: number; word: string } | undefined {
  const before = source.slice(0, caret);
  if ((before.match(/"/g)?.length ?? 0) % 2 === 1) return undefined;
  const word = /[A-Za-z_][A-Za-z0-9_]*$/.exec(before)?.[0] ?? '';
  // The tail of a number, such as the e of 1e, is no word.
  return /\d$/.test(before.slice(0, caret - word.length)) ? undefined : { from: caret - word.length, word };
}

/** Names that fit what was typed: those that begin so, then those that contain it. */
export function suggestions(word: string, names: readonly string[]): string[] {
  const wanted = word.toLowerCase();
  const begins = names.filter((name) => name.startsWith(wanted));
  const contains = wanted.length < 2 ? [] : names.filter((name) => !name.startsWith(wanted) && name.includes(wanted));
  return [...begins, ...contains];
}

/** The formula with a word completed, and where the caret is then: within the brackets of a function. */
export function completed(source: string, caret: number, name: string): { source: string; caret: number } {
  const from = wordAt(source, caret)?.from ?? caret;
  // What is left of a word that the caret stood in goes too.
  const rest = source.slice(caret).replace(/^[A-Za-z0-9_]*/, '');
  const calls = (FUNCTIONS as readonly string[]).includes(name) && !rest.startsWith('(');
  const put = calls ? `${name}(` : name;
  return { source: source.slice(0, from) + put + rest, caret: from + put.length };
}

/** The server counts characters; a text box counts units of UTF-16. */
export function unitAt(source: string, character: number): number {
  let unit = 0;
  let left = character;
  for (const letter of source) {
    if (left <= 0) break;
    unit += letter.length;
    left -= 1;
  }
  return unit;
}

/** The stretch that is marked for a problem at a character: the word there, or one place at the end. */
export function marked(source: string, character: number): { from: number; to: number } {
  const from = unitAt(source, character);
  const word = /^[A-Za-z0-9_.]+/.exec(source.slice(from))?.[0].length ?? 1;
  return { from, to: from + word };
}
