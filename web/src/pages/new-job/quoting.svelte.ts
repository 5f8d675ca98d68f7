/**
 * The live quote of a draft: asked anew a moment after the last change, the older question dropped,
 * and once more without a word when others booked. The flexibility menu is asked without deadline
 * and value, because it shows what others would give.
 */
import { api, call } from '../../api/client';
import { asProblem, type ProblemError } from '../../api/problem';
import type { MenuLine, Quote, QuoteAsk } from '../../api/types';

/** Keystrokes come in bursts; what is asked after them must be there within 100 ms. */
const PAUSE_MS = 40;

export class Quoting {
  quote = $state.raw<Quote | undefined>();
  /** What the wallet holds, where the price or the value is more. */
  wallet = $state.raw<string | undefined>();
  menu = $state.raw<MenuLine[]>([]);
  refusal = $state.raw<ProblemError | undefined>();
  asking = $state(false);
  /** From the last change to the answer, in milliseconds. */
  took = $state(0);
  /** While a price is held, what is shown is what was held, whatever others do. */
  private still = false;

  private timer: ReturnType<typeof setTimeout> | undefined;
  private current: AbortController | undefined;
  private question: QuoteAsk | undefined;
  /** What the menu is of; nothing where it has to be asked for in any case. */
  private menuKey = '';

  /** Asks soon; nothing where the draft cannot be priced. */
  ask(question: QuoteAsk | undefined): void {
    clearTimeout(this.timer);
    this.current?.abort();
    this.question = question;
    if (!question) {
      this.quote = undefined;
      this.refusal = undefined;
      this.asking = false;
      return;
    }
    this.asking = true;
    const changed = performance.now();
    this.timer = setTimeout(() => void this.send(question, changed), PAUSE_MS);
  }

  /** Asks the same again: what others booked may have changed the answer, and the menu. */
  again(): void {
    // An answer that is on its way is new enough, and the reader's question comes first.
    if (!this.question || this.asking || this.still) return;
    this.current?.abort();
    this.menuKey = '';
    void this.send(this.question);
  }

  /** Leaves what is shown as it is. */
  pause(): void {
    clearTimeout(this.timer);
    this.current?.abort();
    this.asking = false;
    this.still = true;
  }

  /** What is held is shown, and beside it what other deadlines would cost without it; else what there is now. */
  keep(hold: number | undefined): void {
    if (hold === undefined) {
      this.still = false;
      return this.again();
    }
    this.pause();
    if (!this.question) return;
    this.current = new AbortController();
    void this.askMenu(this.question, this.current.signal, hold);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.current?.abort();
  }

  private async send(question: QuoteAsk, changed?: number): Promise<void> {
    const controller = new AbortController();
    this.current = controller;
    const { signal } = controller;
    void this.askMenu(question, signal);
    try {
      const answer = await call(api.POST('/api/v1/quotes', { body: question, signal }));
      if (signal.aborted) return;
      this.quote = answer.quote;
      this.wallet = answer.wallet ?? undefined;
      this.refusal = undefined;
    } catch (thrown) {
      if (signal.aborted) return;
      this.quote = undefined;
      this.refusal = asProblem(thrown);
    }
    if (changed !== undefined) this.took = performance.now() - changed;
    this.asking = false;
  }

  private async askMenu(question: QuoteAsk, signal: AbortSignal, hold?: number): Promise<void> {
    const { deadline: _, ...open } = question.ask ?? { resources: {}, duration_s: 0 };
    const without = hold === undefined ? {} : { instead_of: hold };
    const key = JSON.stringify({ ...open, ...without });
    if (key === this.menuKey) return;
    try {
      const answer = await call(api.POST('/api/v1/quotes', { body: { ask: open, menu: true, ...without }, signal }));
      if (signal.aborted) return;
      this.menu = answer.menu ?? [];
      this.menuKey = key;
    } catch {
      if (signal.aborted) return;
      // The quote itself says what is wrong. Whoever comes back to what was asked before asks again.
      this.menu = [];
      this.menuKey = '';
    }
  }
}
