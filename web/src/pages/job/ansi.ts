/**
 * Log lines as pieces of text with a style: colours of ANSI sequences are kept, every other control
 * sequence is dropped. Nothing here makes HTML; the pieces are shown as text.
 */
export interface Piece {
  text: string;
  /** Names of classes: `fg-2`, `bold`. */
  style: string;
}

export interface Style {
  colour: number | undefined;
  ground: number | undefined;
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underlined: boolean;
}

export const PLAIN: Style = { colour: undefined, ground: undefined, bold: false, faint: false, italic: false, underlined: false };

/** ESC [ … letter, ESC ] … BEL or ESC \, and lone escapes. */
const SEQUENCE = /\x1b\[([0-9;:]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_=>]?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;
const COLOURS = /\x1b\[([0-9;:]*)m/g;

/** The pieces of a line, and the style that goes on in the next. */
export function pieces(line: string, from: Style = PLAIN): { pieces: Piece[]; style: Style } {
  const found: Piece[] = [];
  // A carriage return draws over what was there, as progress bars do: the last drawing counts. What
  // was drawn over has set colours all the same.
  const drawn = line.lastIndexOf('\r', line.length - 2) + 1;
  let style = after(line.slice(0, drawn), from);
  let at = 0;
  const add = (text: string) => {
    if (text !== '') found.push({ text, style: classes(style) });
  };
  const shown = line.slice(drawn);
  for (const match of shown.matchAll(SEQUENCE)) {
    add(shown.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === 'm') style = styled(style, match[1] ?? '');
  }
  add(shown.slice(at));
  return { pieces: found, style };
}

/** The style that goes on behind a text: what it costs to know it is small where it has no colours. */
export function after(line: string, from: Style): Style {
  let style = from;
  if (line.includes('\x1b[')) for (const [, codes = ''] of line.matchAll(COLOURS)) style = styled(style, codes);
  return style;
}

interface Printed {
  attempt: number;
  rank: number;
  stream: string;
  text: string;
}

/** The styles in which lines begin: each stream of a task goes on in the colour that it was left in. */
export class Carried {
  private readonly left = new Map<string, Style>();
  private readonly begins = new WeakMap<Printed, Style>();

  /** Tells the next line, in the order in which they were printed. */
  add(line: Printed): void {
    const stream = `${line.attempt} ${line.rank} ${line.stream}`;
    const from = this.left.get(stream) ?? PLAIN;
    if (from !== PLAIN) this.begins.set(line, from);
    this.left.set(stream, after(line.text, from));
  }

  of(line: Printed): Style {
    return this.begins.get(line) ?? PLAIN;
  }
}

/** The text alone. */
export function bare(line: string): string {
  return pieces(line).pieces.map((piece) => piece.text).join('');
}

/** Pieces cut where a search matches, also where a match goes over several of them. */
export function marked(all: readonly Piece[], wanted: string): (Piece & { hit: boolean })[] {
  if (wanted === '') return all.map((piece) => ({ ...piece, hit: false }));
  const lower = all.map((piece) => piece.text).join('').toLowerCase();
  const hits: [number, number][] = [];
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) hits.push([at, at + wanted.length]);
  const parts: (Piece & { hit: boolean })[] = [];
  let begins = 0;
  for (const { text, style } of all) {
    const ends = begins + text.length;
    let at = begins;
    for (const [from, to] of hits) {
      if (to <= at || from >= ends) continue;
      if (from > at) parts.push({ text: text.slice(at - begins, from - begins), style, hit: false });
      const until = Math.min(to, ends);
      parts.push({ text: text.slice(Math.max(from, at) - begins, until - begins), style, hit: true });
      at = until;
    }
    if (at < ends) parts.push({ text: text.slice(at - begins), style, hit: false });
    begins = ends;
  }
  return parts;
}

/** The sixteen colours as terminals have them, to which others are brought. */
const SIXTEEN: readonly (readonly [number, number, number])[] = [
  [0, 0, 0], [205, 0, 0], [0, 205, 0], [205, 205, 0], [0, 0, 238], [205, 0, 205], [0, 205, 205], [229, 229, 229],
  [127, 127, 127], [255, 0, 0], [0, 255, 0], [255, 255, 0], [92, 92, 255], [255, 0, 255], [0, 255, 255], [255, 255, 255],
];
const CUBE = [0, 95, 135, 175, 215, 255];

/** The nearest of the sixteen: grey for grey, a hue for a hue, however pale or dark it is. */
export function nearest(red: number, green: number, blue: number): number {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  const grey = most - least < 30;
  let best = 7;
  let off = Infinity;
  for (const [index, one] of SIXTEEN.entries()) {
    const isGrey = one[0] === one[1] && one[1] === one[2];
    if (isGrey !== grey) continue;
    // Of a hue only which it is counts: made as strong and as bright as can be on both sides.
    const scale = (value: number, low: number, high: number) => (grey ? value : ((value - low) / Math.max(1, high - low)) * 255);
    const [oneMost, oneLeast] = [Math.max(...one), Math.min(...one)];
    const given = [red, green, blue].map((value) => scale(value, least, most));
    const far = one.reduce((sum, value, at) => sum + (scale(value, oneLeast, oneMost) - (given[at] ?? 0)) ** 2, 0) + (grey ? 0 : Math.abs(oneMost - most) / 1000);
    if (far < off) [best, off] = [index, far];
  }
  return best;
}

/** A number of the 256 as one of the sixteen; nothing of what is no such number. */
function of256(number: number | undefined): number | undefined {
  if (number === undefined || !(number >= 0 && number <= 255)) return undefined;
  if (number < 16) return number;
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return nearest(grey, grey, grey);
  }
  const at = number - 16;
  return nearest(CUBE[Math.floor(at / 36)] ?? 0, CUBE[Math.floor(at / 6) % 6] ?? 0, CUBE[at % 6] ?? 0);
}

function styled(style: Style, codes: string): Style {
  // With colons the numbers of one colour are one parameter, which may name a colour space first.
  const numbers = codes
    .split(';')
    .flatMap((code) => (/^[34]8:2:[^:]*:[^:]*:[^:]*:/.test(code) ? code.replace(/:2:[^:]*:/, ':2:') : code).split(':'))
    .map((code) => (code === '' ? 0 : Number(code)));
  let next = { ...style };
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underlined = true;
    else if (code === 22) next.bold = next.faint = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underlined = false;
    else if (code >= 30 && code <= 37) next.colour = code - 30;
    else if (code >= 90 && code <= 97) next.colour = code - 90 + 8;
    else if (code === 39) next.colour = undefined;
    else if (code >= 40 && code <= 47) next.ground = code - 40;
    else if (code >= 100 && code <= 107) next.ground = code - 100 + 8;
    else if (code === 49) next.ground = undefined;
    else if (code === 38 || code === 48) {
      const [kind, first, second, third] = numbers.slice(at + 1, at + 5);
      const full = [first, second, third].every((part) => part !== undefined && part >= 0 && part <= 255);
      const colour = kind === 5 ? of256(first) : kind === 2 && full ? nearest(first ?? 0, second ?? 0, third ?? 0) : undefined;
      if (colour !== undefined) next[code === 38 ? 'colour' : 'ground'] = colour;
      at += kind === 5 ? 2 : kind === 2 ? 4 : 1;
    }
  }
  return next;
}

function classes(style: Style): string {
  const names: string[] = [];
  if (style.colour !== undefined) names.push(`fg-${style.colour % 8}`);
  if (style.ground !== undefined) names.push(`bg-${style.ground % 8}`);
  if (style.bold || (style.colour ?? 0) >= 8) names.push('bold');
  if (style.faint) names.push('faint');
  if (style.italic) names.push('italic');
  if (style.underlined) names.push('underlined');
  return names.join(' ');
}
