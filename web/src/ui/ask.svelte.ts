/**
 * Asks before something that cannot be undone: `if (await sure({ title, text, yes })) …`. The
 * shell shows the question.
 */
export interface Question {
  title: string;
  text: string;
  /** What the button says that does it: the deed itself, not "OK". */
  yes: string;
  danger?: boolean;
  /** What may be chosen besides: a box to be ticked. */
  option?: string;
}

class Asking {
  question = $state.raw<Question | undefined>(undefined);
  /** Whether the box of the question is ticked. */
  option = $state(false);
  private settle: ((yes: boolean) => void) | undefined;

  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.question = question;
    this.option = false;
    return new Promise((resolve) => (this.settle = resolve));
  }

  answer(yes: boolean): void {
    this.settle?.(yes);
    this.settle = undefined;
    this.question = undefined;
  }
}

export const asking = new Asking();
export const sure = (question: Question) => asking.ask(question);

/** The same with a box: whether it was ticked, or nothing where the reader would rather not. */
export async function sureOf(question: Question & { option: string }): Promise<{ option: boolean } | undefined> {
  return (await asking.ask(question)) ? { option: asking.option } : undefined;
}
