// Statistics of columns: correlations, correlation ratios, quantiles and patterns of missing values.
import type { Cells } from '../cells';

/** Pearson's r of the pairs that are both there. */
export function correlation(x: ArrayLike<number>, y: ArrayLike<number>): number {
  let [n, mx, my] = [0, 0, 0];
  for (let i = 0; i < x.length; i++)
    if (x[i]! === x[i]! && y[i]! === y[i]!) {
      n++;
      mx += (x[i]! - mx) / n;
      my += (y[i]! - my) / n;
    }
  let [xx, yy, xy] = [0, 0, 0];
  for (let i = 0; i < x.length; i++)
    if (x[i]! === x[i]! && y[i]! === y[i]!) {
      const [dx, dy] = [x[i]! - mx, y[i]! - my];
      xx += dx * dx;
      yy += dy * dy;
      xy += dx * dy;
    }
  return xx > 0 && yy > 0 ? xy / Math.sqrt(xx * yy) : NaN;
}

/** η²: the share of the variance of x that lies between the groups. */
export function correlationRatio(x: ArrayLike<number>, group: ArrayLike<number>): number {
  const sums = new Map<number, [number, number]>();
  let [n, mean] = [0, 0];
  for (let i = 0; i < x.length; i++)
    if (x[i]! === x[i]!) {
      n++;
      mean += (x[i]! - mean) / n;
      const entry = sums.get(group[i]!) ?? [0, 0];
      sums.set(group[i]!, [entry[0] + 1, entry[1] + x[i]!]);
    }
  let [between, all] = [0, 0];
  for (const [count, sum] of sums.values()) between += count * (sum / count - mean) ** 2;
  for (let i = 0; i < x.length; i++) if (x[i]! === x[i]!) all += (x[i]! - mean) ** 2;
  return all > 0 ? between / all : NaN;
}

/** Least and largest of the numbers that are there. */
export function extent(x: ArrayLike<number>): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < x.length; i++) {
    const v = x[i]!;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 1];
}

export interface Moments {
  count: number;
  mean: number;
  deviation: number;
}

export function moments(x: ArrayLike<number>, keep?: (i: number) => boolean): Moments {
  let [n, mean, square] = [0, 0, 0];
  for (let i = 0; i < x.length; i++) {
    const v = x[i]!;
    if (v !== v || (keep && !keep(i))) continue;
    n++;
    const d = v - mean;
    mean += d / n;
    square += d * (v - mean);
  }
  return { count: n, mean: n > 0 ? mean : NaN, deviation: n > 1 ? Math.sqrt(square / (n - 1)) : n === 1 ? 0 : NaN };
}

/** Wilson and Hilferty's normal score of a χ² distance with k degrees of freedom. */
export function normalScore(distance: number, k: number): number {
  const spread = 2 / (9 * k);
  return (Math.cbrt(distance / k) - (1 - spread)) / Math.sqrt(spread);
}

export interface Pattern {
  /** Features that are missing. */
  missing: number[];
  rows: number[];
}

/** The patterns of missing values, the most frequent first. */
export function patterns(cells: Cells): Pattern[] {
  const found = new Map<string, Pattern>();
  for (let i = 0; i < cells.n; i++) {
    const missing: number[] = [];
    for (let j = 0; j < cells.p; j++) if (cells.isMissing(i, j)) missing.push(j);
    const key = missing.join();
    const known = found.get(key);
    if (known) known.rows.push(i);
    else found.set(key, { missing, rows: [i] });
  }
  return [...found.values()].sort((a, b) => b.rows.length - a.rows.length || a.missing.length - b.missing.length);
}

/** Correlations of features minus those of a model, over the pairs of cells that are there. */
export function residualCorrelations(cells: Cells, features: number[], implied: (a: number, b: number) => number): Float64Array {
  const m = features.length;
  const columns = features.map((j) => cells.column(j));
  const complete = columns.every((column) => column.every((x) => x === x));
  const out = new Float64Array(m * m);
  if (complete) for (const column of columns) standardise(column);
  for (let a = 0; a < m; a++)
    for (let b = 0; b < a; b++) {
      let r = 0;
      if (complete) for (let i = 0; i < cells.n; i++) r += columns[a]![i]! * columns[b]![i]!;
      else r = correlation(columns[a]!, columns[b]!);
      out[a * m + b] = out[b * m + a] = (Number.isNaN(r) ? 0 : r) - implied(features[a]!, features[b]!);
    }
  return out;
}

function standardise(x: Float64Array): void {
  const { mean } = moments(x);
  let square = 0;
  for (let i = 0; i < x.length; i++) square += (x[i]! - mean) ** 2;
  const length = Math.sqrt(square);
  for (let i = 0; i < x.length; i++) x[i] = length > 0 ? (x[i]! - mean) / length : 0;
}
