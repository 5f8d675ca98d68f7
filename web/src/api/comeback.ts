/**
 * What happens where the files of a page, or of a part of it, do not come, because the server is away
 * or another version of it has other files. A document never asks again for a module or a style sheet
 * that failed, so once the server answers, the document is loaded anew: its address says which page is
 * wanted. Not while the reader types or a dialog is open, which would be lost with the document.
 */
const KEY = 'era.reloaded-for';
const PROBE_MS = 2000;

/** Each by itself: where two cannot be had, neither asks for a document on account of the other. */
const keyOf = (name: string) => `${KEY}:${name}`;

/** What this needs of a browser. */
export interface Surroundings {
  kept: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  answers: () => Promise<boolean>;
  /** Whether the reader is at something that a new document would end. */
  busy: () => boolean;
  pause: () => Promise<void>;
  reload: () => void;
}

const WRITTEN_IN = 'textarea, select, [contenteditable], input:not([type=range], [type=checkbox], [type=radio])';

const browser: Surroundings = {
  kept: {
    getItem: (key) => sessionStorage.getItem(key),
    setItem: (key, value) => sessionStorage.setItem(key, value),
    removeItem: (key) => sessionStorage.removeItem(key),
  },
  answers: () => fetch('/', { method: 'HEAD', cache: 'no-store' }).then(({ ok }) => ok, () => false),
  busy: () => document.querySelector('dialog[open]') !== null || document.activeElement?.matches(WRITTEN_IN) === true,
  pause: () => new Promise((next) => setTimeout(next, PROBE_MS)),
  reload: () => location.reload(),
};

export class Comeback {
  constructor(private readonly around: Surroundings = browser) {}

  /** It came: when it fails the next time, that is worth another document. */
  arrived(name: string): void {
    this.around.kept.removeItem(keyOf(name));
  }

  /** Whether a new document may help: not where it failed in a new one already. */
  mayHelp(name: string): boolean {
    return this.around.kept.getItem(keyOf(name)) === null;
  }

  /** Loads the document anew once the server answers, unless the returned function was called. */
  await(name: string): () => void {
    let given = true;
    const wait = async () => {
      while (given && (this.around.busy() || !(await this.around.answers()))) await this.around.pause();
      if (given) this.reload(name);
    };
    void wait();
    return () => {
      given = false;
    };
  }

  /** Loads the document anew now, if the server answers. */
  async now(name: string): Promise<void> {
    if (await this.around.answers()) this.reload(name);
  }

  private reload(name: string): void {
    this.around.kept.setItem(keyOf(name), '');
    this.around.reload();
  }
}
