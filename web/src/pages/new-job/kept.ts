/**
 * What was written of a new job and not handed in: it outlives the page, in this tab and for this
 * account. Values of variables that look like credentials are left out.
 */
import { BLANK, type Draft } from './draft';

export interface Kept {
  draft: Draft;
  /** When it was last written on, in milliseconds. */
  at: number;
  /** Variables whose values were left out. */
  withheld: string[];
}

/** As the command line knows a credential (`looks_like_one`): by its name, or by a password in an address. */
const ENDS = /(TOKENS?|PASSWORD|PASSWD|PASSPHRASE|SECRETS?|CREDENTIALS?|KEY|_PASS|_PAT|_PWD|_AUTH)$/i;
const LOGIN = /:\/\/[^/?# ]*:[^/?# ]+@/;

export function looksSecret(name: string, value: string): boolean {
  return ENDS.test(name) || LOGIN.test(value);
}

export function written(draft: Draft, at: number): string {
  const withheld = Object.keys(draft.env).filter((name) => looksSecret(name, draft.env[name] ?? ''));
  const env = { ...draft.env, ...Object.fromEntries(withheld.map((name) => [name, ''])) };
  return JSON.stringify({ draft: { ...draft, env }, at, withheld } satisfies Kept);
}

/** What was kept; nothing where it is not as this page would have written it. */
export function read(text: string | null): Kept | undefined {
  try {
    const { draft, at, withheld } = JSON.parse(text ?? '') as Kept;
    const sort = (value: unknown) => (Array.isArray(value) ? 'list' : typeof value);
    const alike = Object.entries(BLANK).every(([field, blank]) => sort(draft[field as keyof Draft]) === sort(blank) || (field === 'promise' && draft.promise === null));
    return alike && Number.isFinite(at) && Array.isArray(withheld) ? { draft, at, withheld } : undefined;
  } catch {
    return undefined;
  }
}

const key = (user: string) => `era.new-job.${user}`;

/** The one draft of an account in this tab. Where nothing can be stored, nothing is kept. */
export function keeper(user: string) {
  const attempt = <T>(deed: () => T): T | undefined => {
    try {
      return deed();
    } catch {
      return undefined;
    }
  };
  return {
    read: () => attempt(() => read(sessionStorage.getItem(key(user)))),
    keep: (draft: Draft) => attempt(() => sessionStorage.setItem(key(user), written(draft, Date.now()))),
    drop: () => attempt(() => sessionStorage.removeItem(key(user))),
  };
}
