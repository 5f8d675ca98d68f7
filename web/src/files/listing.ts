/**
 * What lies directly in a folder, out of a list of paths that knows no folders. A subfolder that
 * runs over the end of a page is skipped at once, so that a folder of a million files costs one
 * request and not a thousand.
 */
export interface Listed {
  path: string;
  bytes: number;
  /** When it last changed, where that is told. */
  changed?: string;
}

export interface FolderLine {
  /** The subfolder's own name. */
  name: string;
  /** Its files and bytes, where all of them were seen. */
  files: number | undefined;
  bytes: number | undefined;
  /** When the newest of them changed, where all of them were seen. */
  changed?: string | undefined;
}

export interface Folder<T extends Listed> {
  folders: FolderLine[];
  files: T[];
  /** Whether there is more than what was asked for. */
  more: boolean;
}

export type LoadPage<T> = (cursor: string | undefined) => Promise<{ items: T[]; next?: string | null | undefined }>;

/** Greater than every path that begins with `folder/`. */
const LAST = '\u{10ffff}';

/** Lists a folder: `prefix` is empty or ends with a slash. */
export async function listFolder<T extends Listed>(load: LoadPage<T>, prefix: string, most = 5000): Promise<Folder<T>> {
  const folders = new Map<string, FolderLine>();
  const files: T[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await load(cursor);
    let within: FolderLine | undefined;
    for (const item of page.items) {
      const rest = item.path.slice(prefix.length);
      const slash = rest.indexOf('/');
      if (slash < 0) {
        files.push(item);
        within = undefined;
        continue;
      }
      const name = rest.slice(0, slash);
      within = folders.get(name) ?? { name, files: 0, bytes: 0 };
      folders.set(name, within);
      if (within.files !== undefined && within.bytes !== undefined) {
        within.files += 1;
        within.bytes += item.bytes;
        if (item.changed !== undefined && item.changed > (within.changed ?? '')) within.changed = item.changed;
      }
    }
    if (!page.next) return { folders: [...folders.values()], files, more: false };
    if (folders.size + files.length >= most) return { folders: [...folders.values()], files, more: true };
    if (within) {
      within.files = undefined;
      within.bytes = undefined;
      within.changed = undefined;
      cursor = `${prefix}${within.name}/${LAST}`;
    } else cursor = page.next;
  }
}

/** The folders on the way to one: `a/b/` gives `a/` and `a/b/`. */
export function crumbs(prefix: string): { name: string; prefix: string }[] {
  const parts = prefix.split('/').filter((part) => part !== '');
  return parts.map((name, index) => ({ name, prefix: `${parts.slice(0, index + 1).join('/')}/` }));
}
