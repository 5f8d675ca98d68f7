/** Charts. `Lines` loads its library when it is first drawn; the others are the page's own. */
export { default as Bars, type Bar } from './Bars.svelte';
export { default as Columns, type ColumnOf } from './Columns.svelte';
export { pan, type GanttBar, type Limits, type View } from './gantt';
export { default as Gantt } from './Gantt.svelte';
export { default as HeatMap, type Cell } from './HeatMap.svelte';
export { default as Lines, type Line } from './Lines.svelte';
export { default as Sparkline } from './Sparkline.svelte';
