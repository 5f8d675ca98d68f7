/** What a file is shown as, out of its name and its first bytes. Nothing of it is ever run. */
export type Kind = 'image' | 'csv' | 'json' | 'text' | 'binary';

const IMAGES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  bmp: 'image/bmp',
  ico: 'image/x-icon',
  // As an image a drawing has neither scripts nor a network.
  svg: 'image/svg+xml',
};

/** The type of an image by its name; nothing of what is none. */
export function imageType(path: string): string | undefined {
  return IMAGES[ending(path)];
}

function ending(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const dot = name.lastIndexOf('.');
  return dot > 0 ? name.slice(dot + 1) : '';
}

/** The text of the first bytes, or nothing where they are no text. */
export function textOf(bytes: Uint8Array, whole: boolean): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    // A letter may be cut at the end of a part: `stream` leaves such a rest out.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !whole });
  } catch {
    return undefined;
  }
}

export function kindOf(path: string, text: string | undefined): Kind {
  if (imageType(path)) return 'image';
  if (text === undefined) return 'binary';
  const name = ending(path);
  if (name === 'csv' || name === 'tsv') return 'csv';
  if (name === 'json' || name === 'geojson' || name === 'ipynb') return 'json';
  return 'text';
}

/** JSON with lines and indents; as it is where it is none, or only a part of one. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The first rows of a table of values between commas or tabs, with quotes as RFC 4180 has them. */
export function csvHead(text: string, separator: ',' | '\t' | ';', most: number, whole: boolean): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
    cell = '';
  };
  let at = 0;
  for (; at < text.length && rows.length < most; at += 1) {
    const letter = text[at];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (letter === '"' && cell === '') quoted = true;
    else if (letter === separator) {
      row.push(cell);
      cell = '';
    } else if (letter === '\n') endRow();
    else if (letter !== '\r') cell += letter;
  }
  // The last line of a part may be cut, and would show what is not there.
  if (rows.length < most && whole && (cell !== '' || row.length > 0)) endRow();
  return rows;
}

/** What stands between the values, by the first line. */
export function separatorOf(path: string, text: string): ',' | '\t' | ';' {
  if (ending(path) === 'tsv') return '\t';
  const line = text.slice(0, text.indexOf('\n') < 0 ? undefined : text.indexOf('\n'));
  const count = (letter: string) => line.split(letter).length;
  if (count('\t') > count(',') && count('\t') >= count(';')) return '\t';
  return count(';') > count(',') ? ';' : ',';
}

/** Bytes as hexadecimal digits and letters, sixteen a line. */
export function hexLines(bytes: Uint8Array, most = 32): string[] {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length && lines.length < most; at += 16) {
    const part = Array.from(bytes.slice(at, at + 16));
    const digits = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${digits.padEnd(47)}  ${letters}`);
  }
  return lines;
}
