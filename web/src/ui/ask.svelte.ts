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
}

class Asking {
  question = $state.raw<Question | undefined>(undefined);
  private settle: ((yes: boolean) => void) | undefined;

  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.question = question;
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
