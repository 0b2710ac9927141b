// Rows: how far each lies from what the model expects, and why.
import { useMemo } from 'preact/hooks';
import { colouring } from '../colouring';
import { command } from '../commands';
import type { Data } from '../data';
import { count, fixed, label, measured, number, plural, probability } from '../format';
import { contributions, type CellTold } from '../maths/contributions';
import { Figure } from '../plots/figure';
import { Bars } from '../plots/lines';
import { PixelImage } from '../plots/picture';
import { Scatter } from '../plots/scatter';
import { Table } from '../plots/table';
import { colourBy, dark, focus, place, select, selection } from '../state';
import { Legend, hoverText } from './latent';

const TAIL = 0.01;

export function Rows({ data }: { data: Data }) {
  const order = useMemo(() => unusualFirst(data), [data]);
  return (
    <>
      <Distances data={data} />
      <Worst data={data} order={order} />
      <Row data={data} row={focus.value !== null && focus.value < data.n ? focus.value : order[0]!} />
    </>
  );
}

function Distances({ data }: { data: Data }) {
  const isDark = dark.value;
  const colours = useMemo(() => colouring(data, colourBy.value, isDark), [data, colourBy.value, isDark]);
  const limits = useMemo(() => (data.model?.parts.proper ? data.model.limits(TAIL) : null), [data]);
  const order = useMemo(() => Float64Array.from({ length: data.n }, (_, i) => data.numbers[i]! + 1), [data]);
  const { t2, spe } = data;
  if (!spe) return null;
  const novelty = data.about.answers.novelty;
  const outside = limits && t2 ? t2.reduce((sum, v, i) => sum + (v > limits.t2 || spe[i]! > limits.spe ? 1 : 0), 0) : null;
  return (
    <Figure
      title="Distances"
      file="distances"
      wide
      command={command(data.about, 'score')}
      caption={
        <>
          {t2
            ? 'T² is the squared distance within the plane of the components, in units of their variance; SPE that from the plane, in the units of the data. The scales are those of roots.'
            : novelty
              ? 'The squared distance of each row from the plane of the components in the model’s own space.'
              : 'The squared distance of each row from what the model makes of it.'}{' '}
          {limits && outside !== null && `Dashed lines are the limits that ${100 * TAIL} % of complete rows of the model exceed: T² ${number(limits.t2)} and SPE ${number(limits.spe)}. ${plural(outside, 'row')} of ${count(data.n)} ${outside === 1 ? 'lies' : 'lie'} beyond one of them.`}{' '}
          Click a row to see why; hold Shift to select rows.
        </>
      }
      table={() => <Judgements data={data} rows={data.n} />}
    >
      <Legend colours={colours} shapes={null} data={data} />
      <Scatter
        label={`Distances of ${plural(data.n, 'row')}`}
        x={t2 ?? order}
        y={spe}
        xName={t2 ? 'T² (within the plane)' : 'row'}
        yName={novelty ? 'novelty' : 'SPE (from the plane)'}
        colours={colours.words}
        mask={selection.value}
        root
        height={440}
        include={limits ? [0, 0, limits.t2, limits.spe] : undefined}
        onBrush={(rows, add) => select(data, rows, add)}
        onPick={(row) => (focus.value = row)}
        hover={(row) => hoverText(data, row)}
      >
        {(view) => (
          <>
            {limits && (
              <>
                <line class="dashed" x1={view.x(limits.t2)} x2={view.x(limits.t2)} y1={0} y2={view.height} />
                <line class="dashed" x1={0} x2={view.width} y1={view.y(limits.spe)} y2={view.y(limits.spe)} />
              </>
            )}
            {focus.value !== null && focus.value < data.n && <circle class="focus" cx={view.px[focus.value]} cy={view.py[focus.value]} r={9} />}
          </>
        )}
      </Scatter>
    </Figure>
  );
}

/** Rows by how unusual they are: small p-values first, then large distances. */
export function unusualFirst(data: Data): number[] {
  const far = (i: number) => data.distance?.[i] ?? data.spe?.[i] ?? 0;
  const p = (i: number) => data.pValue?.[i] ?? 0;
  return Array.from({ length: data.n }, (_, i) => i).sort((a, b) => p(a) - p(b) || far(b) - far(a));
}

function Worst({ data, order }: { data: Data; order: number[] }) {
  return (
    <div class="block">
      <h3>The most unusual rows</h3>
      <Judgements data={data} rows={Math.min(data.n, 100)} order={order} first={8} />
    </div>
  );
}

function Judgements({ data, rows, order, first }: { data: Data; rows: number; order?: number[]; first?: number }) {
  const of = (at: number) => (order ? order[at]! : at);
  const statistic = (name: string, values: Float64Array | null, show: (x: number) => string) =>
    values ? [{ name, show: (at: number) => show(values[of(at)]!), sort: (at: number) => values[of(at)]! }] : [];
  return (
    <Table
      caption="Distances of rows"
      file={order ? 'unusual-rows' : 'distances'}
      rows={rows}
      first={first ?? 20}
      onPick={(at) => (focus.value = of(at))}
      picked={focus.value === null ? null : order ? order.indexOf(focus.value) : focus.value}
      columns={[
        { name: 'row', left: true, show: (at) => <bdi class="name">{data.rowName(of(at))}</bdi>, sort: (at) => data.numbers[of(at)]! + 1 },
        ...statistic('p-value', data.pValue, probability),
        ...statistic('T²', data.t2, number),
        ...statistic('SPE', data.spe, number),
        ...(data.group ? [{ name: 'group', show: (at: number) => `${data.group![of(at)]! + 1}`, sort: (at: number) => data.group![of(at)]! }] : []),
        ...data.carried.slice(0, 4).map((column) => ({
          name: label(column.name, 24),
          left: true,
          show: (at: number) => <bdi class="name">{label(column.text(of(at)) || '–', 40)}</bdi>,
          sort: (at: number) => (column.numbers ? column.numbers[of(at)]! : column.text(of(at))),
        })),
      ]}
    />
  );
}

function Row({ data, row }: { data: Data; row: number }) {
  const cells = useMemo(() => data.cells.row(row), [data, row]);
  const told = useMemo(() => tellings(data, row, cells), [data, row]);
  const near = useMemo(() => neighbours(data, row, 6), [data, row]);
  const { image } = data.about;
  return (
    <div class="block row" aria-live="polite">
      <div class="head">
        <h3>
          {focus.value === null && 'The most unusual row: '}
          <bdi>{data.rowName(row)}</bdi>
        </h3>
        <div class="actions">
          {data.coordinates.length > 0 && data.model && (
            <button type="button" onClick={() => (place.value = data.coordinates.map((z) => z[row]!))}>
              Show it in the explorer
            </button>
          )}

        </div>
      </div>
      <p>{judgement(data, row)}</p>
      {told && (
        <ul class="sentences">
          {sentencesOf(data, told).map((sentence, k) => (
            <li key={k}>
              <bdi>{sentence}</bdi>
            </li>
          ))}
        </ul>
      )}
      {image && told && (
        <div class="images small">
          {[
            { cells, text: 'as observed' },
            { cells: Float64Array.from(told, (cell) => cell.rebuilt), text: 'rebuilt' },
            { cells: Float64Array.from(told, (cell) => cell.expected), text: 'each pixel as the others expect it' },
          ].map(({ cells: shown, text }) => (
            <div key={text}>
              <PixelImage size={image} row={shown} range={imageRange(data)} width={140} label={text} />
              <p class="quiet">{text}</p>
            </div>
          ))}
        </div>
      )}
      {told && data.model && <Contributions data={data} row={row} told={told} />}
      {near.length > 0 && (
        <p>
          Its nearest rows in the latent space:{' '}
          {near.map((i, k) => (
            <>
              {k > 0 && ', '}
              <button key={i} type="button" class="link" onClick={() => (focus.value = i)}>
                <bdi>{data.rowName(i)}</bdi>
              </button>
            </>
          ))}
          .
        </p>
      )}
    </div>
  );
}

function imageRange(data: Data): [number, number] {
  const known = ranges.get(data);
  if (known) return known;
  let [low, high] = [Infinity, -Infinity];
  for (let j = 0; j < data.p; j++)
    for (const x of data.cells.column(j)) {
      if (x < low) low = x;
      if (x > high) high = x;
    }
  const found: [number, number] = [low, high];
  ranges.set(data, found);
  return found;
}
const ranges = new WeakMap<Data, [number, number]>();

/** What the rest of the row says of each cell; of groups, what the rows of its group say. */
function tellings(data: Data, row: number, cells: Float64Array): CellTold[] | null {
  if (data.model) return data.model.parts.proper ? contributions(data.model, cells) : null;
  if (!data.group) return null;
  const group = data.group[row]!;
  return Array.from(cells, (value, feature) => {
    const { mean, deviation } = groupMoments(data, group, feature);
    const gap = (value - mean) / deviation;
    return { feature, value, expected: mean, deviation, cell: Number.isFinite(gap) ? gap * gap : 0, t2: 0, spe: 0, rebuilt: mean };
  });
}

function groupMoments(data: Data, group: number, feature: number): { mean: number; deviation: number } {
  let [n, mean, square] = [0, 0, 0];
  for (let i = 0; i < data.n; i++) {
    if (data.group![i] !== group) continue;
    const x = data.cells.value(i, feature);
    if (Number.isNaN(x)) continue;
    n++;
    const d = x - mean;
    mean += d / n;
    square += d * (x - mean);
  }
  return { mean, deviation: n > 1 ? Math.sqrt(square / (n - 1)) : NaN };
}

function judgement(data: Data, row: number): string {
  const parts: string[] = [];
  const p = data.pValue?.[row];
  if (p !== undefined && Number.isFinite(p))
    parts.push(p < 0.001 ? `It does not belong: a row of the model lies as far out with probability ${probability(p)}.` : p < 0.05 ? `It is unusual: a row of the model lies as far out with probability ${probability(p)}.` : `It is an ordinary row: its p-value is ${probability(p)}.`);
  const numbers = [data.t2 ? `T² is ${number(data.t2[row])}` : '', data.spe ? `SPE ${number(data.spe[row])}` : ''].filter((text) => text !== '');
  if (numbers.length > 0) parts.push(`${numbers.join(' and ')}.`);
  if (data.group) parts.push(`It is in group ${data.group[row]! + 1}${data.probabilities ? ` with probability ${fixed(data.probabilities[row * data.groups + data.group[row]!]!, 3)}` : ''}.`);
  const missing = data.cells.missingIn(row);
  if (missing > 0) parts.push(missing === data.p ? 'It has no value at all.' : `${plural(missing, 'cell is', 'cells are')} missing.`);
  return parts.join(' ');
}

/** The cells that surprise most, and those that are missing. */
export function sentencesOf(data: Data, told: CellTold[]): string[] {
  const who = data.model ? 'the rest of the row says' : 'rows of its group have';
  const surprising = told.filter((cell) => cell.cell >= 3.84).sort((a, b) => b.cell - a.cell);
  const sentences = surprising
    .slice(0, 6)
    .map(({ feature, value, expected, deviation }) => `${label(data.features[feature]!, 60)} is ${measured(value, deviation)}; ${who} ${measured(expected, deviation)} ± ${number(Number(deviation.toPrecision(2)))}.`);
  if (surprising.length > 6) sentences.push(`${surprising.length - 6} more cells are as surprising.`);
  if (surprising.length === 0) sentences.push('No cell surprises given the others.');
  const missing = told.filter((cell) => Number.isNaN(cell.value));
  for (const { feature, expected, deviation } of missing.slice(0, 3)) sentences.push(`${label(data.features[feature]!, 60)} is missing; ${who} ${measured(expected, deviation)} ± ${number(Number(deviation.toPrecision(2)))}.`);
  return sentences;
}

/** The rows that lie nearest in the latent space. */
export function neighbours(data: Data, row: number, most: number): number[] {
  const z = data.coordinates;
  if (z.length === 0) return [];
  const distance = new Float64Array(data.n);
  for (const column of z) for (let i = 0; i < data.n; i++) distance[i]! += (column[i]! - column[row]!) ** 2;
  const best: number[] = [];
  for (let i = 0; i < data.n; i++) {
    if (i === row || (best.length >= most && distance[i]! >= distance[best[best.length - 1]!]!)) continue;
    best.push(i);
    best.sort((a, b) => distance[a]! - distance[b]! || a - b);
    if (best.length > most) best.pop();
  }
  return best;
}

function Contributions({ data, row, told }: { data: Data; row: number; told: CellTold[] }) {
  const order = [...told].filter((cell) => !Number.isNaN(cell.value)).sort((a, b) => b.cell - a.cell).slice(0, 20);
  const bars = order.map((cell) => ({ name: data.features[cell.feature]!, value: (cell.value - cell.expected) / cell.deviation, text: measured(cell.value, cell.deviation) }));
  return (
    <Figure
      title="What each cell contributes"
      file={`contributions-row-${data.numbers[row]! + 1}`}
      command={command(data.about, 'score', '--contributions')}
      caption="How far each cell lies from what the rest of the row says, in standard deviations; beyond ±2 is surprising."
      table={() => (
        <Table
          caption="Contributions of the cells"
          file={`contributions-row-${data.numbers[row]! + 1}`}
          rows={told.length}
          start={[4, true]}
          columns={[
            { name: 'feature', left: true, show: (j) => <bdi class="name">{label(data.features[j]!)}</bdi>, sort: (j) => data.features[j]! },
            { name: 'value', show: (j) => number(told[j]!.value), sort: (j) => told[j]!.value },
            { name: 'expected', show: (j) => number(told[j]!.expected), sort: (j) => told[j]!.expected },
            { name: '±', show: (j) => number(told[j]!.deviation), sort: (j) => told[j]!.deviation },
            { name: 'cell (χ²₁)', show: (j) => number(told[j]!.cell), sort: (j) => told[j]!.cell },
            { name: 'share of T²', show: (j) => number(told[j]!.t2), sort: (j) => told[j]!.t2 },
            { name: 'share of SPE', show: (j) => number(told[j]!.spe), sort: (j) => told[j]!.spe },
            { name: 'rebuilt', show: (j) => number(told[j]!.rebuilt), sort: (j) => told[j]!.rebuilt },
          ]}
        />
      )}
    >
      <Bars label="Contributions of the cells" bars={bars} xName="observed minus expected, in deviations" row={19} />
    </Figure>
  );
}
