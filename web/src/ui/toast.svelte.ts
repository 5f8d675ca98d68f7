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
/** What can be undone stays long enough to be read, thought about and reached by keyboard. */
const ACTION_MS = 20_000;
/** What goes under the pointer that just left it could not be read. */
const LEAST_MS = 1500;
let last = 0;

export class Toasts {
  all = $state<Toast[]>([]);
  /** When each may go, and what is left to it while time stands still. */
  private readonly clocks = new Map<number, { timer?: ReturnType<typeof setTimeout>; ends: number; left: number }>();
  private held = false;

  add(toast: Omit<Toast, 'id'>): void {
    last += 1;
    const id = last;
    this.all = [...this.all.slice(-3), { ...toast, id }];
    // What failed stays until it was read.
    if (toast.tone === 'bad') return;
    this.clocks.set(id, { ends: 0, left: toast.action ? ACTION_MS : STAY_MS });
    if (!this.held) this.start(id);
  }

  /** While somebody points at them or is among them by keyboard, none goes. */
  hold(): void {
    if (this.held) return;
    this.held = true;
    for (const clock of this.clocks.values()) {
      clearTimeout(clock.timer);
      clock.left = Math.max(0, clock.ends - Date.now());
    }
  }

  release(): void {
    if (!this.held) return;
    this.held = false;
    for (const id of this.clocks.keys()) this.start(id);
  }

  private start(id: number): void {
    const clock = this.clocks.get(id);
    if (!clock) return;
    const left = Math.max(LEAST_MS, clock.left);
    clock.ends = Date.now() + left;
    clock.timer = setTimeout(() => this.drop(id), left);
  }

  drop(id: number): void {
    clearTimeout(this.clocks.get(id)?.timer);
    this.clocks.delete(id);
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
