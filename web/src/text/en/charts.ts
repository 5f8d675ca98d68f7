export default {
  time: 'Time',
  step: 'Step',
  ganttHint: (rows: number, bars: number) =>
    `${rows} rows, ${bars} bars. Arrow keys move, plus and minus zoom, Home shows everything; Shift with arrow keys picks a bar, Enter opens it.`,
  noBar: 'nothing',
  noValue: 'no value',
  readValues: (chart: string) => `Values of ${chart}`,
  readHow: 'Arrow keys go from value to value, plus and minus zoom, Escape shows everything.',
  awaited: 'This chart comes once the server answers.',
  failed: 'This chart could not be loaded: reload the page.',
};
