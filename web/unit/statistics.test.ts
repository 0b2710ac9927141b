// Statistics of columns, cells in steps, names, commands and files, on numbers made by hand.
import { describe, expect, test } from 'vitest';
import { Cells } from '../src/cells';
import { quoted } from '../src/commands';
import { fixed, label, measured, number } from '../src/format';
import { correlation, correlationRatio, extent, moments, normalScore, patterns, residualCorrelations } from '../src/maths/statistics';
import { csvCell } from '../src/plots/export';
import { drawPoints, nearest, placeLabels, sprite } from '../src/plots/points';

/** Cells of two features in whole steps; null is missing. */
function cells(rows: (number | null)[][]): Cells {
  const [n, p] = [rows.length, rows[0]!.length];
  const planes = new Uint8Array(2 * n * p);
  rows.forEach((row, i) =>
    row.forEach((x, j) => {
      const code = x === null ? 65535 : x;
      planes[2 * j * n + i] = code >> 8;
      planes[2 * j * n + n + i] = code & 255;
    }),
  );
  return new Cells(n, p, planes, Float64Array.from({ length: 3 * p }, (_, k) => (k % 3 === 0 ? 0 : 1)));
}

describe('statistics', () => {
  test('r of a line is 1, and leaves out what is missing', () => {
    expect(correlation([1, 2, 3, NaN], [2, 4, 6, 9])).toBeCloseTo(1, 14);
    expect(correlation([1, 2, 3], [1, -2, 1])).toBeCloseTo(0, 14);
    expect(correlation([1, 1], [1, 2])).toBeNaN();
  });
  test('η² is the share between groups', () => {
    // Means 1 and 5 of two rows each, within ±1: between 16, within 4.
    expect(correlationRatio([0, 2, 4, 6], [0, 0, 1, 1])).toBeCloseTo(16 / 20, 14);
  });
  test('moments', () => {
    expect(moments([1, 3, NaN])).toEqual({ count: 2, mean: 2, deviation: Math.SQRT2 });
    expect(extent([NaN])).toEqual([0, 1]);
  });
  test('the median of χ² has a normal score near 0', () => expect(normalScore(9.341818, 10)).toBeCloseTo(0, 2));
  test('patterns are counted, the most frequent first', () => {
    const found = patterns(cells([[1, null], [1, 2], [3, null], [null, null]]));
    expect(found.map(({ missing, rows }) => [missing, rows])).toEqual([[[1], [0, 2]], [[], [1]], [[0, 1], [3]]]);
  });
  test('correlations that a model explains are not left over', () => {
    const left = residualCorrelations(cells([[1, 2], [2, 4], [3, 6]]), [0, 1], () => 1);
    expect(left[1]).toBeCloseTo(0, 14);
  });
});

describe('cells', () => {
  test('steps become numbers again', () => {
    const found = new Cells(2, 1, Uint8Array.of(0, 255, 7, 255), Float64Array.of(100, 1, 10));
    expect(found.value(0, 0)).toBe(10.7);
    expect(found.value(1, 0)).toBeNaN();
    expect(found.missingIn(1)).toBe(1);
  });
});

describe('words', () => {
  test('numbers', () => {
    expect([number(0), number(1234.6), number(-0.000012), number(NaN), number(0.12345)]).toEqual(['0', '1235', '−1.20·10⁻⁵', '–', '0.1235']);
    expect([fixed(-0.0001, 2), fixed(-1.5, 1)]).toEqual(['0.00', '−1.5']);
    expect([measured(14.83333, 0.31), measured(0.31, 0.31), measured(2.14, 1.02), measured(1.02, 1.02)]).toEqual(['14.8', '0.3', '2.1', '1.0']);
  });
  test('names are shown as they are, without what cannot be seen', () => {
    expect(label('<script>')).toBe('<script>');
    expect(label('a\u0000b')).toBe('a␀b');
    expect([...label('😀'.repeat(300), 10)].length).toBe(10);
    expect(label(' ')).toBe('(no name)');
  });
  test('commands survive a shell', () => {
    expect(quoted("it's here.csv")).toBe("'it'\\''s here.csv'");
    expect(quoted('data/a.csv')).toBe('data/a.csv');
  });
  test('cells of CSV are quoted and are no formulas', () => {
    expect([csvCell('a,"b"'), csvCell('=1+1'), csvCell('-5'), csvCell(NaN)]).toEqual(['"a,""b"""', "'=1+1", '-5', '']);
  });
});

describe('points', () => {
  test('are written into pixels, and found again', () => {
    const drawing = { width: 20, height: 20, words: new Uint32Array(400) };
    drawPoints(drawing, Float32Array.of(5), Float32Array.of(6), Uint32Array.of(0xff0000ff), [sprite('circle', 2)], null, null);
    expect(drawing.words[6 * 20 + 5]! & 255).toBe(255);
    expect(drawing.words[6 * 20 + 5]! >>> 24).toBeGreaterThan(200);
    expect(drawing.words[0]).toBe(0);
    expect(nearest(Float32Array.of(5, 9), Float32Array.of(6, 9), 8, 8, 5)).toBe(1);
    expect(nearest(Float32Array.of(5), Float32Array.of(6), 19, 19, 5)).toBeNull();
  });
  test('labels do not overlap', () => {
    const at = (x: number, y: number) => ({ x, y, text: 'label', row: x });
    expect(placeLabels([at(10, 20), at(15, 22), at(10, 60)], 200, 100).map(({ row }) => row)).toEqual([10, 10]);
  });
});
