/**
 * What the server says of a draft, a moment after the last change and the older question dropped:
 * what is wrong with it and what it leaves open, and beside that its price, where it asks for a
 * promise. Asked once more without a word when others booked. The flexibility menu is asked without
 * deadline and value, because it shows what others would give.
 */
import { api, call } from '../../api/client';
import { asProblem, type ProblemError } from '../../api/problem';
import type { JobChecked, MenuLine, NewJob, Quote, QuoteAsk, Quoted } from '../../api/types';
import { quoteAskOf } from './draft';

/** Keystrokes come in bursts; what is asked after them must be there within 100 ms. */
const PAUSE_MS = 40;

/** What an answer is, or why there is none. */
const settled = <T>(answer: Promise<T>): Promise<{ value?: T; problem?: ProblemError }> =>
  answer.then(
    (value) => ({ value }),
    (thrown: unknown) => ({ problem: asProblem(thrown) }),
  );

export class Quoting {
  checked = $state.raw<JobChecked | undefined>();
  /** Why the draft could not be checked. */
  unchecked = $state.raw<ProblemError | undefined>();
  quote = $state.raw<Quote | undefined>();
  /** What the wallet holds, where the price or the value is more. */
  wallet = $state.raw<string | undefined>();
  menu = $state.raw<MenuLine[]>([]);
  refusal = $state.raw<ProblemError | undefined>();
  /** Whether a price is on its way. */
  asking = $state(false);
  /** From the last change to the answer, in milliseconds. */
  took = $state(0);
  /** While a price is held, what is shown is what was held, whatever others do. */
  private still = false;

  private timer: ReturnType<typeof setTimeout> | undefined;
  private current: AbortController | undefined;
  private job: NewJob | undefined;
  private question: QuoteAsk | undefined;
  private questionKey = '';
  /** What the menu is of; nothing where it has to be asked for in any case. */
  private menuKey = '';

  /** Asks soon. `priced`: whether it asks for a promise. The price of what has the same one stays. */
  ask(job: NewJob, priced: boolean): void {
    clearTimeout(this.timer);
    this.current?.abort();
    this.job = job;
    this.question = priced ? quoteAskOf(job) : undefined;
    const key = JSON.stringify(this.question ?? '');
    const fresh = key !== this.questionKey || this.asking;
    this.questionKey = key;
    if (!this.question) {
      this.quote = undefined;
      this.refusal = undefined;
    }
    this.asking = fresh && this.question !== undefined;
    const changed = performance.now();
    this.timer = setTimeout(() => void this.send(this.asking, changed), PAUSE_MS);
  }

  /** Asks the same again: what others booked may have changed the answer, and the menu. */
  again(): void {
    // An answer that is on its way is new enough, and the reader's question comes first.
    if (!this.job || this.asking || this.still) return;
    this.current?.abort();
    this.menuKey = '';
    void this.send(this.question !== undefined);
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
    void this.send(false);
    if (this.current) void this.askMenu(this.question, this.current.signal, hold);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.current?.abort();
  }

  /** Both answers are shown at once: a price beside what is wrong with another draft would mislead. */
  private async send(priced: boolean, changed?: number): Promise<void> {
    const { job, question } = this;
    if (!job) return;
    const controller = new AbortController();
    this.current = controller;
    const { signal } = controller;
    const priceOf = (body: QuoteAsk): Promise<Quoted> => call(api.POST('/api/v1/quotes', { body, signal }));
    const pricing = priced && question ? settled(priceOf(question)) : undefined;
    if (priced && question) void this.askMenu(question, signal);
    const checked = await settled(call(api.POST('/api/v1/jobs/check', { body: job, signal })));
    const quoted = await pricing;
    if (signal.aborted) return;
    this.checked = checked.value ?? this.checked;
    this.unchecked = checked.problem;
    if (!quoted) return;
    this.quote = quoted.value?.quote;
    this.wallet = quoted.value?.wallet ?? undefined;
    this.refusal = quoted.problem;
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
