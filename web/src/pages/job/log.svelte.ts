/** A job's log as it comes: from the first line that is kept, then what is printed, to a limit. */
import { follow, type Following } from '../../api/socket';
import type { LogLine } from '../../api/types';
import { Carried } from './ansi';

/** Lines in memory; the whole log can be downloaded. */
export const LINES_MAX = 100_000;
const GATHER_MS = 120;

export class Log {
  lines = $state.raw<readonly LogLine[]>([]);
  /** Whether older lines had to go. */
  cut = $state(false);
  /** Whether all has come. */
  over = $state(false);
  loading = $state(true);

  /** The colours that lines begin with. */
  readonly styles = new Carried();

  private following: Following | undefined;
  private waiting: LogLine[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private next = 0;

  watch(id: number): () => void {
    this.following = follow<LogLine>(
      () => `/api/v1/jobs/${id}/logs/ws${this.next > 0 ? `?from=${this.next}` : ''}`,
      (items) => {
        this.waiting.push(...items);
        this.next = items.at(-1)?.next ?? this.next;
        this.timer ??= setTimeout(() => this.show(), GATHER_MS);
      },
      () => {
        this.show();
        this.over = true;
      },
    );
    const quiet = setTimeout(() => (this.loading = false), 1500);
    return () => {
      clearTimeout(this.timer);
      clearTimeout(quiet);
      this.following?.stop();
    };
  }

  private show(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const line of this.waiting) this.styles.add(line);
    const all = this.lines.concat(this.waiting);
    this.waiting = [];
    if (all.length > LINES_MAX) this.cut = true;
    this.lines = all.slice(-LINES_MAX);
    this.loading = false;
  }
}
