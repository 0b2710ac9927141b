// The latent explorer: a place in the latent plane, and at once the row that is expected there.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { colouring } from '../colouring';
import { command } from '../commands';
import { cellRange, type Data } from '../data';
import { fixed, measured, percent } from '../format';
import { LatentDensity } from '../maths/latent';
import { extent } from '../maths/statistics';
import { Check, Choice, Figure, Select } from '../plots/figure';
import { Bars, LinePlot } from '../plots/lines';
import { PixelImage, StickFigure, greyImage } from '../plots/picture';
import { Scatter, type View } from '../plots/scatter';
import { useWidth } from '../plots/size';
import type { Content } from '../plots/table';
import { axes, colourBy, dark, focus, place, selection } from '../state';
import { features, numbers } from './columns';
import { axisName, strip } from './latent';

const NOTHING = new Float64Array(0);

type Show = 'image' | 'stick' | 'bars' | 'curve';

/** What decodes a place: a linear model, or rows of a grid that the core has decoded. */
interface Decoder {
  q: number;
  decode: (place: number[]) => Float64Array;
  deviation: ((j: number) => number) | null;
  density: LatentDensity | null;
  /** The place that is really shown. */
  snap: (place: number[]) => number[];
  plane: [number, number] | null;
}

export function decoderOf(data: Data): Decoder | null {
  const { model } = data;
  if (model && model.q > 0) {
    const density = new LatentDensity(model);
    return { q: model.q, decode: (at) => model.decode(at), deviation: (j) => model.noiseDeviation(j), density, snap: (at) => at, plane: null };
  }
  const grid = data.about.answers.grid;
  if (!grid || !data.grid) return null;
  const step = (at: number, k: 0 | 1) => {
    const wide = grid.to[k] - grid.from[k];
    return wide > 0 ? Math.max(0, Math.min(grid.side - 1, Math.round(((at - grid.from[k]) / wide) * (grid.side - 1)))) : 0;
  };
  const back = (at: number, k: 0 | 1) => grid.from[k] + ((grid.to[k] - grid.from[k]) * step(at, k)) / (grid.side - 1);
  return {
    q: data.coordinates.length,
    decode: (at) => {
      const cell = step(at[1] ?? 0, 1) * grid.side + step(at[0]!, 0);
      return Float64Array.from(data.grid!.subarray(cell * data.p, (cell + 1) * data.p));
    },
    deviation: null,
    density: null,
    snap: (at) => at.map((x, k) => (k < 2 ? back(x, k as 0 | 1) : 0)),
    plane: data.coordinates.length > 1 ? [0, 1] : [0, 0],
  };
}

export function Explorer({ data }: { data: Data }) {
  const decoder = useMemo(() => decoderOf(data), [data])!;
  const [show, setShow] = useState<Show>(data.about.image ? 'image' : data.about.stick ? 'stick' : data.p > 30 ? 'curve' : 'bars');
  const [pictures, setPictures] = useState(false);
  const [a, b] = decoder.plane ?? (axes.value.map((k) => Math.min(k, decoder.q - 1)) as [number, number]);
  const wanted = place.value.length === decoder.q ? place.value : new Array<number>(decoder.q).fill(0);
  const at = useMemo(() => decoder.snap(wanted), [decoder, wanted]);
  const row = useMemo(() => decoder.decode(at), [decoder, at]);
  const put = (x: number, y: number) => {
    const next = [...at];
    next[a] = x;
    if (b !== a) next[b] = y;
    place.value = decoder.snap(next);
  };
  const isDark = dark.value;
  const colours = useMemo(() => colouring(data, colourBy.value, isDark), [data, colourBy.value, isDark]);
  const side = useMemo(() => (b === a ? strip(data.n) : null), [data, a === b]);
  const range = useMemo(() => cellRange(data), [data]);
  const thumbnails = useMemo(
    () => (pictures && data.about.image ? (context: CanvasRenderingContext2D, view: View) => mosaic(data, decoder, context, view, at, a, b, range) : undefined),
    [pictures, data, decoder, at.filter((_, k) => k !== a && k !== b).join(), a, b],
  );
  const modes = ([['image', 'Image'], ['stick', 'Figure'], ['bars', 'Bars'], ['curve', 'Curve']] as [Show, string][]).filter(
    ([key]) => (key !== 'image' || data.about.image) && (key !== 'stick' || data.about.stick),
  );
  const options = data.names.slice(0, decoder.q).map((name, k) => ({ value: String(k), label: name }));
  return (
    <Figure
      title="A place, and the row that is expected there"
      file="latent-explorer"
      wide
      command={command(data.about, 'reconstruct', data.about.linear?.posterior ? '--posterior' : '')}
      controls={
        <>
          <Choice label="How the row is shown" value={show} options={modes} onChange={setShow} />
          {!decoder.plane && decoder.q > 1 && (
            <>
              <Select label="across" value={String(a)} options={options} onChange={(v) => (axes.value = [Number(v), b])} />
              <Select label="up" value={String(b)} options={options} onChange={(v) => (axes.value = [a, Number(v)])} />
            </>
          )}
          {data.about.image && <Check label="pictures across the plane" value={pictures} onChange={setPictures} />}
          <Player data={data} decoder={decoder} />
        </>
      }
      caption={
        <>
          Move the place in the plane by dragging, or with the arrow keys after a click: the row that the model expects there follows.{' '}
          {decoder.deviation ? 'Whiskers and bands are two standard deviations of a cell around it.' : `Places are those of a grid that was decoded when the page was written${decoder.q > 2 ? '; the other coordinates are 0' : ''}.`}{' '}
          In Python the same row is <code>model.inverse_transform(place)</code>; the command below rebuilds each row from its own place.
        </>
      }
      table={() => rowTable(data, decoder, row)}
    >
      <div class="explorer">
        <div class="plane">
          <Scatter
            label="The latent plane and the place in it"
            x={data.coordinates[a] ?? NOTHING}
            y={side ?? data.coordinates[b] ?? NOTHING}
            xName={axisName(data, a)}
            yName={b === a ? '' : axisName(data, b)}
            colours={colours.words}
            mask={selection.value}
            height={430}
            mode="place"
            include={[at[a]!, b === a ? 0 : at[b]!, at[a]!, b === a ? 0 : at[b]!]}
            reset={data}
            onPlace={put}
            under={thumbnails}
          >
            {(view) => (
              <>
                {decoder.density && <Contours density={decoder.density} view={view} a={a} b={b} />}
                <g class="place" transform={`translate(${view.x(at[a]!)},${view.y(b === a ? 0 : at[b]!)})`}>
                  <circle r={11} />
                  <circle r={3} class="middle" />
                </g>
              </>
            )}
          </Scatter>
          <Where data={data} decoder={decoder} at={at} />
        </div>
        <div class="shown" data-explorer={JSON.stringify({ place: at, row: Array.from(row.slice(0, 1200)) })}>
          <Shown data={data} decoder={decoder} row={row} show={show} range={range} />
        </div>
      </div>
      <Sliders data={data} decoder={decoder} at={at} skip={[a, b]} />
    </Figure>
  );
}

/** The density of the place, in words. */
function Where({ data, decoder, at }: { data: Data; decoder: Decoder; at: number[] }) {
  const shown = at.map((x, k) => ({ x, k })).filter(({ x, k }) => axes.value.includes(k) || Math.abs(x) >= 0.005);
  const text = shown.slice(0, 8).map(({ x, k }) => `${data.names[k]} ${fixed(x, 2)}`).join(' · ');
  const { density } = decoder;
  const tail = density ? density.tail(at) : NaN;
  const far = tail > 0.5 ? 'near the middle' : tail > 0.001 ? `farther out than ${percent(1 - tail, tail < 0.1 ? 1 : 0)} of rows` : 'where hardly any row lies';
  return (
    <p class="where" role="status">
      <b>{text}</b>
      {density && (
        <>
          <br />
          log density of the place {fixed(density.logDensity(at), 2)}, {far}
        </>
      )}
    </p>
  );
}

function Shown({ data, decoder, row, show, range }: { data: Data; decoder: Decoder; row: Float64Array; show: Show; range: [number, number] }) {
  const [ref, width] = useWidth(400);
  const looked = focus.value !== null && focus.value < data.n ? focus.value : null;
  const observed = looked === null ? null : data.cells.row(looked);
  const { image, stick } = data.about;
  if (show === 'image' && image) {
    const each = Math.min(observed ? (width - 24) / 2 : width, (400 * image.width) / image.height, 400);
    return (
      <div ref={ref} class="images">
        <div>
          <PixelImage size={image} row={row} range={range} width={each} label="The expected image" />
          <p class="quiet">expected here</p>
        </div>
        {observed && (
          <div>
            <PixelImage size={image} row={observed} range={range} width={each} label="The image of the row that is looked at" />
            <p class="quiet">
              <bdi>{data.rowName(looked!)}</bdi>, as observed
            </p>
          </div>
        )}
      </div>
    );
  }
  if (show === 'stick' && stick)
    return (
      <div ref={ref} class="centre">
        <StickFigure stick={stick} row={row} around={figureSize(data, row)} width={Math.min(width, 400)} label="The expected figure" />
      </div>
    );
  return (
    <div ref={ref}>
      {show === 'curve' ? <Curve data={data} decoder={decoder} row={row} observed={observed} /> : <RowBars data={data} decoder={decoder} row={row} observed={observed} />}
    </div>
  );
}

const MOST_BARS = 30;

/** In deviations of each feature, so that all can be seen beside each other. */
function RowBars({ data, decoder, row, observed }: { data: Data; decoder: Decoder; row: Float64Array; observed: Float64Array | null }) {
  const unit = (j: number) => data.model?.featureDeviation(j) || data.columns.deviation[j] || 1;
  const middle = (j: number) => data.model?.parts.mean[j] ?? data.columns.mean[j]!;
  const moves = (j: number) => (data.model ? Math.hypot(...Array.from({ length: decoder.q }, (_, k) => data.array('structure')![j * decoder.q + k]!)) : data.columns.deviation[j]!);
  const order = useMemo(() => {
    const all = Array.from({ length: data.p }, (_, j) => j);
    return data.p <= MOST_BARS ? all : all.sort((i, j) => moves(j) - moves(i)).slice(0, MOST_BARS).sort((i, j) => i - j);
  }, [data]);
  const bars = order.map((j) => {
    const [u, m] = [unit(j), middle(j)];
    const noise = decoder.deviation ? (2 * decoder.deviation(j)) / u : undefined;
    const value = (row[j]! - m) / u;
    const around = noise === undefined ? {} : { low: value - noise, high: value + noise };
    return { name: data.features[j]!, value, text: measured(row[j]!, u / 10), ...around, ...(observed ? { mark: (observed[j]! - m) / u } : {}) };
  });
  return (
    <>
      <Bars label="The expected row" bars={bars} xName="deviations from the mean" most={4.5} least={-4.5} row={Math.max(15, Math.min(38, Math.floor(380 / bars.length)))} />
      {data.p > MOST_BARS && <p class="quiet">The {MOST_BARS} features that move most; the table has all.</p>}
    </>
  );
}

function Curve({ data, decoder, row, observed }: { data: Data; decoder: Decoder; row: Float64Array; observed: Float64Array | null }) {
  const x = useMemo(() => Array.from({ length: data.p }, (_, j) => j + 1), [data]);
  const band = decoder.deviation ? { low: Array.from(row, (v, j) => v - 2 * decoder.deviation!(j)), high: Array.from(row, (v, j) => v + 2 * decoder.deviation!(j)) } : undefined;
  const ends = useMemo(() => cellRange(data), [data]);
  return (
    <LinePlot
      label="The expected row as a curve over the features"
      x={x}
      y={row}
      band={band}
      xName="feature, in their order"
      yName="value"
      height={400}
      domain={ends}
      extra={(sx, sy) =>
        observed && Array.from(observed).map((v, j) => (Number.isNaN(v) || data.p > 2000 ? null : <circle key={j} class="mark" cx={sx(j + 1)} cy={sy(v)} r={2} />))
      }
    />
  );
}

function Sliders({ data, decoder, at, skip }: { data: Data; decoder: Decoder; at: number[]; skip: number[] }) {
  const [all, setAll] = useState(false);
  if (decoder.plane) return null;
  const others = Array.from({ length: decoder.q }, (_, k) => k).filter((k) => !skip.includes(k));
  const set = (k: number, value: number) => (place.value = at.map((x, l) => (l === k ? value : x)));
  const reach = (k: number) => 4 * (decoder.density?.deviations[k] || 1);
  return (
    <div class="sliders" data-export="no">
      {others.slice(0, all ? 100 : 8).map((k) => (
        <label key={k}>
          <span>
            {data.names[k]} <b>{fixed(at[k]!, 2)}</b>
          </span>
          <input type="range" min={-reach(k)} max={reach(k)} step={reach(k) / 200} value={at[k]} onInput={(event) => set(k, Number(event.currentTarget.value))} />
        </label>
      ))}
      {others.length > 8 && (
        <button type="button" onClick={() => setAll(!all)}>
          {all ? 'Fewer sliders' : `${others.length - 8} more sliders`}
        </button>
      )}
      <button type="button" onClick={() => (place.value = new Array<number>(decoder.q).fill(0))}>
        To the middle
      </button>
    </div>
  );
}

/** Walks through the rows in their order: of a film, it plays. */
function Player({ data, decoder }: { data: Data; decoder: Decoder }) {
  const [playing, setPlaying] = useState(false);
  const next = useRef(0);
  const go = (i: number) => {
    place.value = decoder.snap(data.coordinates.slice(0, decoder.q).map((z) => z[i]!));
  };
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      go(next.current % data.n);
      next.current++;
    }, 60);
    return () => clearInterval(timer);
  }, [playing]);
  if (data.n === 0) return null;
  return (
    <>
      <button type="button" aria-pressed={playing} onClick={() => setPlaying(!playing)}>
        {playing ? 'Stop' : 'Play the rows'}
      </button>
      {focus.value !== null && (
        <button type="button" onClick={() => go(focus.value!)}>
          To the row looked at
        </button>
      )}
    </>
  );
}

/** Ellipses of 50, 90 and 99 % of the places of new rows. */
function Contours({ density, view, a, b }: { density: LatentDensity; view: View; a: number; b: number }) {
  if (a === b) return null;
  const path = (share: number) => `M${density.ellipse(a, b, share).map(([x, y]) => `${view.x(x).toFixed(1)},${view.y(y).toFixed(1)}`).join('L')}Z`;
  return (
    <g>
      {[0.5, 0.9, 0.99].map((share) => (
        <path key={share} class="contour" d={path(share)} />
      ))}
    </g>
  );
}

/** The images of places on a grid across the plane, the other coordinates as they are. */
function mosaic(data: Data, decoder: Decoder, context: CanvasRenderingContext2D, view: View, at: number[], a: number, b: number, range: [number, number]): void {
  const size = data.about.image!;
  const tall = 46;
  const wide = Math.max(18, (tall * size.width) / size.height);
  const [columns, rows] = [Math.floor(view.width / (wide + 4)), Math.floor(view.height / (tall + 4))];
  const scratch = document.createElement('canvas');
  scratch.width = size.width;
  scratch.height = size.height;
  const inner = scratch.getContext('2d')!;
  context.clearRect(0, 0, view.width, view.height);
  context.imageSmoothingEnabled = false;
  for (let i = 0; i < columns; i++)
    for (let j = 0; j < rows; j++) {
      const [x, y] = [((i + 0.5) * view.width) / columns, ((j + 0.5) * view.height) / rows];
      const spot = [...at];
      spot[a] = view.x.invert(x);
      if (b !== a) spot[b] = view.y.invert(y);
      inner.putImageData(greyImage(size, decoder.decode(spot), range), 0, 0);
      context.drawImage(scratch, x - wide / 2, y - tall / 2, wide, tall);
    }
}

/** The middle of a figure, how far it reaches, and which axis is upright: the one along which the mean figure is largest. */
function figureSize(data: Data, row: Float64Array): { middle: [number, number, number]; reach: number; up: number } {
  const { markers } = data.about.stick!;
  const mean = data.model ? data.model.parts.mean : data.columns.mean;
  const ends = [0, 1, 2].map((axis) => extent(markers.map(([, of]) => mean[of[axis]!]!)));
  const sizes = ends.map(([low, high]) => high - low);
  const up = sizes.indexOf(Math.max(...sizes));
  const middle = [0, 1, 2].map((axis) => {
    const [low, high] = extent(markers.map(([, of]) => row[of[axis]!]!));
    return (low + high) / 2;
  }) as [number, number, number];
  return { middle, reach: Math.max(...sizes) * 0.62 || 1, up };
}

function rowTable(data: Data, decoder: Decoder, row: Float64Array): Content {
  return {
    caption: 'The expected row',
    file: 'expected-row',
    rows: data.p,
    columns: [
      features(data),
      numbers('expected', (j) => row[j]!),
      ...(decoder.deviation ? [numbers('standard deviation', (j) => decoder.deviation!(j))] : []),
    ],
  };
}
