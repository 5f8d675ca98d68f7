/**
 * Files that go into one data set together: hashed, sent piece by piece, then named in the set.
 * It pauses, goes on where it stopped, tries again by itself after a cut, and says what failed.
 */
import { SvelteSet } from 'svelte/reactivity';
import { api, call } from '../api/client';
import { retryAfterMs } from '../api/live.svelte';
import { asProblem, type ProblemError } from '../api/problem';
import type { Found } from './folder';
import { hashBeside } from './hash-beside';
import { passes, sendContent } from './resumable';

export type ItemState = 'waiting' | 'reading' | 'sending' | 'again' | 'sent' | 'kept' | 'failed';

/** Tries of one file before it is left to the reader. */
const TRIES_MAX = 6;
/** Files at a time: the line is kept busy while another is being read. */
const AT_ONCE = 2;
/** Most files that are named in one request. */
const NAMED_MAX = 2000;

export class UploadItem {
  state = $state<ItemState>('waiting');
  /** Bytes that the server has. */
  sent = $state(0);
  problem = $state.raw<ProblemError | undefined>(undefined);
  hash: string | undefined;

  constructor(
    readonly path: string,
    readonly file: File,
  ) {}
}

export class Batch {
  readonly items: readonly UploadItem[];
  readonly bytes: number;
  paused = $state(false);
  running = $state(false);
  /** Named in the set, all of them. */
  done = $state(false);
  /** Why what was sent could not be named in the set. */
  problem = $state.raw<ProblemError | undefined>(undefined);
  sent = $derived.by(() => this.items.reduce((sum, item) => sum + item.sent, 0));
  failed = $derived.by(() => this.items.filter((item) => item.state === 'failed'));
  kept = $derived.by(() => this.items.filter((item) => item.state === 'kept').length);
  /** Those that something happens to now. */
  readonly moving = new SvelteSet<UploadItem>();
  /** Called once all of it is in the set. */
  whenDone: () => void = () => {};
  private stopping = new AbortController();

  constructor(
    readonly id: number,
    readonly owner: string,
    readonly name: string,
    found: readonly Found[],
  ) {
    this.items = found.map(({ path, file }) => new UploadItem(path, file));
    this.bytes = found.reduce((sum, { file }) => sum + file.size, 0);
  }

  get share(): number {
    if (this.done) return 1;
    return this.bytes === 0 ? this.kept / Math.max(1, this.items.length) : Math.min(1, this.sent / this.bytes);
  }

  /** Begins, or goes on. */
  async start(): Promise<void> {
    if (this.running || this.done) return;
    this.paused = false;
    this.running = true;
    this.problem = undefined;
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    const left = this.items.filter((item) => item.state === 'waiting');
    const worker = async () => {
      for (let item = left.shift(); item && !signal.aborted; item = left.shift()) await this.send(item, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (!signal.aborted) await this.nameThem(signal);
    this.running = false;
  }

  pause(): void {
    this.paused = true;
    this.stopping.abort();
  }

  /** Tries again what failed, and what was not named. */
  retry(): void {
    for (const item of this.failed) {
      item.state = 'waiting';
      item.problem = undefined;
    }
    void this.start();
  }

  private async send(item: UploadItem, signal: AbortSignal): Promise<void> {
    this.moving.add(item);
    try {
      for (let tries = 0; ; tries += 1) {
        try {
          await this.sendOnce(item, signal);
          return;
        } catch (thrown) {
          if (signal.aborted) {
            item.state = 'waiting';
            return;
          }
          const problem = asProblem(thrown);
          item.problem = problem;
          if (!passes(problem) || tries + 1 >= TRIES_MAX) {
            item.state = 'failed';
            // What was refused is not there, however much of it went over the line.
            item.sent = 0;
            return;
          }
          item.state = 'again';
          await waited(problem.retryAfterS ? problem.retryAfterS * 1000 : retryAfterMs(tries, Math.random()), signal);
        }
      }
    } finally {
      this.moving.delete(item);
    }
  }

  private async sendOnce(item: UploadItem, signal: AbortSignal): Promise<void> {
    if (item.hash === undefined) {
      item.state = 'reading';
      item.hash = await hashBeside(item.file, signal);
    }
    item.state = 'sending';
    const { hash } = item;
    const missing = await call(api.POST('/api/v1/blobs/missing', { body: { hashes: [hash] }, signal }));
    if (missing.hashes.length > 0) await sendContent(hash, item.file, (bytes) => (item.sent = bytes), signal);
    item.sent = item.file.size;
    item.problem = undefined;
    item.state = 'sent';
  }

  private async nameThem(signal: AbortSignal): Promise<void> {
    const sent = this.items.filter((item) => item.state === 'sent');
    const path = { owner: this.owner, name: this.name };
    try {
      for (let at = 0; at < sent.length; at += NAMED_MAX) {
        const some = sent.slice(at, at + NAMED_MAX);
        const put = some.map((item) => ({ path: item.path, bytes: item.file.size, hash: item.hash ?? '' }));
        await call(api.PATCH('/api/v1/data/{owner}/{name}/files', { params: { path }, body: { put }, signal }));
        for (const item of some) item.state = 'kept';
      }
      this.done = this.items.every((item) => item.state === 'kept');
      if (this.done) this.whenDone();
    } catch (thrown) {
      if (!signal.aborted) this.problem = asProblem(thrown);
    }
  }
}

function waited(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
