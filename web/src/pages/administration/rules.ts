/** The rules of the house as a form has them: how each is written, and read back. Pure. */
export type Kind = 'span' | 'share' | 'times' | 'count' | readonly string[];

/** By what they are about. `typical`, a list of whole resources, is left to the command line. */
export const RULES = {
  promises: { hold_for: 'span', holds_max: 'count', refund_unused: 'share', refund_broken: 'share', extend_by: 'span', slot: 'span', horizon: 'span' },
  queues: {
    backfill: ['none', 'easy', 'conservative'],
    scorer: ['first-fit', 'best-fit', 'consolidate', 'fgd', 'least-stranded'],
    queue_density: 'times',
    patience: 'span',
    run_min: 'span',
    fair_half_life: 'span',
    pass_depth: 'count',
    pass_every: 'span',
  },
  running: { grace: 'span', lease: 'span', period: 'span', remember: 'span', remember_max: 'count' },
} as const satisfies Record<string, Record<string, Kind>>;

export type Part = keyof typeof RULES;
export type Rule = { [P in Part]: keyof (typeof RULES)[P] }[Part];
export const PARTS = Object.keys(RULES) as Part[];
export const rulesOf = (part: Part) => Object.entries(RULES[part]) as [Rule, Kind][];

const SECONDS = { d: 86_400, h: 3600, m: 60, s: 1 } as const;
type Unit = keyof typeof SECONDS;
/** The server counts in thousandths. */
const thousandths = (value: number) => Math.round(value * 1000) / 1000;

/** As the server has it, written for people: `90` seconds is `1m30s`, `0.8` is `80`. */
export function ruleText(kind: Kind, value: unknown): string {
  if (typeof value !== 'number') return String(value ?? '');
  if (kind === 'share') return String(Math.round(value * 1e5) / 1e3);
  return kind === 'span' ? spanText(value) : String(value);
}

/** The other way round; nothing where it cannot be read. */
export function ruleValue(kind: Kind, text: string): string | number | undefined {
  const plain = text.trim().replace(',', '.');
  if (typeof kind !== 'string') return kind.includes(plain) ? plain : undefined;
  if (kind === 'span') return spanSeconds(plain);
  if (!/^\d+(\.\d+)?$/.test(plain)) return undefined;
  const value = Number(plain);
  if (kind === 'share') return value <= 100 ? thousandths(value / 100) : undefined;
  if (kind === 'count') return Number.isInteger(value) && value < 2 ** 32 ? value : undefined;
  return thousandths(value);
}

function spanText(seconds: number): string {
  let [rest, text] = [seconds, ''];
  for (const unit of ['d', 'h', 'm'] as const) {
    const count = Math.floor(rest / SECONDS[unit]);
    if (count > 0) text += `${count}${unit}`;
    rest = thousandths(rest - count * SECONDS[unit]);
  }
  return rest > 0 || text === '' ? `${text}${rest}s` : text;
}

function spanSeconds(text: string): number | undefined {
  const parts = [...text.toLowerCase().matchAll(/(\d+(?:\.\d+)?)\s*([dhms])\s*/g)];
  // A number alone could be any unit: it must be said.
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== text.toLowerCase()) return undefined;
  return thousandths(parts.reduce((sum, [, count, unit]) => sum + Number(count) * SECONDS[unit as Unit], 0));
}
