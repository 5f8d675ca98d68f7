/** Files out of a dropped or chosen folder, with their paths within it. */
export interface Found {
  path: string;
  file: File;
}

/** What no job needs, by the name of a folder. */
const SKIPPED = new Set(['.git', '.hg', 'node_modules', '__pycache__', '.venv', 'venv', '.ipynb_checkpoints', '.idea', '.vscode', 'target']);
export const FILES_MAX = 10_000;
export const BYTES_MAX = 512 * 1024 * 1024;

/** The file that marks a folder as one that the platform keeps for itself, whatever it is called: nothing of it is ever sent. */
const OWN = '.era-folder';

/** Whether a path belongs to the code. */
export function belongs(path: string): boolean {
  return path !== '' && !path.split('/').some((part) => SKIPPED.has(part) || part === '' || part === '.' || part === '..');
}

/** Too much to be code; which limit it breaks. */
export function tooMuch(found: readonly Found[]): 'files' | 'bytes' | undefined {
  if (found.length > FILES_MAX) return 'files';
  return found.reduce((sum, { file }) => sum + file.size, 0) > BYTES_MAX ? 'bytes' : undefined;
}

/** Whether a path can be kept at all: of data nothing else is left out. */
export function keepable(path: string): boolean {
  return path !== '' && !path.split('/').some((part) => part === '' || part === '.' || part === '..');
}

/** Of `<input type="file" webkitdirectory>`: the folder's own name is no part of the paths. */
export function fromList(list: FileList, wanted = belongs): Found[] {
  const all = Array.from(list, (file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file }));
  const own = all.filter(({ file }) => file.name === OWN).map(({ path }) => path.slice(0, -OWN.length));
  return all.filter(({ path }) => wanted(path) && !own.some((folder) => path.startsWith(folder)));
}

/** Of what was dropped: one folder's content, or files and folders side by side. */
export async function fromDrop(items: DataTransferItemList, wanted = belongs, most = FILES_MAX): Promise<Found[]> {
  // All of them before the first wait: the list is gone afterwards.
  const given = Array.from(items).filter((item) => item.kind === 'file');
  const entries = given.map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  // What some programs drag is a file without a place in any file system.
  const loose = given.filter((item) => item.webkitGetAsEntry() === null).map((item) => item.getAsFile());
  const only = entries.length === 1 ? entries[0] : undefined;
  const found = loose.flatMap((file): Found[] => (file && wanted(file.name) ? [{ path: file.name, file }] : []));
  if (only?.isDirectory) await gather(await children(only as FileSystemDirectoryEntry), '', found, wanted, most);
  else await gather(entries, '', found, wanted, most);
  return found;
}

async function gather(entries: readonly FileSystemEntry[], within: string, found: Found[], wanted: typeof belongs, most: number): Promise<void> {
  if (entries.some(({ isFile, name }) => isFile && name === OWN)) return;
  for (const entry of entries) {
    const path = within + entry.name;
    if (!wanted(path) || found.length > most) continue;
    if (entry.isDirectory) await gather(await children(entry as FileSystemDirectoryEntry), `${path}/`, found, wanted, most);
    else found.push({ path, file: await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)) });
  }
}

/** A reader gives a hundred entries at a time, and none at the end. */
async function children(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}
