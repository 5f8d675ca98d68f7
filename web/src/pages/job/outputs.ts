/** Files by path as folders that can be walked through, and their addresses. */
export interface OutputFile {
  path: string;
  bytes: number;
  changed: string;
}

export interface Entry {
  name: string;
  folder: boolean;
  /** Of a folder, all of it. */
  bytes: number;
  /** Of a folder, the newest. */
  changed: string;
}

/** What lies directly in a folder (`''`, or a path with a slash at its end): folders first. */
export function inFolder(files: readonly OutputFile[], folder: string): Entry[] {
  const entries = new Map<string, Entry>();
  for (const file of files) {
    if (!file.path.startsWith(folder)) continue;
    const rest = file.path.slice(folder.length);
    const slash = rest.indexOf('/');
    const name = slash < 0 ? rest : rest.slice(0, slash);
    const known = entries.get(`${slash >= 0} ${name}`);
    if (known) {
      known.bytes += file.bytes;
      if (file.changed > known.changed) known.changed = file.changed;
    } else entries.set(`${slash >= 0} ${name}`, { name, folder: slash >= 0, bytes: file.bytes, changed: file.changed });
  }
  return [...entries.values()].sort((a, b) => Number(b.folder) - Number(a.folder) || (a.name < b.name ? -1 : 1));
}

/** Each part of the path by itself: a name may have any letter but a slash. */
export function outputAddress(job: number, path: string): string {
  return `/api/v1/jobs/${job}/outputs/${path.split('/').map(encodeURIComponent).join('/')}`;
}
