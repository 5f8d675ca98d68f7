/** A node's bookings as bars of its row: each GPU has a lane; what needs no GPU is packed. Pure. */
import type { Booking } from '../../api/types';
import type { GanttBar } from '../../charts';

/** Stretches of neighbours in a list of GPUs: `[0, 1, 4]` is `[0, 2)` and `[4, 5)`. */
export function runs(gpus: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  for (const gpu of [...gpus].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && last[1] === gpu) last[1] = gpu + 1;
    else found.push([gpu, gpu + 1]);
  }
  return found;
}

/** For each stretch of time the first lane that is free by then, and how many lanes that takes. */
export function packed(stretches: readonly { from: number; to: number }[]): { lanes: number[]; count: number } {
  const order = stretches.map((_, index) => index).sort((a, b) => (stretches[a]?.from ?? 0) - (stretches[b]?.from ?? 0) || a - b);
  const busyUntil: number[] = [];
  const lanes: number[] = [];
  for (const index of order) {
    const stretch = stretches[index];
    if (!stretch) continue;
    let lane = busyUntil.findIndex((until) => until <= stretch.from);
    if (lane < 0) lane = busyUntil.length;
    busyUntil[lane] = stretch.to;
    lanes[index] = lane;
  }
  return { lanes, count: busyUntil.length };
}

const TOKENS: Record<string, `--${string}`> = { promise: '--promise', running: '--accent', hold: '--warn', maintenance: '--quiet' };
/** How much of a row with GPUs is left to what needs none. */
const PLAIN_BAND = 0.15;

/** Writes a booking's name: its job's, or what it is where the job is somebody else's. */
export type Namer = (booking: Booking) => string;

export function barsOf(bookings: readonly Booking[], row: number, gpus: number, nameOf: Namer): GanttBar[] {
  const bars: GanttBar[] = [];
  const plain: Booking[] = [];
  const bar = (booking: Booking, band?: [number, number]): GanttBar => ({
    row,
    from: Date.parse(booking.from),
    to: Date.parse(booking.to),
    token: TOKENS[booking.kind] ?? '--quiet',
    name: nameOf(booking),
    kind: booking.kind,
    striped: booking.kind === 'hold' || booking.kind === 'maintenance',
    outlined: booking.kind === 'running',
    dashed: booking.kind === 'hold',
    id: booking.job ?? undefined,
    ...(band && { band }),
  });
  const someNeedNone = bookings.some((booking) => booking.kind !== 'maintenance' && booking.gpus.length === 0);
  const room = gpus > 0 && someNeedNone ? 1 - PLAIN_BAND : 1;
  for (const booking of bookings) {
    if (booking.kind === 'maintenance') bars.push(bar(booking));
    else if (gpus === 0 || booking.gpus.length === 0) plain.push(booking);
    else for (const [low, high] of runs(booking.gpus)) bars.push(bar(booking, [(low / gpus) * room, (high / gpus) * room]));
  }
  const start = gpus > 0 ? room : 0;
  const { lanes, count } = packed(plain.map(({ from, to }) => ({ from: Date.parse(from), to: Date.parse(to) })));
  for (const [index, booking] of plain.entries()) {
    const lane = lanes[index] ?? 0;
    const height = (1 - start) / Math.max(1, count);
    bars.push(bar(booking, [start + lane * height, start + (lane + 1) * height]));
  }
  return bars;
}

/** Bars are made once for what the server answered, and again where the row or the names changed. */
export class BarCache {
  private readonly made = new WeakMap<readonly Booking[], { row: number; gpus: number; names: object | undefined; bars: GanttBar[] }>();

  of(bookings: readonly Booking[], row: number, gpus: number, nameOf: Namer, names: object | undefined): readonly GanttBar[] {
    const known = this.made.get(bookings);
    if (known && known.row === row && known.gpus === gpus && known.names === names) return known.bars;
    const bars = barsOf(bookings, row, gpus, nameOf);
    this.made.set(bookings, { row, gpus, names, bars });
    return bars;
  }
}
