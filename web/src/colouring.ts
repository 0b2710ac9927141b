// What points can be coloured and shaped by: carried columns, groups, statistics and features.
import { amounts, css, groupColour, pixel, type Rgb } from './colours';
import type { Data } from './data';
import { label, number } from './format';
import { extent } from './maths/statistics';

export interface Colouring {
  name: string;
  /** Colours of the points, as words of pixels. */
  words: Uint32Array;
  legend: { label: string; colour: string; code: number }[] | null;
  ramp: { from: string; to: string } | null;
}

export interface Option {
  value: string;
  label: string;
}

/** Groups of rows that colour or shape can show. */
function groupings(data: Data): Map<string, { name: string; codes: Uint32Array; labels: string[] }> {
  const found = new Map<string, { name: string; codes: Uint32Array; labels: string[] }>();
  if (data.group)
    found.set('group', {
      name: 'group',
      codes: data.group,
      labels: Array.from({ length: data.groups }, (_, k) => `group ${k + 1}`),
    });
  data.carried.forEach((column, index) => {
    if (column.codes) found.set(`carried ${index}`, { name: column.name, codes: column.codes, labels: column.labels });
  });
  return found;
}

function amountsOf(data: Data): Map<string, { name: string; values: Float64Array }> {
  const found = new Map<string, { name: string; values: Float64Array }>();
  data.carried.forEach((column, index) => {
    if (column.numbers && !column.codes) found.set(`carried ${index}`, { name: column.name, values: column.numbers });
  });
  if (data.t2) found.set('t2', { name: 'T² (within the plane)', values: data.t2.map(Math.sqrt) });
  if (data.spe) found.set('spe', { name: 'SPE (from the plane)', values: data.spe.map(Math.sqrt) });
  return found;
}

export function colourOptions(data: Data): Option[] {
  const options = [{ value: 'none', label: 'nothing' }];
  for (const [value, { name }] of [...groupings(data), ...amountsOf(data)]) options.push({ value, label: label(name, 40) });
  data.features.slice(0, 300).forEach((name, j) => options.push({ value: `feature ${j}`, label: label(name, 40) }));
  return options;
}

export function shapeOptions(data: Data): Option[] {
  const few = [...groupings(data)].filter(([, { labels }]) => labels.length <= 6);
  return [{ value: 'none', label: 'nothing' }, ...few.map(([value, { name }]) => ({ value, label: label(name, 40) }))];
}

/** Groups that colours can tell apart. */
const DISTINCT = 12;

/** The first grouping that colours can show, the id last; none where each row would have a colour of its own. */
export function defaultColour(data: Data): string {
  const few = [...groupings(data)].filter(([key, { labels }]) => key === 'group' || (labels.length <= DISTINCT && labels.length < data.n));
  const id = `carried ${data.about.id}`;
  return (few.find(([key]) => key !== id) ?? few[0])?.[0] ?? 'none';
}

export function colouring(data: Data, by: string, dark: boolean): Colouring {
  const words = new Uint32Array(data.n);
  const group = groupings(data).get(by);
  if (group) {
    const colours = group.labels.map((_, code) => groupColour(code, dark));
    for (let i = 0; i < data.n; i++) words[i] = pixel(colours[group.codes[i]!] ?? [128, 128, 128]);
    const legend = group.labels.map((text, code) => ({ label: label(text, 40), colour: css(colours[code]!), code }));
    return { name: label(group.name, 60), words, legend, ramp: null };
  }
  const feature = by.startsWith('feature ') ? Number(by.slice(8)) : null;
  const amount =
    feature !== null && feature < data.p
      ? { name: data.features[feature]!, values: data.cells.column(feature) }
      : amountsOf(data).get(by);
  if (amount) {
    const [low, high] = extent(amount.values);
    const missing: Rgb = dark ? [90, 94, 102] : [190, 190, 190];
    for (let i = 0; i < data.n; i++) {
      const x = amount.values[i]!;
      words[i] = pixel(Number.isNaN(x) ? missing : amounts(high > low ? (x - low) / (high - low) : 0.5));
    }
    const isRoot = by === 't2' || by === 'spe';
    const text = (x: number) => number(isRoot ? x * x : x);
    return { name: label(amount.name, 60), words, legend: null, ramp: { from: text(low), to: text(high) } };
  }
  words.fill(pixel(groupColour(0, dark)));
  return { name: '', words, legend: null, ramp: null };
}

export function shapesOf(data: Data, by: string): { codes: Uint32Array; labels: string[] } | null {
  const found = groupings(data).get(by);
  return found ? { codes: found.codes, labels: found.labels } : null;
}
