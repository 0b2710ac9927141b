// Everything the pictures need, made once from the block: rows, model, coordinates and distances.
import type { About } from './about';
import { Cells } from './cells';
import type { Block } from './decode';
import { label } from './format';
import { LinearModel, patternKey, projectorOf } from './maths/linear';
import { extent, moments } from './maths/statistics';

/** A column that is carried along: numbers, and codes of labels where it can be read as groups. */
export interface Carried {
  name: string;
  /** The numbers; null for labels. */
  numbers: Float64Array | null;
  /** A code for each row and what the codes stand for; null where there are too many to be groups. */
  codes: Uint32Array | null;
  labels: string[];
  text: (row: number) => string;
}

/** What T² and SPE of a row of the model stay below with probability `level`: control limits, as `covary score --limits` has them. */
export interface Limits {
  level: number;
  /** Of a row of which every cell is there; null where that depends on its group. */
  complete: { t2: number; spe: number } | null;
  /** Of each row, by the cells that it has. */
  t2: (row: number) => number;
  spe: (row: number) => number;
}

export interface Data {
  about: About;
  n: number;
  p: number;
  features: string[];
  cells: Cells;
  /** Number of each row in the data, from 0. */
  numbers: Uint32Array;
  model: LinearModel | null;
  /** Coordinates that are drawn: m of them, column by column. */
  coordinates: Float64Array[];
  names: string[];
  t2: Float64Array | null;
  spe: Float64Array | null;
  distance: Float64Array | null;
  pValue: Float64Array | null;
  limits: Limits | null;
  group: Uint32Array | null;
  groups: number;
  probabilities: Float32Array | null;
  carried: Carried[];
  rowName: (row: number) => string;
  array: (name: string) => Float64Array | null;
  grid: Float32Array | null;
  /** Mean, deviation and ends of each feature over the rows. */
  columns: Record<'mean' | 'deviation' | 'low' | 'high', Float64Array>;
}

const MOST_LABELS = 60;

/** Columns that say more of a row than its name: all but an id that tells rows apart. */
export const otherColumns = ({ carried, about, n }: Data): Carried[] =>
  carried.filter((column, index) => index !== about.id || !isUnique(column, n));

function isUnique(column: Carried, n: number): boolean {
  const distinct = new Set<string>();
  for (let i = 0; i < n; i++) distinct.add(column.text(i));
  return distinct.size === n && !distinct.has('');
}

/** The id where it tells rows apart; otherwise the number of the row, with the id beside it. */
function rowNames(id: Carried | null, numbers: Uint32Array): (row: number) => string {
  const plain = (row: number) => `row ${numbers[row]! + 1}`;
  if (!id) return plain;
  const unique = isUnique(id, numbers.length);
  return (row) => (unique ? label(id.text(row), 60) : `${plain(row)} (${label(id.text(row), 40)})`);
}

export function assemble({ about, arrays }: Block): Data {
  const doubles = (name: string): Float64Array | null => {
    const values = arrays.get(name)?.values;
    return values instanceof Float64Array ? values : values ? Float64Array.from(values) : null;
  };
  const [n, p] = [about.rows.shown, about.features.length];
  const cells = new Cells(n, p, arrays.get('cells')!.values as Uint8Array, doubles('steps')!);
  const sampled = arrays.get('numbers')?.values as Uint32Array | undefined;
  const numbers = sampled ?? Uint32Array.from({ length: n }, (_, i) => i);
  const carried = about.carried.map((told) => carriedColumn(told, arrays.get(told.array)!.values));
  const id = about.id === null ? null : carried[about.id];
  const data: Data = {
    about,
    n,
    p,
    features: about.features,
    cells,
    numbers,
    model: about.linear ? linearModel(about, doubles) : null,
    coordinates: [],
    names: about.coordinates,
    t2: doubles('t2'),
    spe: doubles('spe'),
    distance: null,
    pValue: doubles('p_value'),
    limits: limitsOf(about, doubles),
    group: (arrays.get('group')?.values as Uint32Array | undefined) ?? null,
    groups: about.answers.groups ?? 0,
    probabilities: (arrays.get('probabilities')?.values as Float32Array | undefined) ?? null,
    carried,
    rowName: rowNames(id ?? null, numbers),
    array: doubles,
    grid: (arrays.get('grid')?.values as Float32Array | undefined) ?? null,
    columns: columnMoments(cells),
  };
  if (data.model) answerAll(data, data.model);
  else if (about.answers.map) project(data, arrays.get('directions')!.shape[1], doubles);
  else if (about.answers.coordinates) spread(data, arrays.get('coordinates')!.shape[1], arrays.get('coordinates')!.values);
  return data;
}

function carriedColumn(told: About['carried'][number], values: ArrayLike<number>): Carried {
  const { name, labels } = told;
  if (labels) {
    const codes = Uint32Array.from(values);
    const few = labels.length <= MOST_LABELS;
    return { name, numbers: null, codes: few ? codes : null, labels: few ? labels : [], text: (row) => labels[codes[row]!]! };
  }
  const numbers = Float64Array.from(values);
  const distinct = new Set<number>();
  for (const x of numbers) if (distinct.size <= 12) distinct.add(x);
  const whole = distinct.size <= 12 && [...distinct].every((x) => Number.isNaN(x) || Number.isInteger(x));
  const order = [...distinct].sort((a, b) => (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b));
  const text = (x: number) => (Number.isNaN(x) ? '' : String(x));
  const place = new Map(order.map((x, code) => [x, code]));
  const codes = whole ? Uint32Array.from(numbers, (x) => place.get(x)!) : null;
  return { name, numbers, codes, labels: whole ? order.map(text) : [], text: (row) => text(numbers[row]!) };
}

function linearModel(about: About, doubles: (name: string) => Float64Array | null): LinearModel {
  const { posterior, proper, degrees_of_freedom } = about.linear!;
  const [mean, loadings] = [doubles('mean')!, doubles('loadings')!];
  const p = mean.length;
  return new LinearModel({
    p,
    q: p > 0 ? loadings.length / p : 0,
    mean,
    loadings,
    noise: doubles('noise')!,
    directions: doubles('directions')!,
    turn: doubles('turn'),
    scale: posterior ? null : doubles('scale'),
    posterior,
    proper,
    degreesOfFreedom: degrees_of_freedom,
  });
}

function limitsOf(about: About, doubles: (name: string) => Float64Array | null): Limits | null {
  const told = about.answers.limits;
  if (!told) return null;
  const [all, t2, spe] = [doubles('limits'), doubles('t2_limit'), doubles('spe_limit')];
  const complete = all ? { t2: all[0]!, spe: all[1]! } : null;
  return { level: told.level, complete, t2: (row) => t2?.[row] ?? complete?.t2 ?? NaN, spe: (row) => spe?.[row] ?? complete?.spe ?? NaN };
}

/** Coordinates, T², SPE, distances and p-values of all rows. */
function answerAll(data: Data, model: LinearModel): void {
  const { n, p } = data;
  const q = model.q;
  const coordinates = Array.from({ length: q }, () => new Float64Array(n));
  const [t2, spe, distance, pValue] = [new Float64Array(n), new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  const row = new Float64Array(p);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < p; j++) row[j] = data.cells.value(i, j);
    const answer = model.answer(row);
    for (let k = 0; k < q; k++) coordinates[k]![i] = answer.coordinates[k]!;
    t2[i] = answer.t2;
    spe[i] = answer.spe;
    distance[i] = answer.distance;
    pValue[i] = model.parts.proper ? model.pValue(answer.distance, answer.observed) : NaN;
  }
  Object.assign(data, { coordinates, t2, spe, distance: model.parts.proper ? distance : null, pValue: model.parts.proper ? pValue : null });
}

/** Least-squares coordinates on directions that are for drawing only. */
function project(data: Data, m: number, doubles: (name: string) => Float64Array | null): void {
  const { n, cells } = data;
  const [mean, directions, scale] = [doubles('mean')!, doubles('directions')!, doubles('scale')];
  const known = new Map<string, Float64Array>();
  data.coordinates = Array.from({ length: m }, () => new Float64Array(n));
  data.names = Array.from({ length: m }, (_, k) => `direction ${k + 1}`);
  for (let i = 0; i < n; i++) {
    const row = cells.row(i);
    const key = patternKey(row);
    const observed = Array.from(row.keys()).filter((j) => !Number.isNaN(row[j]!));
    const inverse = known.get(key) ?? projectorOf({ q: m, directions, scale }, observed);
    if (known.size < 5000) known.set(key, inverse);
    const b = new Float64Array(m);
    for (const j of observed) for (let k = 0; k < m; k++) b[k]! += (directions[j * m + k]! * (row[j]! - mean[j]!)) / (scale ? scale[j]! ** 2 : 1);
    for (let k = 0; k < m; k++) for (let l = 0; l < m; l++) data.coordinates[k]![i]! += inverse[k * m + l]! * b[l]!;
  }
}

function spread(data: Data, m: number, values: ArrayLike<number>): void {
  data.coordinates = Array.from({ length: m }, (_, k) => Float64Array.from({ length: data.n }, (_, i) => values[i * m + k]!));
  data.names = data.about.coordinates.slice(0, m);
}

function columnMoments(cells: Cells): Data['columns'] {
  const empty = () => new Float64Array(cells.p);
  const columns = { mean: empty(), deviation: empty(), low: empty(), high: empty() };
  for (let j = 0; j < cells.p; j++) {
    const column = cells.column(j);
    const { mean, deviation } = moments(column);
    const [low, high] = extent(column);
    for (const [name, value] of Object.entries({ mean, deviation, low, high })) columns[name as keyof Data['columns']][j] = value;
  }
  return columns;
}

/** Least and largest of all cells; without rows, three deviations of the model around its mean. */
export function cellRange({ n, p, model, columns }: Data): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (let j = 0; j < p; j++) {
    const reach = 3 * (model?.featureDeviation(j) ?? 1);
    const middle = model?.parts.mean[j] ?? 0;
    low = Math.min(low, n > 0 ? columns.low[j]! : middle - reach);
    high = Math.max(high, n > 0 ? columns.high[j]! : middle + reach);
  }
  return low < high ? [low, high] : [low - 1, high + 1];
}
