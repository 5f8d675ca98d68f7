/** Amounts of resources as the wire writes them (`500m`, `64Gi`, `0.5`) and people do (`64GB`, `64GiB`), read as plain numbers. */
const BINARY: Record<string, number> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };
const DECIMAL: Record<string, number> = { m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

/** The number that an amount means; nothing where it is none. */
export function quantity(text: string | null | undefined): number | undefined {
  const read = /^(\d+(?:\.\d+)?)(?:(Ki|Mi|Gi|Ti|Pi|k|K|M|G|T|P)B?|(m))?$/.exec((text ?? '').trim());
  if (!read) return undefined;
  const unit = read[2] ?? read[3] ?? '';
  return Number(read[1]) * (BINARY[unit] ?? DECIMAL[unit] ?? 1);
}
