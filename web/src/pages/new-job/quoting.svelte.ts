/**
 * The live quote of a draft: asked anew a moment after the last change, the older question dropped.
 * The flexibility menu is asked without deadline and value, because it shows what others would give.
 */
import { api, call } from '../../api/client';
import { asProblem, type ProblemError } from '../../api/problem';
import type { MenuLine, Quote, QuoteAsk } from '../../api/types';

/** Keystrokes come in bursts; what is asked after them must be there within 100 ms. */
const PAUSE_MS = 40;

export class Quoting {
  quote = $state.raw<Quote | undefined>();
  menu = $state.raw<MenuLine[]>([]);
  refusal = $state.raw<ProblemError | undefined>();
  asking = $state(false);
  /** From the last change to the answer, in milliseconds. */
  took = $state(0);

  private timer: ReturnType<typeof setTimeout> | undefined;
  private current: AbortController | undefined;
  private menuKey = '';

  /** Asks soon; nothing where the draft cannot be priced. */
  ask(question: QuoteAsk | undefined): void {
    clearTimeout(this.timer);
    this.current?.abort();
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

  stop(): void {
    clearTimeout(this.timer);
    this.current?.abort();
  }

  private async send(question: QuoteAsk, changed: number): Promise<void> {
    const controller = new AbortController();
    this.current = controller;
    const { signal } = controller;
    void this.askMenu(question, signal);
    try {
      const answer = await call(api.POST('/api/v1/quotes', { body: question, signal }));
      if (signal.aborted) return;
      this.quote = answer.quote;
      this.refusal = undefined;
    } catch (thrown) {
      if (signal.aborted) return;
      this.quote = undefined;
      this.refusal = asProblem(thrown);
    }
    this.took = performance.now() - changed;
    this.asking = false;
  }

  private async askMenu(question: QuoteAsk, signal: AbortSignal): Promise<void> {
    const { deadline: _, ...open } = question.ask ?? { resources: {}, duration_s: 0 };
    const key = JSON.stringify(open);
    if (key === this.menuKey) return;
    try {
      const answer = await call(api.POST('/api/v1/quotes', { body: { ask: open, menu: true }, signal }));
      if (signal.aborted) return;
      this.menu = answer.menu ?? [];
      this.menuKey = key;
    } catch {
      // The quote itself says what is wrong.
      if (!signal.aborted) this.menu = [];
    }
  }
}
