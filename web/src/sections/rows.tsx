// Rows: how far each lies from what the model expects, and why.
import { Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { componentWords } from '../about';
import { colouring } from '../colouring';
import { command } from '../commands';
import { cellRange, otherColumns, type Data, type Limits } from '../data';
import { count, fixed, label, measured, number, plural, probability } from '../format';
import { contributions, type CellTold } from '../maths/contributions';
import { Figure } from '../plots/figure';
import { Bars } from '../plots/lines';
import { PixelImage } from '../plots/picture';
import { Scatter } from '../plots/scatter';
import { Table, type Content } from '../plots/table';
import { colourBy, dark, focus, place, select, selection } from '../state';
import { features, numbers, rowNames } from './columns';
import { decoderOf } from './explorer';
import { Legend, hoverText } from './latent';

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
  const order = useMemo(() => Float64Array.from({ length: data.n }, (_, i) => data.numbers[i]! + 1), [data]);
  const { t2, spe, limits } = data;
  if (!spe) return null;
  const novelty = data.about.answers.novelty;
  const lines = limits?.complete ?? null;
  return (
    <Figure
      title="Distances"
      file="distances"
      wide
      command={t2 || novelty ? command(data.about, 'score', limits ? `--limits ${limits.level}` : '') : command(data.about, 'reconstruct')}
      caption={
        <>
          {t2
            ? 'T² is the squared distance within the plane of the components, in units of their variance; SPE that from the plane, in the units of the data. The scales are those of roots.'
            : novelty
              ? `The squared distance of each row from what the ${componentWords(data.about).many} can express, in the model’s own space.`
              : 'The squared distance of each row from what the model makes of it.'}{' '}
          {limits && t2 && limitsInWords(data, limits)}{' '}
          Click a row to {tells(data) ? 'see why' : 'look at it'}; hold Shift to select rows.
        </>
      }
      table={() => judgements(data, data.n)}
    >
      <Legend colours={colours} shapes={null} data={data} />
      <Scatter
        label={`Distances of ${plural(data.n, 'row')}`}
        x={t2 ?? order}
        y={spe}
        xName={t2 ? 'T² (within the plane)' : 'row'}
        yName={t2 ? 'SPE (from the plane)' : distanceName(data)}
        colours={colours.words}
        mask={selection.value}
        root={t2 ? 'both' : 'y'}
        height={440}
        include={lines ? [0, 0, finite(lines.t2), finite(lines.spe)] : undefined}
        onBrush={(rows, add) => select(data, rows, add)}
        onPick={(row) => (focus.value = row)}
        hover={(row) => hoverText(data, row)}
      >
        {(view) => (
          <>
            {lines && Number.isFinite(lines.t2) && <line class="dashed" x1={view.x(lines.t2)} x2={view.x(lines.t2)} y1={0} y2={view.height} />}
            {lines && lines.spe > 0 && <line class="dashed" x1={0} x2={view.width} y1={view.y(lines.spe)} y2={view.y(lines.spe)} />}
            {focus.value !== null && focus.value < data.n && <circle class="focus" cx={view.px[focus.value]} cy={view.py[focus.value]} r={9} />}
          </>
        )}
      </Scatter>
    </Figure>
  );
}

const finite = (x: number): number => (Number.isFinite(x) ? x : 0);

/** Rows beyond one of their limits. */
export function beyondLimits(data: Data, limits: Limits): number {
  let outside = 0;
  // A limit of 0 says that rows lie in the plane for certain: what is left is rounding.
  const above = (x: number, limit: number) => limit > 0 && x > limit;
  for (let i = 0; i < data.n; i++) if (above(data.t2![i]!, limits.t2(i)) || above(data.spe![i]!, limits.spe(i))) outside++;
  return outside;
}

function limitsInWords(data: Data, limits: Limits): string {
  const outside = beyondLimits(data, limits);
  const share = `${fixed(100 * (1 - limits.level), 0)} %`;
  const own = data.about.answers.limits!.each && limits.complete ? 'Rows with missing values have limits of their own, by the cells that they have. ' : '';
  const lines = limits.complete
    ? `Dashed lines are the control limits that ${share} of complete rows of the model exceed: T² ${number(limits.complete.t2)} and SPE ${number(limits.complete.spe)}. `
    : `Control limits, which ${share} of rows of the model exceed, are those of the group of each row. `;
  const who = outside === 0 ? 'No row' : plural(outside, 'row');
  return `${lines}${own}${who} of ${count(data.n)} ${outside > 1 ? 'lie beyond one of their' : 'lies beyond one of its'} limits.`;
}

/** What the squared distance of a row is called: SPE of a plane, novelty without a density, or that from the row rebuilt. */
const distanceName = (data: Data): string => (data.t2 ? 'SPE' : data.about.answers.novelty ? 'novelty' : 'squared distance');

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
      <Table {...judgements(data, Math.min(data.n, 100), order)} file="unusual-rows" first={8} />
    </div>
  );
}

function judgements(data: Data, rows: number, order?: number[]): Content {
  const of = (at: number) => (order ? order[at]! : at);
  const statistic = (name: string, values: Float64Array | null, show: (x: number) => string) => (values ? [numbers(name, (at) => values[of(at)]!, show)] : []);
  return {
    caption: 'Distances of rows',
    rows,
    onPick: (at) => (focus.value = of(at)),
    picked: focus.value === null ? null : order ? order.indexOf(focus.value) : focus.value,
    columns: [
      rowNames(data, of),
      ...statistic('p-value', data.pValue, probability),
      ...statistic('T²', data.t2, number),
      ...statistic(distanceName(data), data.spe, number),
      ...(data.group ? [numbers('group', (at) => data.group![of(at)]! + 1)] : []),
      ...otherColumns(data).slice(0, 4).map((column) => ({
        name: label(column.name, 24),
        left: true,
        show: (at: number) => <bdi class="name">{label(column.text(of(at)) || '–', 40)}</bdi>,
        sort: (at: number) => (column.numbers ? column.numbers[of(at)]! : column.text(of(at))),
      })),
    ],
  };
}

function Row({ data, row }: { data: Data; row: number }) {
  const cells = useMemo(() => data.cells.row(row), [data, row]);
  const told = useMemo(() => tellings(data, row, cells), [data, row]);
  const near = useMemo(() => neighbours(data, row, 6), [data, row]);
  const explorable = useMemo(() => decoderOf(data) !== null, [data]);
  const { image } = data.about;
  const range = useMemo(() => cellRange(data), [data]);
  return (
    <div class="block row">
      <div class="head">
        <h3>
          {focus.value === null && 'The most unusual row: '}
          <bdi>{data.rowName(row)}</bdi>
        </h3>
        <div class="actions">
          {explorable && (
            <button type="button" onClick={() => (place.value = data.coordinates.map((z) => z[row]!))}>
              Show it in the explorer
            </button>
          )}
        </div>
      </div>
      <p role="status">{judgement(data, row)}</p>
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
              <PixelImage size={image} row={shown} range={range} width={140} label={text} />
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
            <Fragment key={i}>
              {k > 0 && ', '}
              <button type="button" class="link" onClick={() => (focus.value = i)}>
                <bdi>{data.rowName(i)}</bdi>
              </button>
            </Fragment>
          ))}
          .
        </p>
      )}
    </div>
  );
}

/** Whether anything can be said of the cells of a row one by one. */
const tells = ({ model, group }: Data): boolean => (model ? model.parts.proper : group !== null);

/** What the rest of the row says of each cell; of groups, what the rows of its group say. */
function tellings(data: Data, row: number, cells: Float64Array): CellTold[] | null {
  if (!tells(data)) return null;
  if (data.model) return contributions(data.model, cells);
  const group = data.group![row]!;
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
  const { t2, spe, limits } = data;
  const limit = (x: number | undefined) => (x !== undefined && Number.isFinite(x) ? ` (limit ${number(x)})` : '');
  const statistics = [t2 ? `T² is ${number(t2[row])}${limit(limits?.t2(row))}` : '', spe ? `${t2 ? 'SPE' : `Its ${distanceName(data)} is`} ${number(spe[row])}${limit(limits?.spe(row))}` : ''];
  const told = statistics.filter((text) => text !== '');
  if (told.length > 0) parts.push(`${told.join(' and ')}.`);
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
    .map(({ feature, value, expected, deviation }) => `${label(data.features[feature]!, 60)} is ${measured(value, deviation)}; ${who} ${measured(expected, deviation)} ± ${measured(deviation, deviation)}.`);
  if (surprising.length > 6) sentences.push(`${plural(surprising.length - 6, 'more cell surprises', 'more cells surprise')}.`);
  if (surprising.length === 0) sentences.push('No cell surprises given the others.');
  const missing = told.filter((cell) => Number.isNaN(cell.value));
  for (const { feature, expected, deviation } of missing.slice(0, 3)) sentences.push(`${label(data.features[feature]!, 60)} is missing; ${who} ${measured(expected, deviation)} ± ${measured(deviation, deviation)}.`);
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
      table={() => ({
        caption: 'Contributions of the cells',
        rows: told.length,
        start: [4, true],
        columns: [
          features(data),
          numbers('value', (j) => told[j]!.value),
          numbers('expected', (j) => told[j]!.expected),
          numbers('±', (j) => told[j]!.deviation),
          numbers('cell (χ²₁)', (j) => told[j]!.cell),
          numbers('share of T²', (j) => told[j]!.t2),
          numbers('share of SPE', (j) => told[j]!.spe),
          numbers('rebuilt', (j) => told[j]!.rebuilt),
        ],
      })}
    >
      <Bars label="Contributions of the cells" bars={bars} xName="observed minus expected, in deviations" row={19} />
    </Figure>
  );
}
