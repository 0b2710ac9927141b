// A matrix as colours: orange below 0, blue above, on a canvas of one pixel for each cell.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { pixel, signed, css } from '../colours';
import { fixed, label } from '../format';
import { dark } from '../state';
import { useWidth } from './size';

interface Props {
  label: string;
  rows: string[];
  columns: string[];
  value: (row: number, column: number) => number;
  /** The number that has the strongest colour. */
  most: number;
  /** Numbers in the cells, where they fit. */
  numbers?: boolean;
  cell?: number;
}

export function Heat({ label: name, rows, columns, value, most, numbers = true, cell = 26 }: Props) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  const labelled = rows.length <= 80;
  const left = labelled ? Math.min(190, Math.max(84, 0.4 * width), Math.max(40, ...rows.map((text) => 7 * Math.min(26, text.length) + 12))) : 8;
  const wide = Math.max(2, Math.min(numbers ? 64 : cell, (width - left - 8) / Math.max(1, columns.length)));
  const longest = Math.min(14, Math.max(0, ...columns.map((text) => text.length)));
  const headed = columns.length <= 40 && wide >= 12;
  const top = headed ? (longest > 4 ? 22 + 4.8 * longest : 26) : 8;
  const high = Math.max(1, Math.min(labelled ? 22 : 8, Math.max(1, 640 / Math.max(1, rows.length))), labelled ? 15 : 1);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || rows.length === 0 || columns.length === 0) return;
    const image = new ImageData(columns.length, rows.length);
    const words = new Uint32Array(image.data.buffer);
    for (let i = 0; i < rows.length; i++) for (let k = 0; k < columns.length; k++) words[i * columns.length + k] = pixel(signed(most > 0 ? value(i, k) / most : 0, isDark));
    canvas.current!.width = columns.length;
    canvas.current!.height = rows.length;
    context.putImageData(image, 0, 0);
  }, [rows, columns, value, most, isDark]);
  const [w, h] = [wide * columns.length, high * rows.length];
  const written = numbers && wide >= 36 && high >= 14 && rows.length * columns.length <= 2000;
  return (
    <div class="heat" ref={ref} style={{ height: `${h + top + 8}px` }}>
      <canvas ref={canvas} role="img" aria-label={name} style={{ left: `${left}px`, top: `${top}px`, width: `${w}px`, height: `${h}px` }} />
      <svg class="over" width={Math.max(width, left + w)} height={h + top + 8} aria-hidden="true">
        {labelled &&
          rows.map((text, i) => (
            <text key={i} x={left - 8} y={top + high * (i + 0.5)} dy="0.32em" text-anchor="end" class="tick">
              {label(text, Math.floor((left - 8) / 6.4))}
            </text>
          ))}
        {headed &&
          columns.map((text, k) => (
            <text key={k} class="tick" text-anchor={top > 30 ? 'start' : 'middle'} transform={`translate(${left + wide * (k + 0.5)},${top - 8})${top > 30 ? ' rotate(-45)' : ''}`}>
              {label(text, 14)}
            </text>
          ))}
        {written &&
          rows.map((_, i) =>
            columns.map((_, k) => (
              <text key={`${i} ${k}`} class="cell" x={left + wide * (k + 0.5)} y={top + high * (i + 0.5)} dy="0.34em" text-anchor="middle" style={{ fill: ink(value(i, k) / most, isDark) }}>
                {fixed(value(i, k), 2)}
              </text>
            )),
          )}
      </svg>
    </div>
  );
}

/** Text that can be read on the colour of a cell. */
function ink(t: number, isDark: boolean): string {
  const strong = Math.abs(t) > 0.62;
  return strong ? (isDark ? '#101114' : '#ffffff') : isDark ? '#d9dce2' : '#33363d';
}

export function SignedLegend({ most }: { most: number }) {
  const isDark = dark.value;
  return (
    <span class="legend">
      {fixed(-most, 1)}
      {[-1, -0.66, -0.33, 0, 0.33, 0.66, 1].map((t) => (
        <i key={t} style={{ background: css(signed(t, isDark)) }} />
      ))}
      {fixed(most, 1)}
    </span>
  );
}
