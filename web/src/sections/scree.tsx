// How much each component explains, and how many there should be.
import { useState } from 'preact/hooks';
import type { ChoiceLine } from '../about';
import { inspect, selectCommand } from '../commands';
import type { Data } from '../data';
import { fixed, percent } from '../format';
import { Choice, Figure } from '../plots/figure';
import { LinePlot } from '../plots/lines';
import type { Content } from '../plots/table';
import { useWidth } from '../plots/size';
import { scaleLinear } from 'd3-scale';
import { LeftAxis } from '../plots/axis';
import { numbers } from './columns';

const MOST = 40;

export function Scree({ data }: { data: Data }) {
  const { about } = data;
  return (
    <>
      {about.eigenvalues.length > 0 && <Variances data={data} />}
      {about.choice && <HowMany data={data} />}
    </>
  );
}

function Variances({ data }: { data: Data }) {
  const { about } = data;
  const [ref, width] = useWidth();
  const total = about.facts.total_variance || about.eigenvalues.reduce((sum, v) => sum + v, 0) || 1;
  const kept = about.explained.length;
  const shown = about.eigenvalues.slice(0, Math.max(MOST, Math.min(kept, 80)));
  const shares = shown.map((v) => v / total);
  const running = shares.map((_, k) => shares.slice(0, k + 1).reduce((a, b) => a + b, 0));
  const [left, right, top, height] = [62, 54, 14, 280];
  const w = Math.max(80, width - left - right);
  const bottom = height - 46;
  const sy = scaleLinear().domain([0, Math.max(...shares, 0.01)]).nice().range([bottom, top]);
  const cumulative = scaleLinear().domain([0, 1]).range([bottom, top]);
  const step = w / Math.max(1, shown.length);
  const rest = about.eigenvalues.length > shown.length ? ` The first ${shown.length} of ${about.eigenvalues.length} are shown.` : '';
  const which = kept < about.eigenvalues.length ? ` The ${kept === 1 ? 'first is' : `first ${kept} are`} kept by the model.` : '';
  // Turned factors and sources are not the directions of largest variance.
  const named = about.components === 'components';
  const name = (k: number) => (named && k < kept ? (about.coordinates[k] ?? `z${k + 1}`) : `${k + 1}`);
  const bar = Math.min(step * 0.72, 64);
  return (
    <Figure
      title="Variance along each direction"
      file="scree"
      command={inspect(about)}
      caption={`Bars are shares of the total variance, the line is their running sum.${which}${rest}`}
      table={() => ({
        caption: 'Variance along each direction',
        rows: about.eigenvalues.length,
        columns: [
          numbers('direction', (k) => k + 1),
          numbers('variance', (k) => about.eigenvalues[k]!),
          numbers('share', (k) => about.eigenvalues[k]! / total, percent),
          { name: 'kept', show: (k) => (k < kept ? 'yes' : 'no') },
        ],
      })}
    >
      <div ref={ref}>
        <svg width={width} height={height} role="img" aria-label={`Scree plot: the first direction explains ${percent(shares[0] ?? 0)}`}>
          <LeftAxis scale={Object.assign((v: number) => sy(v), { ticks: (c?: number) => sy.ticks(c), tickFormat: () => (v: number) => `${Math.round(1000 * v) / 10} %` })} x={left} from={top} to={bottom} name="share" />
          {shares.map((share, k) => (
            <g key={k}>
              <rect class={k < kept ? 'bar' : 'bar off'} x={left + (k + 0.5) * step - bar / 2} width={bar} y={sy(share)} height={bottom - sy(share)} rx={1.5} />
              {(shown.length <= 26 || k % 5 === 0) && (
                <text class="tick" x={left + (k + 0.5) * step} y={bottom + 18} text-anchor="middle">
                  {name(k)}
                </text>
              )}
            </g>
          ))}
          <path class="line soft" d={`M${running.map((v, k) => `${left + (k + 0.5) * step},${cumulative(v)}`).join('L')}`} />
          {running.map((v, k) => (
            <circle key={k} class={k < kept ? 'dot' : 'dot off'} cx={left + (k + 0.5) * step} cy={cumulative(v)} r={2.6} />
          ))}
          {[0.5, 1].map((v) => (
            <text key={v} class="tick" x={left + w + 8} y={cumulative(v)} dy="0.32em">
              {percent(v, 0)}
            </text>
          ))}
          <line class="zero" x1={left} x2={left + w} y1={bottom} y2={bottom} />
        </svg>
      </div>
    </Figure>
  );
}

type Criterion = 'cross_validated' | 'bic' | 'log_evidence' | 'correlation_eigenvalue';
const CRITERIA: Record<Criterion, { name: string; axis: string; says: string }> = {
  cross_validated: { name: 'Held-out rows', axis: 'log density of a held-out row', says: 'The mean log density of rows that the fit did not see, with its standard error: higher is better.' },
  bic: { name: 'BIC', axis: 'BIC', says: 'The Bayesian information criterion: lower is better.' },
  log_evidence: { name: 'Evidence', axis: 'log evidence', says: "Minka's evidence of the number of components: higher is better." },
  correlation_eigenvalue: { name: 'Against noise', axis: 'eigenvalue of the correlations', says: 'Eigenvalues of the correlations, and the dashed line of what noise alone reaches (parallel analysis).' },
};

function HowMany({ data }: { data: Data }) {
  const { about } = data;
  const choice = about.choice!;
  const present = (Object.keys(CRITERIA) as Criterion[]).filter((key) => choice.table.some((line) => line[key] !== null));
  const [criterion, setCriterion] = useState<Criterion>(present[0] ?? 'bic');
  const lines = choice.table.filter((line) => line[criterion] !== null);
  const y = lines.map((line) => line[criterion]!);
  const q = about.explained.length;
  const errors = criterion === 'cross_validated' && lines.every((line) => line.cross_validated_error !== null);
  const band = errors
    ? { low: lines.map((line, i) => y[i]! - line.cross_validated_error!), high: lines.map((line, i) => y[i]! + line.cross_validated_error!) }
    : undefined;
  const best = choice.choices.map((c) => `${c.method}: ${c.components}`).join(' · ');
  return (
    <Figure
      title="What methods would choose"
      file="choice-of-q"
      command={selectCommand(about)}
      controls={<Choice label="Criterion" value={criterion} onChange={setCriterion} options={present.map((key) => [key, CRITERIA[key].name])} />}
      caption={`${CRITERIA[criterion].says} The model has ${q}. What each method would choose of these rows: ${best}.`}
      table={() => choiceTable(choice.table)}
    >
      <LinePlot
        label={`${CRITERIA[criterion].name} for each number of ${about.components}`}
        x={lines.map((line) => line.components)}
        y={y}
        band={band}
        dots
        xName={`number of ${about.components}`}
        yName={CRITERIA[criterion].axis}
        extra={(sx, sy, right, bottom) => (
          <>
            <line class="chosen" x1={sx(q)} x2={sx(q)} y1={12} y2={bottom} />
            <text class="tick" x={Math.min(sx(q) + 5, right - 30)} y={22}>
              q = {q}
            </text>
            {criterion === 'correlation_eigenvalue' && (
              <path class="dashed" d={`M${lines.filter((line) => line.noise_eigenvalue !== null).map((line) => `${sx(line.components)},${sy(line.noise_eigenvalue!)}`).join('L')}`} />
            )}
          </>
        )}
      />
    </Figure>
  );
}

function choiceTable(lines: ChoiceLine[]): Content {
  const column = (name: string, key: keyof ChoiceLine) => numbers(name, (k) => lines[k]![key] ?? NaN);
  return {
    caption: 'Criteria for each number of components',
    rows: lines.length,
    first: 40,
    columns: [
      column('q', 'components'),
      numbers('explained', (k) => lines[k]!.explained, (x) => fixed(x, 4)),
      column('log-likelihood', 'log_likelihood'),
      column('AIC', 'aic'),
      column('BIC', 'bic'),
      column('evidence', 'log_evidence'),
      column('held-out rows', 'cross_validated'),
      column('± error', 'cross_validated_error'),
      column('eigenvalue of correlations', 'correlation_eigenvalue'),
      column('of noise', 'noise_eigenvalue'),
    ],
  };
}
