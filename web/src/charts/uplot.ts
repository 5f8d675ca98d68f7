/**
 * uPlot, loaded when the first chart is seen, and dressed in the page's tokens. Pages use
 * `Lines.svelte`; this file knows the library, they do not.
 */
import type uPlot from 'uplot';
import { Part } from '../api/part.svelte';
import { colour } from '../theme/theme.svelte';

export const library = new Part<typeof uPlot>('charts', () =>
  Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]).then(([module]) => module.default),
);

/** Axes in the page's colours and letters. */
export function axis(format: (values: number[]) => string[], size: number): uPlot.Axis {
  return {
    stroke: colour('--ink-3'),
    font: '11px "Inter Variable", system-ui, sans-serif',
    grid: { stroke: colour('--grid'), width: 1 },
    ticks: { show: false },
    size,
    gap: 6,
    values: (_, values) => format(values),
  };
}
