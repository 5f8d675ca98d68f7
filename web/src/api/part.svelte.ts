/**
 * A part of a page that is loaded when it is first needed, such as the library that draws charts. What
 * does not come is asked for in a new document once the server answers (see {@link Comeback}), as long
 * as somebody waits for it.
 *
 *     const library = new Part('charts', () => import('uplot'));
 *     const came = arrival(library);
 *     {#if came.it}…{:else if came.problem}<ErrorNote problem={came.problem} retry={library.retry} />{/if}
 */
import { Comeback } from './comeback';
import { ProblemError, UNREACHABLE } from './problem';

/** Its files cannot be had, in a new document either. */
export const PART_FAILED = 'part_failed';

export class Part<T> {
  private coming: Promise<T> | undefined;
  private waiting = 0;
  private stop: (() => void) | undefined;

  constructor(
    private readonly name: string,
    private readonly load: () => Promise<T>,
    private readonly comeback = new Comeback(),
  ) {}

  /** It comes once for all who ask; a failure is a {@link ProblemError}. */
  get(): Promise<T> {
    this.coming ??= this.load().then(
      (it) => {
        this.comeback.arrived(this.name);
        return it;
      },
      () => {
        const code = this.comeback.mayHelp(this.name) ? UNREACHABLE : PART_FAILED;
        throw new ProblemError({ type: `urn:era:${code}`, title: code, status: 0, code, detail: `The files of “${this.name}” did not come.` });
      },
    );
    return this.coming;
  }

  /** Somebody waits for what failed, until the returned function is called. */
  wait(): () => void {
    if (!this.comeback.mayHelp(this.name)) return () => {};
    if (this.waiting === 0) this.stop = this.comeback.await(this.name);
    this.waiting += 1;
    return () => {
      this.waiting -= 1;
      if (this.waiting === 0) this.stop?.();
    };
  }

  /** Asks for it in a new document now. */
  readonly retry = (): void => void this.comeback.now(this.name);
}

export interface Arrival<T> {
  readonly it: T | undefined;
  readonly problem: ProblemError | undefined;
}

/** A part that a component shows as soon as it is there, and waits for as long as the component is shown. */
export function arrival<T>(part: Part<T>): Arrival<T> {
  let it = $state.raw<T | undefined>();
  let problem = $state.raw<ProblemError | undefined>();
  $effect(() => {
    let over = false;
    let end = () => {};
    part.get().then(
      (came) => {
        it = came;
      },
      (thrown: ProblemError) => {
        problem = thrown;
        if (!over) end = part.wait();
      },
    );
    return () => {
      over = true;
      end();
    };
  });
  return {
    get it() {
      return it;
    },
    get problem() {
      return problem;
    },
  };
}
