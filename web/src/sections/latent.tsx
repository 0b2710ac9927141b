// The latent plot: rows as points in the plane of two components, to drag, zoom, colour, label and select.
import { useMemo, useState } from 'preact/hooks';
import { colourOptions, colouring, shapeOptions, shapesOf } from '../colouring';
import { componentWords } from '../about';
import { command } from '../commands';
import type { Data } from '../data';
import { count, fixed, label, plural } from '../format';
import { symmetricEigen } from '../maths/linalg';
import { squaredRadius } from '../maths/special';
import { extent } from '../maths/statistics';
import { Check, Choice, Figure, Select } from '../plots/figure';
import { saveCsv } from '../plots/export';
import { SHAPES, placeLabels } from '../plots/points';
import { Scatter, type View } from '../plots/scatter';
import type { Content } from '../plots/table';
import { axes, colourBy, dark, focus, select, selected, selection, shapeBy } from '../state';
import { numbers, rowNames } from './columns';
import { spaced } from './loadings';

export function Latent({ data }: { data: Data }) {
  const [mode, setMode] = useState<'drag' | 'brush'>('drag');
  const [labels, setLabels] = useState(data.about.id !== null && data.n <= 400);
  const [arrows, setArrows] = useState(data.model !== null && data.p <= 40);
  const incomplete = useMemo(() => incompleteRows(data), [data]);
  const [ellipses, setEllipses] = useState(incomplete.length > 0 && incomplete.length <= 100);
  const isDark = dark.value;
  const colours = useMemo(() => colouring(data, colourBy.value, isDark), [data, colourBy.value, isDark]);
  const shapes = useMemo(() => shapesOf(data, shapeBy.value), [data, shapeBy.value]);
  const [a, b] = axes.value;
  const y = useMemo(() => (a === b ? strip(data.n) : data.coordinates[b]!), [data, a, b]);
  const scale = arrows ? arrowScale(data, a, b) : 1;
  const words = componentWords(data.about);
  const options = data.names.slice(0, data.coordinates.length).map((name, k) => ({ value: String(k), label: name }));
  const map = data.about.answers.map;
  return (
    <Figure
      title={a === b ? `Rows along one ${words.one}` : `Rows in the plane of two ${words.many}`}
      file="latent-plot"
      wide
      command={map ? command(data.about, 'assign') : command(data.about, 'transform')}
      controls={
        <>
          <Select label="across" value={String(a)} options={options} onChange={(v) => (axes.value = [Number(v), b])} />
          {data.coordinates.length > 1 && <Select label="up" value={String(b)} options={options} onChange={(v) => (axes.value = [a, Number(v)])} />}
          <Select label="colour" value={colourBy.value} options={colourOptions(data)} onChange={(v) => (colourBy.value = v)} />
          {shapeOptions(data).length > 1 && <Select label="shape" value={shapeBy.value} options={shapeOptions(data)} onChange={(v) => (shapeBy.value = v)} />}
          <Choice
            label="What dragging does"
            value={mode}
            onChange={setMode}
            options={[
              ['drag', 'Drag'],
              ['brush', 'Select'],
            ]}
          />
          {data.about.id !== null && <Check label="labels" value={labels} onChange={setLabels} />}
          {data.model && <Check label="features" value={arrows} onChange={setArrows} />}
          {incomplete.length > 0 && data.model && <Check label="uncertainty" value={ellipses} onChange={setEllipses} />}
        </>
      }
      caption={
        <>
          {map
            ? 'The model has no plane of its own; this is the plane in which the rows vary most, for drawing only. '
            : `Each point is a row at ${data.about.linear?.posterior ? 'the mean of its posterior' : 'its coordinates'}. `}
          Drag moves, the wheel zooms after a click into the picture (or with Ctrl), a double click shows all; hold Shift to select instead.
          {arrows && ` Arrows show what each feature does, on their own scale: an arrow of length 1 here is a correlation of ${fixed(1 / scale, 2)}.`}
          {a === b && ' Up and down have no meaning: they keep the points apart.'}
          {ellipses && data.model && a !== b && ` Ellipses hold half of the probability of rows with missing values${incomplete.length > 300 ? ` (300 of ${count(incomplete.length)} are drawn)` : ''}.`}
        </>
      }
      table={() => scoreTable(data)}
    >
      <Legend colours={colours} shapes={shapes?.labels ?? null} data={data} />
      <Scatter
        label={`Latent plot of ${plural(data.n, 'row')}`}
        x={data.coordinates[a]!}
        y={y}
        xName={axisName(data, a)}
        yName={a === b ? '' : axisName(data, b)}
        colours={colours.words}
        shapes={shapes?.codes ?? null}
        mask={selection.value}
        height={560}
        include={arrows && data.model ? arrowEnds(data, a, b, scale) : undefined}
        mode={mode}
        onBrush={(rows, add) => select(data, rows, add)}
        onPick={(row) => (focus.value = row)}
        hover={(row) => hoverText(data, row)}
      >
        {(view) => (
          <>
            {ellipses && data.model && a !== b && <Ellipses data={data} rows={incomplete} view={view} a={a} b={b} />}
            {arrows && data.model && <Arrows data={data} view={view} a={a} b={b} scale={scale} />}
            {labels && <Labels data={data} view={view} />}
            {focus.value !== null && <circle class="focus" cx={view.px[focus.value]} cy={view.py[focus.value]} r={9} />}
          </>
        )}
      </Scatter>
      <Selected data={data} />
    </Figure>
  );
}

function incompleteRows(data: Data): number[] {
  const rows: number[] = [];
  if (data.about.rows.incomplete === 0) return rows;
  for (let i = 0; i < data.n; i++) if (data.cells.missingIn(i) > 0) rows.push(i);
  return rows;
}

/** Heights that keep points along one line apart: the golden ratio spreads them evenly. */
export const strip = (n: number): Float64Array => Float64Array.from({ length: n }, (_, i) => 2 * ((i * 0.6180339887498949) % 1) - 1);

export function axisName(data: Data, k: number): string {
  const share = data.about.explained[k];
  // Shares belong to directions of largest variance, which turned factors and sources are not.
  const ordered = data.about.linear && share !== undefined && data.about.components === 'components';
  return ordered ? `${data.names[k]} (${fixed(100 * share, 1)} %)` : (data.names[k] ?? '');
}

export function hoverText(data: Data, row: number): string {
  const carried = data.carried.slice(0, 3).map((column) => `${label(column.name, 16)} ${label(column.text(row), 24)}`);
  const name = data.rowName(row);
  return [name, ...carried.filter((text) => !text.endsWith(` ${name}`))].join(' · ');
}

const MOST_IN_LEGEND = 24;

export function Legend({ colours, shapes, data }: { colours: ReturnType<typeof colouring>; shapes: string[] | null; data: Data }) {
  return (
    <div class="legends">
      {colours.legend && (
        <span class="legend" aria-label={`Colours: ${colours.name}`}>
          <b>
            <bdi>{colours.name}</bdi>
          </b>
          {colours.legend.slice(0, MOST_IN_LEGEND).map(({ label: text, colour, code }) => (
            <button key={code} type="button" class="swatch" title="Select these rows" onClick={() => select(data, rowsOf(data, code))}>
              <i style={{ background: colour }} />
              <bdi>{text}</bdi>
            </button>
          ))}
          {colours.legend.length > MOST_IN_LEGEND && <span>and {count(colours.legend.length - MOST_IN_LEGEND)} more</span>}
        </span>
      )}
      {colours.ramp && (
        <span class="legend">
          <b>
            <bdi>{colours.name}</bdi>
          </b>
          {colours.ramp.from}
          <i class="ramp" />
          {colours.ramp.to}
        </span>
      )}
      {shapes && (
        <span class="legend">
          {shapes.map((text, code) => (
            <span key={code}>
              {SHAPES[code % SHAPES.length]} <bdi>{label(text, 24)}</bdi>
            </span>
          ))}
        </span>
      )}
    </div>
  );
}

function* rowsOf(data: Data, code: number): Generator<number> {
  const group = shapesOf(data, colourBy.value);
  if (group) for (let i = 0; i < data.n; i++) if (group.codes[i] === code) yield i;
}

/** Of a feature, its correlations with the two components that are drawn. */
function correlationsWith(data: Data, a: number, b: number): (j: number) => [number, number] {
  const [q, structure] = [data.model!.q, data.array('structure')!];
  return (j) => [structure[j * q + a]!, a === b ? 0 : structure[j * q + b]!];
}

/** How long an arrow of correlation 1 is, in units of the axes: so long that arrows fill the picture and stay in it. */
function arrowScale(data: Data, a: number, b: number): number {
  const of = correlationsWith(data, a, b);
  const ends = [a, b].map((k) => (data.n > 0 ? extent(data.coordinates[k]!) : [-3, 3]));
  const room = (axis: number, sign: number) => {
    const [low, high] = ends[axis]!;
    return Math.max(sign < 0 ? -low! : high!, 0.4 * Math.max(-low!, high!, 0)) || 1;
  };
  let scale = Infinity;
  for (let j = 0; j < data.p; j++)
    of(j).forEach((r, axis) => {
      if (r !== 0) scale = Math.min(scale, (0.85 * room(axis, r)) / Math.abs(r));
    });
  return Number.isFinite(scale) ? scale : 1;
}

/** What the picture must hold besides its points: the ends of the arrows. */
function arrowEnds(data: Data, a: number, b: number, scale: number): [number, number, number, number] {
  const of = correlationsWith(data, a, b);
  const ends: [number, number, number, number] = [0, 0, 0, 0];
  for (let j = 0; j < data.p; j++) {
    const [x, y] = of(j).map((r) => scale * r) as [number, number];
    [ends[0], ends[1], ends[2], ends[3]] = [Math.min(ends[0], x), Math.min(ends[1], y), Math.max(ends[2], x), Math.max(ends[3], y)];
  }
  return ends;
}

function Arrows({ data, view, a, b, scale }: { data: Data; view: View; a: number; b: number; scale: number }) {
  const of = correlationsWith(data, a, b);
  const length = (j: number) => Math.hypot(...of(j));
  const shown = Array.from({ length: data.p }, (_, j) => j).sort((i, j) => length(j) - length(i)).slice(0, 30);
  const end = (j: number) => {
    const [x, y] = of(j);
    return { j, x: view.x(scale * x), y: view.y(scale * y) };
  };
  const [ox, oy] = [view.x(0), view.y(0)];
  return (
    <g class="arrows">
      {shown.map(end).map(({ j, x, y }) => (
        <line key={j} class="arrow" x1={ox} y1={oy} x2={x} y2={y} />
      ))}
      {spaced(shown.slice(0, 16).map(end)).map(({ j, x, y }) => {
        const [text, right] = [label(data.features[j]!, 18), x >= ox];
        const inside = right ? Math.min(x + 5, view.width - 6.2 * text.length) : Math.max(x - 5, 6.2 * text.length);
        return (
          <text key={j} class="cell halo" x={inside} y={y} dy="0.32em" text-anchor={right ? 'start' : 'end'}>
            {text}
          </text>
        );
      })}
    </g>
  );
}

function Labels({ data, view }: { data: Data; view: View }) {
  const mask = selection.value;
  const candidates: { x: number; y: number; text: string; row: number }[] = [];
  for (let i = 0; i < data.n && candidates.length < 3000; i++) {
    if (mask && !mask[i]) continue;
    const [x, y] = [view.px[i]! + 7, view.py[i]! + 4];
    if (x > 0 && y > 0 && x < view.width && y < view.height) candidates.push({ x, y, text: label(data.rowName(i), 18), row: i });
  }
  return (
    <g>
      {placeLabels(candidates, view.width, view.height).map(({ x, y, text, row }) => (
        <text key={row} class="cell halo" x={x} y={y}>
          {text}
        </text>
      ))}
    </g>
  );
}

/** Ellipses of half of the probability of the coordinates of incomplete rows. */
function Ellipses({ data, rows, view, a, b }: { data: Data; rows: number[]; view: View; a: number; b: number }) {
  const model = data.model!;
  const q = model.q;
  const shapes = useMemo(
    () =>
      rows.slice(0, 300).map((i) => {
        const { scale: c, degreesOfFreedom } = model.spread(data.cells.row(i));
        const two = Float64Array.of(c[a * q + a]!, c[a * q + b]!, c[a * q + b]!, c[b * q + b]!);
        const { values, vectors } = symmetricEigen(two, 2);
        const size = Math.sqrt(squaredRadius(0.5, degreesOfFreedom));
        return { i, vectors, half: Array.from(values, (value) => size * Math.sqrt(Math.max(value, 0))) };
      }),
    [data, rows, a, b],
  );
  const path = ({ i, half, vectors }: (typeof shapes)[number]) => {
    const points: string[] = [];
    for (let t = 0; t < 32; t++) {
      const [u, v] = [Math.cos((t * Math.PI) / 16) * half[0]!, Math.sin((t * Math.PI) / 16) * half[1]!];
      const [x, y] = [data.coordinates[a]![i]! + vectors[0]! * u + vectors[1]! * v, data.coordinates[b]![i]! + vectors[2]! * u + vectors[3]! * v];
      points.push(`${view.x(x).toFixed(1)},${view.y(y).toFixed(1)}`);
    }
    return `M${points.join('L')}Z`;
  };
  const light = Math.min(1, 30 / Math.max(1, shapes.length)); // many would hide the points beneath
  return (
    <g class="ellipses" style={{ opacity: 0.35 + 0.65 * light }}>
      {shapes.filter(({ half }) => Number.isFinite(half[0]!)).map((shape) => (
        <path key={shape.i} class="ellipse" style={{ fillOpacity: 0.05 * light }} d={path(shape)} />
      ))}
    </g>
  );
}

function Selected({ data }: { data: Data }) {
  const rows = selected.value;
  if (selection.value === null) return null;
  const save = () => {
    const header = ['row', ...data.carried.map((c) => c.name), ...data.features, ...data.names.slice(0, data.coordinates.length)];
    const lines = rows.map((i) => [data.numbers[i]! + 1, ...data.carried.map((c) => c.text(i)), ...data.cells.row(i), ...data.coordinates.map((z) => z[i]!)]);
    saveCsv(header, lines, 'selected-rows');
  };
  return (
    <p class="selected" role="status" data-export="no">
      <b>{plural(rows.length, 'row')} selected</b>, in every picture.{' '}
      <button type="button" onClick={save}>
        Save them as CSV
      </button>{' '}
      <button type="button" onClick={() => (selection.value = null)}>
        Clear
      </button>
    </p>
  );
}

function scoreTable(data: Data): Content {
  return {
    caption: 'Coordinates of the rows',
    file: 'coordinates',
    rows: data.n,
    onPick: (row) => (focus.value = row),
    picked: focus.value,
    columns: [rowNames(data), ...data.coordinates.slice(0, 12).map((z, k) => numbers(data.names[k]!, (i) => z[i]!))],
  };
}
