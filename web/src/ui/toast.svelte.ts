/** Short news at the edge of the page: what was done, what failed, and a way to undo it. */
import { problemText } from '../text/server';
import { asProblem } from '../api/problem';

export interface Toast {
  id: number;
  tone: 'good' | 'bad' | 'info';
  text: string;
  action?: { text: string; run: () => void };
}

const STAY_MS = 6000;
let last = 0;

class Toasts {
  all = $state<Toast[]>([]);

  add(toast: Omit<Toast, 'id'>): void {
    last += 1;
    const id = last;
    this.all = [...this.all.slice(-3), { ...toast, id }];
    // What failed stays until it was read.
    if (toast.tone !== 'bad') setTimeout(() => this.drop(id), STAY_MS);
  }

  drop(id: number): void {
    this.all = this.all.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
export const told = (text: string, action?: Toast['action']) => toasts.add({ tone: 'good', text, ...(action && { action }) });
export const failed = (thrown: unknown) => toasts.add({ tone: 'bad', text: problemText(asProblem(thrown)) });

/** Does something, and tells what came of it. Says whether it was done. */
export async function tell(done: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    told(done);
    return true;
  } catch (thrown) {
    failed(thrown);
    return false;
  }
}
