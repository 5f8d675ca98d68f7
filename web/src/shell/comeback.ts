/**
 * What happens where the files of a page do not come, because the server is away or another version
 * of it has other files. A document never asks again for a module or a style sheet that failed, so
 * once the server answers, the document is loaded anew: its address says which page is wanted.
 */
const KEY = 'era.reloaded-for';
const PROBE_MS = 2000;

/** What this needs of a browser. */
export interface Surroundings {
  kept: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  answers: () => Promise<boolean>;
  pause: () => Promise<void>;
  reload: () => void;
}

const browser: Surroundings = {
  kept: {
    getItem: (key) => sessionStorage.getItem(key),
    setItem: (key, value) => sessionStorage.setItem(key, value),
    removeItem: (key) => sessionStorage.removeItem(key),
  },
  answers: () => fetch('/', { method: 'HEAD', cache: 'no-store' }).then(({ ok }) => ok, () => false),
  pause: () => new Promise((next) => setTimeout(next, PROBE_MS)),
  reload: () => location.reload(),
};

export class Comeback {
  constructor(private readonly around: Surroundings = browser) {}

  /** A page came: the next one that fails is worth another document. */
  arrived(): void {
    this.around.kept.removeItem(KEY);
  }

  /** Whether a new document may help: not where it failed in a new one already. */
  mayHelp(path: string): boolean {
    return this.around.kept.getItem(KEY) !== path;
  }

  /** Loads the document anew once the server answers, unless the returned function was called. */
  await(path: string): () => void {
    let given = true;
    const wait = async () => {
      while (given && !(await this.around.answers())) await this.around.pause();
      if (given) this.reload(path);
    };
    void wait();
    return () => {
      given = false;
    };
  }

  /** Loads the document anew now, if the server answers. */
  async now(path: string): Promise<void> {
    if (await this.around.answers()) this.reload(path);
  }

  private reload(path: string): void {
    this.around.kept.setItem(KEY, path);
    this.around.reload();
  }
}
