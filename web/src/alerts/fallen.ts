/** Which alerts are due: pure. */
export interface PriceAlert {
  pool: string;
  /** Credits for a GPU-hour, or for a core-hour in a pool without GPUs. */
  below: number;
}

/** What was kept, whatever became of it meanwhile. */
export function parsed(text: string | null): PriceAlert[] {
  if (text === null) return [];
  let all: unknown;
  try {
    all = JSON.parse(text);
  } catch {
    return [];
  }
  if (!Array.isArray(all)) return [];
  return all.flatMap((one: unknown) => {
    if (typeof one !== 'object' || one === null) return [];
    const { pool, below } = one as Record<string, unknown>;
    return typeof pool === 'string' && typeof below === 'number' && below > 0 && Number.isFinite(below) ? [{ pool, below }] : [];
  });
}

/**
 * Alerts whose price is below its limit now and was not when it was last looked at; and the pools
 * that are below, to be given the next time. So a price is told once each time it falls.
 */
export function fallen(alerts: readonly PriceAlert[], prices: ReadonlyMap<string, number>, before: ReadonlySet<string>): { due: PriceAlert[]; below: Set<string> } {
  const under = alerts.filter(({ pool, below }) => (prices.get(pool) ?? Infinity) < below);
  return { due: under.filter(({ pool }) => !before.has(pool)), below: new Set(under.map(({ pool }) => pool)) };
}
