// Lines and bars in SVG.
import type { ComponentChildren } from 'preact';
import { line as path, area } from 'd3-shape';
import { scaleLinear, scaleLog, type ScaleLinear } from 'd3-scale';
import { label } from '../format';
import { extent } from '../maths/statistics';
import { BottomAxis, LeftAxis, leftMargin } from './axis';
import { useWidth } from './size';

const MARGIN = { right: 16, top: 12, bottom: 46 };

interface LineProps {
  label: string;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  xName: string;
  yName: string;
  height?: number;
  dots?: boolean;
  log?: boolean;
  band?: { low: ArrayLike<number>; high: ArrayLike<number> };
  extra?: (x: (v: number) => number, y: (v: number) => number, width: number, height: number) => ComponentChildren;
  domain?: [number, number];
}

export function LinePlot({ label: name, x, y, xName, yName, height = 280, dots, log, band, extra, domain }: LineProps) {
  const [ref, width] = useWidth();
  const h = height - MARGIN.top - MARGIN.bottom;
  const [x0, x1] = extent(x);
  let [y0, y1] = domain ?? extent(band ? [...Array.from(band.low), ...Array.from(band.high)] : y);
  if (y0 === y1) [y0, y1] = [y0 - 1, y1 + 1];
  const sy = (log && y0 > 0 ? scaleLog() : scaleLinear()).domain([y0, y1]).nice().range([MARGIN.top + h, MARGIN.top]);
  const left = leftMargin(sy, h);
  const w = Math.max(60, width - left - MARGIN.right);
  const sx = scaleLinear().domain(x0 === x1 ? [x0 - 1, x1 + 1] : [x0, x1]).range([left, left + w]);
  const whole = Array.from(x).every(Number.isInteger);
  const points = Array.from({ length: x.length }, (_, i): [number, number] => [sx(x[i]!), sy(y[i]!)]).filter(([, b]) => Number.isFinite(b));
  const ribbon = band && Array.from({ length: x.length }, (_, i): [number, number, number] => [sx(x[i]!), sy(band.low[i]!), sy(band.high[i]!)]);
  return (
    <div ref={ref}>
      <svg width={width} height={height} role="img" aria-label={name}>
        <BottomAxis scale={whole ? wholeTicks(sx) : sx} y={MARGIN.top + h} from={left} to={left + w} name={xName} />
        <LeftAxis scale={sy} x={left} from={MARGIN.top} to={MARGIN.top + h} name={yName} />
        {ribbon && <path class="band" d={area<[number, number, number]>((d) => d[0], (d) => d[1], (d) => d[2])(ribbon) ?? ''} />}
        <path class="line" d={path<[number, number]>((d) => d[0], (d) => d[1])(points) ?? ''} />
        {dots && points.map(([a, b], i) => <circle key={i} class="dot" cx={a} cy={b} r={3} />)}
        {extra?.(sx, sy, left + w, MARGIN.top + h)}
      </svg>
    </div>
  );
}

/** The same scale with ticks at whole numbers only. */
function wholeTicks(scale: ScaleLinear<number, number>) {
  const at = (value: number) => scale(value);
  return Object.assign(at, { ticks: (most?: number) => scale.ticks(most).filter(Number.isInteger), tickFormat: () => (value: number) => String(value) });
}

export interface Bar {
  name: string;
  value: number;
  /** Ends of a whisker. */
  low?: number;
  high?: number;
  text?: string;
  dim?: boolean;
  mark?: number;
}

/** Bars to the left and right of 0, one under the other. */
export function Bars({ label: name, bars, xName, most, least, row = 20 }: { label: string; bars: Bar[]; xName: string; most?: number; least?: number; row?: number }) {
  const [ref, width] = useWidth();
  const left = Math.min(180, Math.max(84, 0.36 * width), Math.max(60, ...bars.map((bar) => 6.6 * Math.min(24, bar.name.length) + 14)));
  const right = bars.some((bar) => bar.text) ? 84 : 16;
  const w = Math.max(60, width - left - right);
  const ends = bars.flatMap((bar) => [bar.value, bar.low ?? 0, bar.high ?? 0, bar.mark ?? 0]);
  const [low, high] = extent([0, ...ends.filter(Number.isFinite)]);
  const scale = scaleLinear().domain([least ?? low, (most ?? high) || 1]).range([left, left + w]);
  const h = bars.length * row;
  return (
    <div ref={ref}>
      <svg width={width} height={h + 52} role="img" aria-label={name} class="bars">
        {scale.ticks(5).map((tick) => (
          <line key={tick} class="grid" x1={scale(tick)} x2={scale(tick)} y1={2} y2={h + 4} />
        ))}
        {bars.map((bar, i) => {
          const [y, a, b] = [i * row + 4, scale(0), scale(Number.isFinite(bar.value) ? bar.value : 0)];
          return (
            <g key={i} class={bar.dim ? 'dim' : ''}>
              <text class="tick" x={left - 8} y={y + row / 2 - 1} dy="0.32em" text-anchor="end">
                {label(bar.name, Math.floor((left - 10) / 6.4))}
              </text>
              <rect class={bar.value < 0 ? 'bar below' : 'bar'} x={Math.min(a, b)} width={Math.max(0.5, Math.abs(b - a))} y={y} height={row - 6} rx={1.5} />
              {bar.low !== undefined && bar.high !== undefined && Number.isFinite(bar.low) && Number.isFinite(bar.high) && (
                <g class="whisker">
                  <line x1={scale(bar.low)} x2={scale(bar.high)} y1={y + row / 2 - 3} y2={y + row / 2 - 3} />
                  <line x1={scale(bar.low)} x2={scale(bar.low)} y1={y + row / 2 - 6} y2={y + row / 2} />
                  <line x1={scale(bar.high)} x2={scale(bar.high)} y1={y + row / 2 - 6} y2={y + row / 2} />
                </g>
              )}
              {bar.mark !== undefined && Number.isFinite(bar.mark) && <circle class="mark" cx={scale(bar.mark)} cy={y + row / 2 - 3} r={3.5} />}
              {bar.text && (
                <text class="cell" x={left + w + 10} y={y + row / 2 - 1} dy="0.32em">
                  {bar.text}
                </text>
              )}
            </g>
          );
        })}
        <line class="zero" x1={scale(0)} x2={scale(0)} y1={2} y2={h + 4} />
        <BottomAxis scale={scale} y={h + 6} from={left} to={left + w} name={xName} />
      </svg>
    </div>
  );
}
