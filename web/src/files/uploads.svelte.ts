/** Every upload of this page. They go on while the reader looks at something else. */
import { Batch } from './batch.svelte';
import type { Found } from './folder';
import { forgotten, loadInterrupted, noted, storeInterrupted, type Interrupted } from './interrupted';

/** How often it is written down how far uploads are. */
const NOTED_EVERY_MS = 2000;

class Uploads {
  batches = $state.raw<Batch[]>([]);
  interrupted = $state.raw<Interrupted[]>(loadInterrupted());
  private last = 0;

  constructor() {
    addEventListener('beforeunload', (event) => {
      if (this.batches.some((batch) => batch.running)) event.preventDefault();
    });
  }

  /** Sends files into a set; settles when they are there, paused or given up. */
  async add(owner: string, name: string, found: readonly Found[]): Promise<Batch> {
    this.last += 1;
    const batch = new Batch(this.last, owner, name, found);
    this.batches = [...this.batches, batch];
    this.forget(owner, name);
    const timer = setInterval(() => this.note(batch), NOTED_EVERY_MS);
    this.note(batch);
    batch.whenDone = () => {
      clearInterval(timer);
      this.forget(owner, name);
    };
    await batch.start();
    return batch;
  }

  of(owner: string, name: string): Batch[] {
    return this.batches.filter((batch) => batch.owner === owner && batch.name === name);
  }

  interruptedOf(owner: string, name: string): Interrupted | undefined {
    if (this.of(owner, name).some((batch) => !batch.done)) return undefined;
    return this.interrupted.find((one) => one.owner === owner && one.name === name);
  }

  /** Gives an upload up, or clears away one that is over. */
  drop(batch: Batch): void {
    batch.pause();
    this.batches = this.batches.filter((one) => one !== batch);
    this.forget(batch.owner, batch.name);
  }

  forget(owner: string, name: string): void {
    this.interrupted = forgotten(this.interrupted, owner, name);
    storeInterrupted(this.interrupted);
  }

  private note(batch: Batch): void {
    if (batch.done || !this.batches.includes(batch)) return;
    const { owner, name, bytes, sent } = batch;
    this.interrupted = noted(this.interrupted, { owner, name, files: batch.items.length, bytes, sent, path: batch.items[0]?.path ?? '' });
    storeInterrupted(this.interrupted);
  }
}

export const uploads = new Uploads();
