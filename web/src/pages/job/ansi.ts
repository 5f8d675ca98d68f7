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

/** The pieces of a line, and the style that goes on in the next. */
export function pieces(line: string, from: Style = PLAIN): { pieces: Piece[]; style: Style } {
  const found: Piece[] = [];
  let style = from;
  let at = 0;
  const add = (text: string) => {
    if (text !== '') found.push({ text, style: classes(style) });
  };
  // A carriage return draws over what was there, as progress bars do: the last drawing counts.
  const shown = line.slice(line.lastIndexOf('\r', line.length - 2) + 1);
  for (const match of shown.matchAll(SEQUENCE)) {
    add(shown.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === 'm') style = styled(style, match[1] ?? '');
  }
  add(shown.slice(at));
  return { pieces: found, style };
}

/** The text alone. */
export function bare(line: string): string {
  return pieces(line).pieces.map((piece) => piece.text).join('');
}

function styled(style: Style, codes: string): Style {
  const numbers = codes.split(/[;:]/).map((code) => (code === '' ? 0 : Number(code)));
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
      // 256 colours: the first 16 are the same, others are left plain; `2` has three numbers.
      const kind = numbers[at + 1];
      const colour = kind === 5 ? numbers[at + 2] : undefined;
      if (colour !== undefined && colour < 16) next[code === 38 ? 'colour' : 'ground'] = colour;
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
