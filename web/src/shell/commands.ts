/** What the command palette offers, and how well a text fits it: pure. */
import type { IconNode } from 'lucide';

export interface Command {
  id: string;
  label: string;
  /** What tells it from others that are called the same. */
  note?: string;
  group: string;
  icon?: IconNode;
  /** More words by which it is found. */
  words?: string;
  run: () => void;
}

/** Higher fits better; nothing where the letters are not there in order. */
export function fit(query: string, text: string): number | undefined {
  const [wanted, given] = [query.trim().toLowerCase(), text.toLowerCase()];
  if (wanted === '') return 0;
  const at = given.indexOf(wanted);
  if (at === 0) return 100;
  if (at > 0) return given[at - 1] === ' ' ? 80 : 60;
  let from = 0;
  for (const letter of wanted) {
    const found = given.indexOf(letter, from);
    if (found < 0) return undefined;
    from = found + 1;
  }
  return 20 - Math.min(19, from - wanted.length);
}

/** The commands that fit, best first; those that fit alike stay as they were. */
export function matching(query: string, commands: readonly Command[]): Command[] {
  return commands
    .map((command) => ({ command, score: fit(query, command.label) ?? lower(fit(query, command.words ?? '')) }))
    .filter((entry) => entry.score !== undefined)
    .sort((a, b) => (b.score ?? 0) - (a.score ?? 0))
    .map(({ command }) => command);
}

function lower(score: number | undefined): number | undefined {
  return score === undefined ? undefined : score / 2;
}
