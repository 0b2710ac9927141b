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
  return (tick) => (large ? short(tick) : plain(tick)).replace('-', '−').replaceAll(',', '\u202f');
}

const CHARACTER = 6.6;

/** Ticks with their texts, as many as have room: on a scale of roots they crowd at one end. */
function spread(scale: Scale, most: number, room: (text: string) => number): { tick: number; text: string; at: number }[] {
  const write = tickText(scale, most);
  const kept: { tick: number; text: string; at: number }[] = [];
  for (const tick of scale.ticks(most)) {
    const [text, at] = [write(tick), scale(tick)];
    const last = kept[kept.length - 1];
    if (!last || Math.abs(at - last.at) >= (room(text) + room(last.text)) / 2) kept.push({ tick, text, at });
  }
  return kept;
}

const leftTicks = (scale: Scale, height: number) => spread(scale, Math.max(2, Math.round(height / 60)), () => 15);
const longest = (ticks: { text: string }[]): number => Math.max(0, ...ticks.map(({ text }) => text.length)) * CHARACTER;

/** Room to the left of a picture for the ticks and the name of its axis. */
export const leftMargin = (scale: Scale, height: number): number => Math.max(62, longest(leftTicks(scale, height)) + 36);

export function BottomAxis({ scale, y, from, to, name }: { scale: Scale; y: number; from: number; to: number; name: string }) {
  const ticks = spread(scale, Math.max(2, Math.round((to - from) / 64)), (text) => CHARACTER * text.length + 8);
  return (
    <g class="axis">
      <line x1={from} x2={to} y1={y} y2={y} />
      {ticks.map(({ tick, text, at }) => (
        <g key={tick} transform={`translate(${at},${y})`}>
          <line y2={4} />
          <text y={17} text-anchor="middle">
            {text}
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
  const ticks = leftTicks(scale, Math.abs(to - from));
  return (
    <g class="axis">
      <line x1={x} x2={x} y1={from} y2={to} />
      {ticks.map(({ tick, text, at }) => (
        <g key={tick} transform={`translate(${x},${at})`}>
          <line x2={-4} />
          <text x={-8} dy="0.32em" text-anchor="end">
            {text}
          </text>
        </g>
      ))}
      <text class="name" transform={`translate(${x - Math.max(44, longest(ticks) + 18)},${(from + to) / 2}) rotate(-90)`} text-anchor="middle">
        {label(name, 60)}
      </text>
    </g>
  );
}
