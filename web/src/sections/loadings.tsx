// Loadings: how features and components belong together, as numbers, colours, bars and a circle.
import { useMemo, useState } from 'preact/hooks';
import { componentWords } from '../about';
import { css, signed } from '../colours';
import { inspect } from '../commands';
import type { Data } from '../data';
import { fixed, label, percent } from '../format';
import { Check, Choice, Figure, Select } from '../plots/figure';
import { Heat, SignedLegend } from '../plots/heat';
import { Bars } from '../plots/lines';
import { SignedImage } from '../plots/picture';
import type { Content } from '../plots/table';
import { useWidth } from '../plots/size';
import { axes, dark } from '../state';
import { features, numbers } from './columns';

export type Scale = 'correlation' | 'squared' | 'given';
const SCALES: [Scale, string][] = [
  ['correlation', 'Correlations'],
  ['squared', 'Squared'],
  ['given', 'As fitted'],
];

/** Loadings on a scale: correlations of features and components, their squares, or in the units of the data. */
export function loadingsOf(data: Data, scale: Scale): (j: number, k: number) => number {
  const q = data.model!.q;
  const [structure, directions] = [data.array('structure')!, data.array('directions')!];
  if (scale === 'given') return (j, k) => directions[j * q + k]!;
  return (j, k) => (scale === 'squared' ? structure[j * q + k]! ** 2 : structure[j * q + k]!);
}

export function Loadings({ data }: { data: Data }) {
  const [scale, setScale] = useState<Scale>('correlation');
  const [sorted, setSorted] = useState(false);
  const q = data.model!.q;
  const value = useMemo(() => loadingsOf(data, scale), [data, scale]);
  const order = useMemo(() => ordered(data, sorted), [data, sorted]);
  const most = useMemo(() => (scale === 'given' ? largest(data, value) : 1), [value]);
  const shown = Math.min(q, 40);
  const names = useMemo(() => order.map((j) => data.features[j]!), [order]);
  const cell = useMemo(() => (row: number, k: number) => value(order[row]!, k), [value, order]);
  const columns = useMemo(() => data.names.slice(0, shown), [shown]);
  const words = componentWords(data.about);
  return (
    <>
      {data.about.image && <Images data={data} />}
      <Figure
        title={`Features and ${words.many}`}
        file="loadings"
        command={inspect(data.about, '--json')}
        controls={
          <>
            <Choice label="Scale" value={scale} options={SCALES} onChange={setScale} />
            <Check label="features that belong together beside each other" value={sorted} onChange={setSorted} />
          </>
        }
        caption={
          <>
            {scale === 'given'
              ? `What one unit of a ${words.one} does to each feature, in the units of the data.`
              : scale === 'squared'
                ? `Squared correlations: the share of a feature’s variance that goes with each ${words.one}.`
                : `Correlations of features and ${words.many} under the model.`}{' '}
            <SignedLegend most={most} />
          </>
        }
        table={() => loadingTable(data, value, most)}
      >
        <Heat label="Loadings of features on components" rows={names} columns={columns} value={cell} most={most} />
      </Figure>
      <LoadingBars data={data} />
      {q >= 2 && <Circle data={data} />}
    </>
  );
}

/** The largest loading; 1 where all are 0. */
function largest(data: Data, value: (j: number, k: number) => number): number {
  let found = 0;
  for (let j = 0; j < data.p; j++) for (let k = 0; k < data.model!.q; k++) found = Math.max(found, Math.abs(value(j, k)));
  return found || 1;
}

function loadingTable(data: Data, value: (j: number, k: number) => number, most: number): Content {
  const isDark = dark.value;
  return {
    caption: 'Loadings',
    file: 'loadings',
    rows: data.p,
    first: 50,
    columns: [
      features(data),
      ...data.names.slice(0, data.model!.q).map((name, k) => ({
        name,
        show: (j: number) => fixed(value(j, k), 3),
        sort: (j: number) => Math.abs(value(j, k)),
        text: (j: number) => value(j, k),
        background: (j: number) => css(signed((0.75 * value(j, k)) / most, isDark)),
      })),
      numbers('explained', (j) => communality(data, j), percent),
    ],
  };
}

/** Each component as an image of what it does to the pixels. */
function Images({ data }: { data: Data }) {
  const q = Math.min(data.model!.q, 36);
  const value = loadingsOf(data, 'given');
  const size = data.about.image!;
  const words = componentWords(data.about);
  return (
    <Figure
      title={`${words.many[0]!.toUpperCase()}${words.many.slice(1)} as images`}
      file="component-images"
      command={inspect(data.about, '--json')}
      caption={`What each ${words.one} does to the pixels: blue rises with it, orange falls. Each image has its own scale.`}
      table={() => loadingTable(data, value, largest(data, value))}
    >
      <div class="images small">
        {Array.from({ length: q }, (_, k) => (
          <div key={k}>
            <SignedImage size={size} value={(at) => value(at, k)} width={Math.min(104, (104 * size.width) / size.height)} label={`The ${words.one} ${data.names[k]} as an image`} />
            <p class="quiet">{data.names[k]}</p>
          </div>
        ))}
      </div>
    </Figure>
  );
}

/** Share of a feature's variance that the components explain: 1 − ψ/variance. */
export function communality(data: Data, j: number): number {
  const variance = data.model!.featureDeviation(j) ** 2;
  return variance > 0 ? 1 - data.model!.parts.noise[j]! / variance : 0;
}

/** Features in their order, or by the component that they belong to most. */
function ordered(data: Data, sorted: boolean): number[] {
  const all = Array.from({ length: data.p }, (_, j) => j);
  if (!sorted) return all;
  const q = data.model!.q;
  const value = loadingsOf(data, 'correlation');
  const strongest = all.map((j) => {
    let best = 0;
    for (let k = 1; k < q; k++) if (Math.abs(value(j, k)) > Math.abs(value(j, best))) best = k;
    return best;
  });
  return all.sort((a, b) => strongest[a]! - strongest[b]! || value(b, strongest[b]!) - value(a, strongest[a]!));
}

interface Interval {
  low: (j: number, k: number) => number;
  high: (j: number, k: number) => number;
  words: string;
  /** What to ask `covary inspect` for. */
  flags: string;
}

/** Intervals of the loadings as they were fitted, where they are known. */
function intervals(data: Data): Interval | null {
  const { facts } = data.about;
  const { loadings_lower: lower, loadings_upper: upper, level } = facts.intervals ?? {};
  const numbers = (of: number[][] | undefined, j: number, k: number) => of?.[j]?.[k] ?? NaN;
  if (lower && upper) return { low: (j, k) => numbers(lower, j, k), high: (j, k) => numbers(upper, j, k), words: `${percent(level ?? 0.95, 0)} intervals`, flags: '--errors' };
  const deviations = data.array('deviations');
  const q = data.model!.q;
  const given = data.array('loadings')!;
  if (deviations)
    return {
      low: (j, k) => given[j * q + k]! - 1.96 * deviations[j * q + k]!,
      high: (j, k) => given[j * q + k]! + 1.96 * deviations[j * q + k]!,
      words: '95 % intervals of the posterior',
      flags: '--json',
    };
  return null;
}

function standardisedErrors(data: Data): number[][] | null {
  return data.about.facts.factors?.standard_errors?.standardised?.loadings ?? null;
}

const MOST_BARS = 30;

function LoadingBars({ data }: { data: Data }) {
  const words = componentWords(data.about);
  const [component, setComponent] = useState(0);
  const q = data.model!.q;
  const k = Math.min(component, q - 1);
  const known = intervals(data);
  const errors = standardisedErrors(data);
  const pattern = data.array('pattern')!;
  const given = data.array('loadings')!;
  const value = (j: number) => (known ? given[j * q + k]! : pattern[j * q + k]!);
  const order = Array.from({ length: data.p }, (_, j) => j)
    .sort((a, b) => Math.abs(value(b)) - Math.abs(value(a)))
    .slice(0, MOST_BARS);
  const bars = order.map((j) => ({
    name: data.features[j]!,
    value: value(j),
    text: fixed(value(j), 3),
    ...(known ? { low: known.low(j, k), high: known.high(j, k) } : errors?.[j] ? { low: value(j) - 1.96 * errors[j]![k]!, high: value(j) + 1.96 * errors[j]![k]! } : {}),
  }));
  const told = known ? `${known.words}; loadings in the units of the data.` : errors ? '95 % intervals from standard errors; standardised loadings.' : 'Standardised loadings; no intervals are known for this model.';
  const rest = data.p > MOST_BARS ? ` The ${MOST_BARS} largest of ${data.p} are shown.` : '';
  return (
    <Figure
      title={`One ${words.one} at a time`}
      file={`loadings-${data.names[k] ?? k}`}
      command={inspect(data.about, known ? known.flags : errors ? '--errors' : '')}
      controls={<Select label={words.one} value={String(k)} options={data.names.slice(0, q).map((name, i) => ({ value: String(i), label: name }))} onChange={(v) => setComponent(Number(v))} />}
      caption={`The largest loadings first. ${told}${rest}`}
      table={() => ({
        caption: `Loadings of ${data.names[k]}`,
        rows: data.p,
        columns: [
          features(data),
          { name: data.names[k]!, show: (j) => fixed(value(j), 4), sort: (j) => Math.abs(value(j)), text: (j) => value(j) },
          ...(known
            ? [
                numbers('from', (j) => known.low(j, k), (x) => fixed(x, 4)),
                numbers('to', (j) => known.high(j, k), (x) => fixed(x, 4)),
              ]
            : []),
        ],
      })}
    >
      <Bars label={`Loadings of ${data.names[k]}`} bars={bars} xName={data.names[k] ?? ''} />
    </Figure>
  );
}

function Circle({ data }: { data: Data }) {
  const [ref, width] = useWidth(420);
  const [a, b] = axes.value.map((k) => Math.min(k, data.model!.q - 1)) as [number, number];
  const value = loadingsOf(data, 'correlation');
  const side = Math.min(width, 460);
  const [middle, radius] = [side / 2, side / 2 - 26];
  const strength = (j: number) => Math.hypot(value(j, a), value(j, b));
  const shown = Array.from({ length: data.p }, (_, j) => j).sort((x, y) => strength(y) - strength(x)).slice(0, 60);
  const named = shown.slice(0, 24);
  return (
    <Figure
      title="Correlation circle"
      file="correlation-circle"
      command={inspect(data.about, '--json')}
      caption={`Features as arrows: their correlations with ${data.names[a]} and ${data.names[b]}, the ${componentWords(data.about).many} of the latent plot. An arrow that reaches the circle is explained by the two.`}
      table={() => ({
        caption: 'Correlations with two components',
        rows: data.p,
        columns: [
          features(data),
          numbers(data.names[a]!, (j) => value(j, a), (x) => fixed(x, 3)),
          numbers(data.names[b]!, (j) => value(j, b), (x) => fixed(x, 3)),
          numbers('length', strength, (x) => fixed(x, 3)),
        ],
      })}
    >
      <div ref={ref} class="centre">
        <svg width={side} height={side} role="img" aria-label={`Correlation circle of ${data.names[a]} and ${data.names[b]}`}>
          <circle class="unit" cx={middle} cy={middle} r={radius} />
          <circle class="unit inner" cx={middle} cy={middle} r={radius / 2} />
          <line class="zero" x1={middle - radius} x2={middle + radius} y1={middle} y2={middle} />
          <line class="zero" x1={middle} x2={middle} y1={middle - radius} y2={middle + radius} />
          <text class="tick" x={middle + radius} y={middle - 6} text-anchor="end">
            {data.names[a]}
          </text>
          <text class="tick" x={middle + 6} y={middle - radius + 12}>
            {data.names[b]}
          </text>
          {shown.map((j) => (
            <line key={j} class="arrow" x1={middle} y1={middle} x2={middle + radius * value(j, a)} y2={middle - radius * value(j, b)} />
          ))}
          {spaced(named.map((j) => ({ j, x: middle + radius * value(j, a), y: middle - radius * value(j, b) }))).map(({ j, x, y }) => (
            <text key={j} class="cell" x={x + (x >= middle ? 5 : -5)} y={y} dy="0.32em" text-anchor={x >= middle ? 'start' : 'end'}>
              {label(data.features[j]!, 16)}
            </text>
          ))}
        </svg>
      </div>
    </Figure>
  );
}

/** Labels with room between them: those of long arrows come first, others give way up or down, or are left out. */
export function spaced<T extends { x: number; y: number }>(labels: T[]): T[] {
  const kept: T[] = [];
  const free = (x: number, y: number) => kept.every((other) => Math.abs(other.y - y) >= 12 || Math.abs(other.x - x) > 90);
  for (const one of labels) {
    const lift = [0, 12, -12, 24, -24].find((by) => free(one.x, one.y + by));
    if (lift !== undefined) kept.push({ ...one, y: one.y + lift });
  }
  return kept;
}
