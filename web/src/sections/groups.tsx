// Groups of mixtures and clusters: their sizes, profiles, how far they lie apart, and how sure they are.
import { useMemo } from 'preact/hooks';
import { css, groupColour } from '../colours';
import { command } from '../commands';
import type { Data } from '../data';
import { count, fixed, percent } from '../format';
import { extent, moments } from '../maths/statistics';
import { Figure } from '../plots/figure';
import { Heat, SignedLegend } from '../plots/heat';
import { Bars } from '../plots/lines';
import { PixelImage } from '../plots/picture';
import { colourBy, dark, select } from '../state';
import { features, numbers, rowNames } from './columns';

interface Profile {
  size: number;
  mean: Float64Array;
  deviation: Float64Array;
  rows: number[];
}

/** Means and deviations of the features in each group. */
export function profiles(data: Data): Profile[] {
  const rows = Array.from({ length: data.groups }, (): number[] => []);
  for (let i = 0; i < data.n; i++) rows[data.group![i]!]!.push(i);
  const columns = Array.from({ length: data.p }, (_, j) => data.cells.column(j));
  return rows.map((of) => {
    const found = columns.map((column) => moments(of.map((i) => column[i]!)));
    return { size: of.length, rows: of, mean: Float64Array.from(found, (m) => m.mean), deviation: Float64Array.from(found, (m) => m.deviation) };
  });
}

/** Distance of two groups: root mean square over the features of the difference of means, in pooled deviations. */
export function separation(a: Profile, b: Profile): number {
  let [sum, n] = [0, 0];
  for (let j = 0; j < a.mean.length; j++) {
    const pooled = Math.sqrt((a.deviation[j]! ** 2 * Math.max(a.size - 1, 1) + b.deviation[j]! ** 2 * Math.max(b.size - 1, 1)) / Math.max(a.size + b.size - 2, 1));
    const d = (a.mean[j]! - b.mean[j]!) / pooled;
    if (Number.isFinite(d)) {
      sum += d * d;
      n++;
    }
  }
  return n > 0 ? Math.sqrt(sum / n) : NaN;
}

export function Groups({ data }: { data: Data }) {
  const found = useMemo(() => profiles(data), [data]);
  return (
    <>
      <Sizes data={data} found={found} />
      <Profiles data={data} found={found} />
      {data.groups > 1 && <Apart data={data} found={found} />}
      {data.probabilities && <Sure data={data} />}
    </>
  );
}

const name = (k: number) => `group ${k + 1}`;

function Sizes({ data, found }: { data: Data; found: Profile[] }) {
  const isDark = dark.value;
  return (
    <Figure
      title="Sizes"
      file="group-sizes"
      command={command(data.about, 'assign')}
      caption="Rows of each group among those shown. A click on a name selects its rows in every picture."
      table={() => ({
        caption: 'Sizes of the groups',
        rows: found.length,
        columns: [
          numbers('group', (k) => k + 1),
          numbers('rows', (k) => found[k]!.size, count),
          numbers('share', (k) => found[k]!.size / data.n, percent),
        ],
      })}
    >
      <p class="legends" data-export="no">
        {found.slice(0, 24).map((profile, k) => (
          <button
            key={k}
            type="button"
            class="swatch"
            onClick={() => {
              select(data, profile.rows);
              colourBy.value = 'group';
            }}
          >
            <i style={{ background: css(groupColour(k, isDark)) }} />
            {name(k)}
          </button>
        ))}
      </p>
      <Bars label="Sizes of the groups" bars={found.slice(0, 40).map((profile, k) => ({ name: name(k), value: profile.size, text: percent(profile.size / Math.max(1, data.n)) }))} xName="rows" />
    </Figure>
  );
}

function Profiles({ data, found }: { data: Data; found: Profile[] }) {
  const { image } = data.about;
  const shown = found.map((_, k) => k).slice(0, 40);
  const score = (j: number, k: number) => {
    const z = (found[k]!.mean[j]! - data.columns.mean[j]!) / data.columns.deviation[j]!;
    return Number.isFinite(z) ? z : 0;
  };
  const order = useMemo(() => {
    const spread = (j: number) => Math.max(...shown.map((k) => Math.abs(score(j, k))));
    const all = Array.from({ length: data.p }, (_, j) => j);
    return data.p <= 60 ? all : all.sort((a, b) => spread(b) - spread(a)).slice(0, 60);
  }, [found]);
  const range = useMemo(() => (image ? extent(found.flatMap((profile) => Array.from(profile.mean))) : ([0, 1] as [number, number])), [found]);
  return (
    <Figure
      title="Profiles"
      file="group-profiles"
      command={command(data.about, 'assign')}
      caption={
        <>
          {image ? 'The mean image of each group. ' : ''}Means of the groups, in deviations of each feature from its mean over all rows.{data.p > 60 && ' The 60 features in which the groups differ most are shown.'} <SignedLegend most={2} />
        </>
      }
      table={() => ({
        caption: 'Means of the groups',
        rows: data.p,
        columns: [
          features(data),
          ...shown.map((k) => numbers(name(k), (j) => found[k]!.mean[j]!)),
        ],
      })}
    >
      {image && (
        <div class="images small">
          {shown.map((k) => (
            <div key={k}>
              <PixelImage size={image} row={found[k]!.mean} range={range} width={90} label={`Mean image of ${name(k)}`} />
              <p class="quiet">{name(k)}</p>
            </div>
          ))}
        </div>
      )}
      <Heat label="Profiles of the groups" rows={order.map((j) => data.features[j]!)} columns={shown.map(name)} value={(at, k) => score(order[at]!, k)} most={2} />
    </Figure>
  );
}

function Apart({ data, found }: { data: Data; found: Profile[] }) {
  const shown = found.map((_, k) => k).slice(0, 30);
  const apart = useMemo(() => shown.map((a) => shown.map((b) => (a === b ? 0 : separation(found[a]!, found[b]!) || 0))), [found]);
  const most = Math.max(1, ...apart.flat());
  const nearest = data.about.facts.mixture?.separation;
  return (
    <Figure
      title="How far apart"
      file="group-separation"
      command={command(data.about, 'assign')}
      caption="Differences of the means of two groups in their pooled deviations, root mean square over the features: below 1 groups overlap much."
      table={() => ({
        caption: 'Separation of the groups',
        rows: shown.length,
        columns: [
          numbers('group', (k) => k + 1),
          ...(nearest ? [numbers('nearest other mean, in deviations of the model', (k) => nearest[k] ?? NaN)] : []),
          ...shown.map((k) => numbers(name(k), (row) => apart[row]![k]!, (x) => fixed(x, 2))),
        ],
      })}
    >
      <Heat label="Separation of the groups" rows={shown.map(name)} columns={shown.map(name)} value={(a, b) => apart[a]![b]!} most={most} />
    </Figure>
  );
}

function Sure({ data }: { data: Data }) {
  const k = data.groups;
  const best = useMemo(() => Float64Array.from({ length: data.n }, (_, i) => Math.max(...data.probabilities!.subarray(i * k, (i + 1) * k))), [data]);
  const bins = useMemo(() => {
    const counts = new Array<number>(10).fill(0);
    for (const p of best) counts[Math.min(9, Math.floor(p * 10))]!++;
    return counts;
  }, [best]);
  const unsure = best.reduce((sum, p) => sum + (p < 0.8 ? 1 : 0), 0);
  const order = useMemo(() => Array.from({ length: data.n }, (_, i) => i).sort((a, b) => best[a]! - best[b]!), [best]);
  const first = bins.findIndex((n) => n > 0);
  return (
    <Figure
      title="How sure"
      file="group-probabilities"
      command={command(data.about, 'assign', '--probabilities')}
      caption={`The probability of the most probable group of each row. ${count(unsure)} of ${count(data.n)} rows are below 0.8.`}
      table={() => ({
        caption: 'Probabilities of the groups',
        rows: data.n,
        columns: [
          rowNames(data, (at) => order[at]!),
          ...Array.from({ length: Math.min(k, 30) }, (_, g) => numbers(name(g), (at) => data.probabilities![order[at]! * k + g]!, (x) => fixed(x, 4))),
        ],
      })}
    >
      <Bars label="Probabilities of the most probable group" bars={bins.slice(Math.max(0, first)).map((n, at) => ({ name: `${((at + first) / 10).toFixed(1)} to ${((at + first + 1) / 10).toFixed(1)}`, value: n, text: count(n) }))} xName="rows" />
    </Figure>
  );
}
