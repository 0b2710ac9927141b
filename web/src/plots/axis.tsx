// Axes of pictures in SVG.
import { format } from 'd3-format';
import { label } from '../format';

interface Scale {
  (value: number): number;
  ticks: (count?: number) => number[];
  tickFormat: (count?: number, specifier?: string) => (value: number) => string;
}

const short = format('~s');

/** Large numbers are shortened, so that they do not run into names. */
function tickText(scale: Scale, most: number): (tick: number) => string {
  const plain = scale.tickFormat(most);
  const large = scale.ticks(most).some((tick) => Math.abs(tick) >= 1e4);
  return (tick) => (large ? short(tick) : plain(tick)).replace('-', '−');
}

export function BottomAxis({ scale, y, from, to, name }: { scale: Scale; y: number; from: number; to: number; name: string }) {
  const most = Math.max(2, Math.round((to - from) / 64));
  const text = tickText(scale, most);
  return (
    <g class="axis">
      <line x1={from} x2={to} y1={y} y2={y} />
      {scale.ticks(most).map((tick) => (
        <g key={tick} transform={`translate(${scale(tick)},${y})`}>
          <line y2={4} />
          <text y={17} text-anchor="middle">
            {text(tick)}
          </text>
        </g>
      ))}
      <text class="name" x={(from + to) / 2} y={y + 36} text-anchor="middle">
        {label(name, 60)}
      </text>
    </g>
  );
}

export function LeftAxis({ scale, x, from, to, name }: { scale: Scale; x: number; from: number; to: number; name: string }) {
  const most = Math.max(2, Math.round(Math.abs(to - from) / 60));
  const text = tickText(scale, most);
  return (
    <g class="axis">
      <line x1={x} x2={x} y1={from} y2={to} />
      {scale.ticks(most).map((tick) => (
        <g key={tick} transform={`translate(${x},${scale(tick)})`}>
          <line x2={-4} />
          <text x={-8} dy="0.32em" text-anchor="end">
            {text(tick)}
          </text>
        </g>
      ))}
      <text class="name" transform={`translate(${x - 44},${(from + to) / 2}) rotate(-90)`} text-anchor="middle">
        {label(name, 60)}
      </text>
    </g>
  );
}
