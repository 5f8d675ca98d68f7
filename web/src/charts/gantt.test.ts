import { describe, expect, it } from 'vitest';
import { BarIndex, pan, shortened, zoom, type GanttBar } from './gantt';

const limits = { from: 0, to: 1000, least: 10 };
const bar = (row: number, from: number, to: number): GanttBar => ({ row, from, to, token: '--accent', name: `${row}:${from}` });

describe('the view of a Gantt chart', () => {
  it('keeps the moment under the pointer when it zooms', () => {
    const view = zoom({ from: 200, to: 600 }, 300, 0.5, limits);
    expect(view).toEqual({ from: 250, to: 450 });
    expect((300 - view.from) / (view.to - view.from)).toBe(0.25);
  });

  it('never leaves its limits, however far it is moved or zoomed', () => {
    expect(pan({ from: 800, to: 900 }, 5, limits)).toEqual({ from: 900, to: 1000 });
    expect(pan({ from: 100, to: 200 }, -5, limits)).toEqual({ from: 0, to: 100 });
    expect(zoom({ from: 0, to: 100 }, 50, 100, limits)).toEqual({ from: 0, to: 1000 });
    const close = zoom({ from: 0, to: 100 }, 50, 1e-9, limits);
    expect(close.to - close.from).toBe(10);
  });
});

describe('the keyboard', () => {
  it('steps through the bars of a row in time, and stays at its ends', () => {
    const index = new BarIndex([bar(0, 50, 60), bar(0, 10, 20), bar(0, 30, 40), bar(2, 0, 5)]);
    const first = index.step(0, undefined, 1, 25);
    expect(first?.from).toBe(30);
    expect(index.step(0, first, 1, 0)?.from).toBe(50);
    expect(index.step(0, first, -1, 0)?.from).toBe(10);
    expect(index.step(0, index.step(0, bar(0, 50, 60), 1, 0), 1, 0)?.from).toBe(50);
    expect(index.step(0, undefined, 1, 99)?.from).toBe(50);
    expect(index.step(1, undefined, 1, 0)).toBeUndefined();
  });
});

describe('the bars that are seen', () => {
  it('are those that a look at every bar finds', () => {
    const bars = Array.from({ length: 400 }, (_, index) => bar(index % 5, (index * 37) % 900, ((index * 37) % 900) + 1 + ((index * 13) % 120)));
    const index = new BarIndex(bars);
    for (const view of [{ from: 0, to: 1000 }, { from: 300, to: 310 }, { from: 899, to: 900 }, { from: 990, to: 1000 }]) {
      for (let row = 0; row < 6; row += 1) {
        const plain = bars.filter((one) => one.row === row && one.from < view.to && one.to > view.from);
        expect(index.seen(row, view).map(({ name }) => name).sort()).toEqual(plain.map(({ name }) => name).sort());
      }
    }
  });
});

describe('a name on a bar', () => {
  it('is whole where there is room, cut with a sign where there is not, and left out where nothing would be left', () => {
    expect(shortened('pretrain-3', 70)).toBe('pretrain-3');
    expect(shortened('pretrain-3', 50)).toBe('pretrai…');
    expect(shortened('pretrain-3', 20)).toBe('');
    expect(shortened('图像分类实验', 70)).toBe('图像分类实验');
    expect(shortened('图像分类实验', 60)).toBe('图像分类…');
  });
});
