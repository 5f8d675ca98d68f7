/**
 * What was on its way when the page was closed. The bytes that arrived are kept by the server, by
 * their hash; this only remembers that they are there, so that the reader is told to go on.
 */
export interface Interrupted {
  owner: string;
  name: string;
  files: number;
  bytes: number;
  sent: number;
  /** One of the paths, by which the reader knows them. */
  path: string;
}

const KEY = 'era.uploads';
const KEPT_MAX = 20;

/** Out of whatever is stored, only what makes sense. */
export function readInterrupted(text: string | null): Interrupted[] {
  try {
    const read: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(read) ? read.filter(sensible).slice(0, KEPT_MAX) : [];
  } catch {
    return [];
  }
}

function sensible(one: unknown): one is Interrupted {
  if (typeof one !== 'object' || one === null) return false;
  const given = one as Record<string, unknown>;
  const words = ['owner', 'name', 'path'].every((key) => typeof given[key] === 'string');
  return words && ['files', 'bytes', 'sent'].every((key) => typeof given[key] === 'number' && Number.isFinite(given[key]));
}

/** Takes the place of what is known of the same set. */
export function noted(all: readonly Interrupted[], one: Interrupted): Interrupted[] {
  return [one, ...forgotten(all, one.owner, one.name)].slice(0, KEPT_MAX);
}

export function forgotten(all: readonly Interrupted[], owner: string, name: string): Interrupted[] {
  return all.filter((known) => known.owner !== owner || known.name !== name);
}

export function loadInterrupted(): Interrupted[] {
  try {
    return readInterrupted(localStorage.getItem(KEY));
  } catch {
    return [];
  }
}

export function storeInterrupted(all: readonly Interrupted[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // Then nobody is reminded; what was sent is on the server all the same.
  }
}
