// Missing values: where they are, in which patterns, and which columns are missing together.
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { pixel, rgb } from '../colours';
import { command } from '../commands';
import type { Data } from '../data';
import { count, fixed, label, percent, plural } from '../format';
import { correlation, patterns, type Pattern } from '../maths/statistics';
import { Figure } from '../plots/figure';
import { Heat, SignedLegend } from '../plots/heat';
import { Bars } from '../plots/lines';
import { Table } from '../plots/table';
import { useWidth } from '../plots/size';
import { dark, select } from '../state';
import { features, names, numbers } from './columns';

export function Missing({ data }: { data: Data }) {
  const { about } = data;
  const found = useMemo(() => (data.n > 0 ? patterns(data.cells) : []), [data]);
  const holed = Array.from({ length: data.p }, (_, j) => j).filter((j) => about.missing[j]! > 0);
  return (
    <>
      <Features data={data} holed={holed} />
      {data.n > 0 && <PatternMap data={data} found={found} />}
      {data.n > 0 && holed.length > 1 && <Together data={data} holed={holed} />}
    </>
  );
}

const MOST = 40;

function Features({ data, holed }: { data: Data; holed: number[] }) {
  const { missing, rows } = data.about;
  const share = (j: number) => missing[j]! / Math.max(1, rows.total);
  const order = [...holed].sort((a, b) => missing[b]! - missing[a]!).slice(0, MOST);
  return (
    <Figure
      title="Missing values of each feature"
      file="missing-features"
      command={command(data.about, 'impute', '-o whole.csv')}
      caption={`${plural(rows.incomplete, 'row')} of ${count(rows.total)} miss something${rows.empty > 0 ? `, ${count(rows.empty)} everything` : ''}. ${holed.length < data.p ? `${plural(data.p - holed.length, 'feature has', 'features have')} all values.` : ''}${holed.length > MOST ? ` The ${MOST} with the most are shown.` : ''}`}
      table={() => ({
        caption: 'Missing values of each feature',
        rows: data.p,
        columns: [
          features(data),
          numbers('missing', (j) => missing[j]!, count),
          numbers('share', share, percent),
        ],
      })}
    >
      <Bars label="Share of missing values" bars={order.map((j) => ({ name: data.features[j]!, value: 100 * share(j), text: percent(share(j)) }))} xName="missing, %" row={18} />
    </Figure>
  );
}

/** All cells, rows of the same pattern beside each other; of more cells than pixels, the share in each pixel. */
function PatternMap({ data, found }: { data: Data; found: Pattern[] }) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  const height = Math.max(120, Math.min(360, data.n));
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const [w, h] = [Math.min(data.p, Math.max(1, Math.round(width))), Math.min(data.n, height)];
    const sum = new Float32Array(w * h);
    const size = new Float32Array(w * h);
    const order = found.flatMap((pattern) => pattern.rows);
    order.forEach((i, at) => {
      const y = Math.floor((at * h) / data.n);
      for (let j = 0; j < data.p; j++) {
        const cell = y * w + Math.floor((j * w) / data.p);
        size[cell]!++;
        if (data.cells.isMissing(i, j)) sum[cell]!++;
      }
    });
    const image = new ImageData(w, h);
    const words = new Uint32Array(image.data.buffer);
    const [there, gone] = [rgb(isDark ? '#2c3340' : '#e4ebf2'), rgb(isDark ? '#ff8c3a' : '#d55e00')];
    for (let k = 0; k < w * h; k++) {
      const share = sum[k]! / Math.max(1, size[k]!);
      words[k] = pixel([0, 1, 2].map((c) => there[c]! + (gone[c]! - there[c]!) * share) as [number, number, number]);
    }
    canvas.current!.width = w;
    canvas.current!.height = h;
    context.putImageData(image, 0, 0);
  }, [data, found, width, height, isDark]);
  return (
    <Figure
      title="Patterns"
      file="missing-patterns"
      command={command(data.about, 'impute', '-o whole.csv')}
      caption={`Rows from top to bottom, those with the same pattern together, the most frequent first; features from left to right. Orange is missing. There ${found.length === 1 ? 'is 1 pattern' : `are ${count(found.length)} patterns`} among the rows shown.`}
    >
      <div ref={ref}>
        <canvas ref={canvas} class="pixels map" role="img" aria-label="Map of missing values" style={{ width: `${width}px`, height: `${height}px` }} />
      </div>
      <div data-export="no">
        <Table
          caption="Patterns of missing values"
          file="missing-patterns"
          rows={found.length}
          first={6}
          onPick={(k) => select(data, found[k]!.rows)}
          columns={[
            numbers('rows', (k) => found[k]!.rows.length, count),
            numbers('share', (k) => found[k]!.rows.length / data.n, percent),
            numbers('cells missing', (k) => found[k]!.missing.length, count),
            { name: 'which', left: true, text: (k) => which(data, found[k]!.missing), show: (k) => <bdi class="name">{which(data, found[k]!.missing)}</bdi> },
          ]}
        />
      </div>
    </Figure>
  );
}

function which(data: Data, missing: number[]): string {
  if (missing.length === 0) return 'complete';
  if (missing.length === data.p) return 'everything';
  const named = missing.slice(0, 6).map((j) => label(data.features[j]!, 20)).join(', ');
  return missing.length > 6 ? `${named} and ${missing.length - 6} more` : named;
}

function Together({ data, holed }: { data: Data; holed: number[] }) {
  const shown = useMemo(() => [...holed].sort((a, b) => data.about.missing[b]! - data.about.missing[a]!).slice(0, 30), [holed.length]);
  const table = useMemo(() => {
    const indicators = shown.map((j) => Float64Array.from({ length: data.n }, (_, i) => (data.cells.isMissing(i, j) ? 1 : 0)));
    return shown.map((_, a) => shown.map((_, b) => (a === b ? 1 : correlation(indicators[a]!, indicators[b]!) || 0)));
  }, [data, shown]);
  const of = useMemo(() => shown.map((j) => data.features[j]!), [shown]);
  const pairs = useMemo(() => shown.flatMap((_, a) => shown.slice(0, a).map((_, b) => [a, b] as const)), [shown]);
  return (
    <Figure
      title="Columns that are missing together"
      file="missing-together"
      caption={
        <>
          Correlations of what is missing: 1 where two columns are always missing together, below 0 where one is there when the other is not. <SignedLegend most={1} />
        </>
      }
      command={command(data.about, 'impute', '-o whole.csv')}
      table={() => ({
        caption: 'Pairs of columns that are missing together',
        rows: pairs.length,
        columns: [
          names('one', (k) => of[pairs[k]![0]]!),
          names('other', (k) => of[pairs[k]![1]]!),
          numbers('r', (k) => table[pairs[k]![0]]![pairs[k]![1]]!, (x) => fixed(x, 3)),
        ],
      })}
    >
      <Heat label="Columns that are missing together" rows={of} columns={of} value={(a, b) => table[a]![b]!} most={1} numbers={of.length <= 12} />
    </Figure>
  );
}
