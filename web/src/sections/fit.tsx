// How well the model fits: the way to it, what it leaves of the correlations, and whether distances are as they should be.
import { useMemo } from 'preact/hooks';
import { colouring } from '../colouring';
import { command, inspect } from '../commands';
import type { Data } from '../data';
import { fixed, label, number } from '../format';
import { normalQuantile } from '../maths/special';
import { normalScore, residualCorrelations } from '../maths/statistics';
import { Figure } from '../plots/figure';
import { Heat, SignedLegend } from '../plots/heat';
import { LinePlot } from '../plots/lines';
import { Scatter } from '../plots/scatter';
import { dark, focus, selection } from '../state';
import { names, numbers, rowNames } from './columns';
import { hoverText } from './latent';

export function Fit({ data }: { data: Data }) {
  return (
    <>
      {data.about.trace.length > 1 && <Trace data={data} />}
      {data.model && data.n > 2 && <Residuals data={data} />}
      {data.distance && data.n > 2 && data.about.linear!.degrees_of_freedom === null && <Quantiles data={data} />}
    </>
  );
}

function Trace({ data }: { data: Data }) {
  const { trace } = data.about;
  const steps = useMemo(() => trace.map((_, k) => k + 1), [trace]);
  return (
    <Figure
      title="The way to the fit"
      file="trace"
      command={inspect(data.about, '--json')}
      caption={`What the fit improves, after each of its ${trace.length} steps; it ends at ${number(trace[trace.length - 1])}.`}
      table={() => ({
        caption: 'The objective after each step',
        rows: trace.length,
        columns: [
          { name: 'step', show: (k) => `${k + 1}`, sort: (k) => k },
          { name: 'objective', show: (k) => String(trace[k]), sort: (k) => trace[k]! },
        ],
      })}
    >
      <LinePlot label="Trace of the fit" x={steps} y={trace} xName="step" yName="objective" dots={trace.length < 60} height={240} />
    </Figure>
  );
}

const MOST = 150;

function Residuals({ data }: { data: Data }) {
  const { parts } = data.model!;
  const features = useMemo(() => {
    const all = Array.from({ length: data.p }, (_, j) => j).filter((j) => data.columns.deviation[j]! > 0);
    const step = Math.max(1, all.length / MOST);
    return all.length <= MOST ? all : Array.from({ length: MOST }, (_, k) => all[Math.floor(k * step)]!);
  }, [data]);
  const found = useMemo(() => {
    const deviations = features.map((j) => data.model!.featureDeviation(j));
    const place = new Map(features.map((j, at) => [j, at]));
    return residualCorrelations(data.cells, features, (a, b) => {
      let c = 0;
      for (let k = 0; k < parts.q; k++) c += parts.loadings[a * parts.q + k]! * parts.loadings[b * parts.q + k]!;
      return c / (deviations[place.get(a)!]! * deviations[place.get(b)!]! || 1);
    });
  }, [data, features]);
  const m = features.length;
  const of = useMemo(() => features.map((j) => data.features[j]!), [features]);
  const value = useMemo(() => (a: number, b: number) => found[a * m + b]!, [found]);
  const pairs = useMemo(() => {
    const all: [number, number][] = [];
    for (let a = 0; a < m; a++) for (let b = 0; b < a; b++) all.push([a, b]);
    return all.sort((x, y) => Math.abs(value(...y)) - Math.abs(value(...x)));
  }, [found]);
  if (m < 2) return null;
  const rms = Math.sqrt(pairs.reduce((sum, pair) => sum + value(...pair) ** 2, 0) / Math.max(1, pairs.length));
  const most = Math.max(0.1, Math.min(1, Math.abs(value(...pairs[0]!))));
  return (
    <Figure
      title="Correlations that are left over"
      file="residual-correlations"
      command={inspect(data.about)}
      caption={
        <>
          Correlations of the rows minus those of the model; their root mean square is {fixed(rms, 3)}. The largest is between {label(of[pairs[0]![0]]!, 30)} and {label(of[pairs[0]![1]]!, 30)}:{' '}
          {fixed(value(...pairs[0]!), 3)}.{m < data.p && ` ${m} of the ${data.p} features are shown.`} <SignedLegend most={most} />
        </>
      }
      table={() => ({
        caption: 'Correlations that are left over',
        rows: pairs.length,
        columns: [
          names('one', (k) => of[pairs[k]![0]]!),
          names('other', (k) => of[pairs[k]![1]]!),
          { name: 'left over', show: (k) => fixed(value(...pairs[k]!), 4), sort: (k) => Math.abs(value(...pairs[k]!)), text: (k) => value(...pairs[k]!) },
        ],
      })}
    >
      <Heat label="Correlations that are left over" rows={of} columns={of} value={value} most={most} numbers={m <= 14} />
    </Figure>
  );
}

/** Normal scores of the squared distances against normal quantiles: rows of the model lie on the line. */
function Quantiles({ data }: { data: Data }) {
  const isDark = dark.value;
  const colours = useMemo(() => colouring(data, 'none', isDark).words, [data, isDark]);
  const points = useMemo(() => {
    const scores = Array.from(data.distance!, (d, i) => ({ i, z: normalScore(d, data.p - data.cells.missingIn(i)) })).filter(({ z }) => Number.isFinite(z));
    scores.sort((a, b) => a.z - b.z);
    const [x, y] = [new Float64Array(data.n).fill(NaN), new Float64Array(data.n).fill(NaN)];
    scores.forEach(({ i, z }, rank) => {
      x[i] = normalQuantile((rank + 0.5) / scores.length);
      y[i] = z;
    });
    return { x, y };
  }, [data]);
  return (
    <Figure
      title="Are distances as they should be?"
      file="quantiles"
      command={command(data.about, 'score')}
      caption="Squared Mahalanobis distances as normal scores (Wilson and Hilferty) against normal quantiles. Rows of the model lie on the line; points above its right end are rows that lie too far out."
      table={() => ({
        caption: 'Distances and quantiles',
        rows: data.n,
        columns: [
          rowNames(data),
          numbers('squared distance', (i) => data.distance![i]!),
          numbers('normal score', (i) => points.y[i]!),
          numbers('quantile', (i) => points.x[i]!),
        ],
      })}
    >
      <Scatter label="Quantiles of distances" x={points.x} y={points.y} xName="normal quantile" yName="score of the distance" colours={colours} mask={selection.value} height={360} onPick={(row) => (focus.value = row)} hover={(row) => hoverText(data, row)}>
        {(view) => <line class="dashed" x1={view.x(-6)} y1={view.y(-6)} x2={view.x(6)} y2={view.y(6)} />}
      </Scatter>
    </Figure>
  );
}
