/** A table as a file that spreadsheets read, and the way to hand out a text as a download. */
export type Cell = string | number | undefined;

/** Rows between commas as RFC 4180 has them; no cell of it can be taken for a formula. */
export function csvText(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(written).join(',')}\r\n`).join('');
}

function written(cell: Cell): string {
  if (cell === undefined) return '';
  if (typeof cell === 'number') return String(cell);
  // Names are strangers' choices, and a spreadsheet would compute what begins like this.
  const safe = /^[=+\-@\t\r]/.test(cell) && !/^-?\d+(\.\d+)?$/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Hands a text to the reader as a file. */
export function download(name: string, text: string, type = 'text/csv;charset=utf-8'): void {
  // With a mark at its beginning spreadsheets read letters beyond ASCII as what they are.
  const url = URL.createObjectURL(new Blob(type.startsWith('text/csv') ? ['\u{feff}', text] : [text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
