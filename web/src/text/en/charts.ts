export default {
  ganttHint: (rows: number, bars: number) =>
    `${rows} rows, ${bars} bars. Arrow keys move, plus and minus zoom, Home shows everything.`,
};
