/** Recorded values as lines of a chart: by name, one line a replica, gaps where one has no value. */
import type { MetricPoint } from '../../api/types';

export interface Series {
  name: string;
  x: number[];
  lines: { rank: number; values: (number | null)[] }[];
}

/** Points laid over earlier ones: the same name, replica and step is the same point. */
export function gathered(points: Iterable<MetricPoint>): Map<string, Map<number, MetricPoint[]>> {
  const byName = new Map<string, Map<number, Map<number, MetricPoint>>>();
  for (const point of points) {
    let ranks = byName.get(point.name);
    if (!ranks) byName.set(point.name, (ranks = new Map()));
    let steps = ranks.get(point.rank);
    if (!steps) ranks.set(point.rank, (steps = new Map()));
    steps.set(point.step, point);
  }
  const sorted = new Map<string, Map<number, MetricPoint[]>>();
  for (const [name, ranks] of [...byName].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const inOrder = [...ranks].sort(([a], [b]) => a - b);
    sorted.set(name, new Map(inOrder.map(([rank, steps]) => [rank, [...steps.values()].sort((a, b) => a.step - b.step)])));
  }
  return sorted;
}

/** One metric as lines over steps, or over time in seconds. */
export function seriesOf(name: string, ranks: ReadonlyMap<number, readonly MetricPoint[]>, by: 'step' | 'time'): Series {
  const at = (point: MetricPoint) => (by === 'step' ? point.step : Math.round(Date.parse(point.at) / 1000));
  const x = [...new Set([...ranks.values()].flatMap((points) => points.map(at)))].sort((a, b) => a - b);
  const place = new Map(x.map((value, index) => [value, index]));
  const lines = [...ranks].map(([rank, points]) => {
    const values: (number | null)[] = new Array<number | null>(x.length).fill(null);
    for (const point of points) values[place.get(at(point)) ?? 0] = point.value;
    return { rank, values };
  });
  return { name, x, lines };
}

/** A counter that only grows as what it grew by a second. */
export function rates(series: Series): Series {
  const lines = series.lines.map(({ rank, values }) => {
    let last: { at: number; value: number } | undefined;
    const grown = values.map((value, index) => {
      if (value === null) return null;
      const now = { at: series.x[index] ?? 0, value };
      const before = last;
      last = now;
      // A new attempt counts from nothing again.
      if (!before || now.at <= before.at || now.value < before.value) return null;
      return (now.value - before.value) / (now.at - before.at);
    });
    return { rank, values: grown };
  });
  return { ...series, lines };
}

/** The same line smoothed: each value with a share of what came before. */
export function smoothed(values: readonly (number | null)[], share: number): (number | null)[] {
  let mean: number | undefined;
  return values.map((value) => {
    if (value === null) return null;
    mean = mean === undefined ? value : mean * share + value * (1 - share);
    return mean;
  });
}
