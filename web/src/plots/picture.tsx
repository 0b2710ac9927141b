// A row as a picture: pixels of an image, or markers in space with lines between them.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { About } from '../about';
import { signed } from '../colours';
import { dark } from '../state';

interface ImageProps {
  size: { height: number; width: number };
  row: ArrayLike<number>;
  range: [number, number];
  width: number;
  label: string;
}

/** Grey levels: paper is the low end in light, and the high end is ink, as the data's range has it. */
export function PixelImage({ size, row, range, width, label }: ImageProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (context) context.putImageData(greyImage(size, row, range), 0, 0);
  }, [size, row, range]);
  const height = (width * size.height) / size.width;
  return <canvas ref={canvas} class="pixels" role="img" aria-label={label} width={size.width} height={size.height} style={{ width: `${width}px`, height: `${height}px` }} />;
}

/** Numbers around 0 as an image: orange below, blue above, by the largest of them. */
export function SignedImage({ size, value, width, label }: { size: ImageProps['size']; value: (at: number) => number; width: number; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const image = new ImageData(size.width, size.height);
    let most = 0;
    for (let at = 0; at < size.width * size.height; at++) most = Math.max(most, Math.abs(value(at)));
    for (let at = 0; at < size.width * size.height; at++) image.data.set([...signed(most > 0 ? value(at) / most : 0, isDark), 255], 4 * at);
    context.putImageData(image, 0, 0);
  }, [size, value, isDark]);
  const height = (width * size.height) / size.width;
  return <canvas ref={canvas} class="pixels" role="img" aria-label={label} width={size.width} height={size.height} style={{ width: `${width}px`, height: `${height}px` }} />;
}

export function greyImage(size: { height: number; width: number }, row: ArrayLike<number>, [low, high]: [number, number]): ImageData {
  const image = new ImageData(size.width, size.height);
  const wide = high - low || 1;
  for (let at = 0; at < size.width * size.height; at++) {
    const x = row[at]!;
    const grey = Math.max(0, Math.min(255, Math.round((255 * (x - low)) / wide)));
    image.data.set(Number.isNaN(x) ? [70, 110, 190, 255] : [grey, grey, grey, 255], 4 * at);
  }
  return image;
}

interface StickProps {
  stick: NonNullable<About['stick']>;
  row: ArrayLike<number>;
  /** Middle and half of the size of the figure, which stay while it moves. */
  around: { middle: [number, number, number]; reach: number; up: number };
  width: number;
  label: string;
  ghost?: ArrayLike<number> | null;
}

/** Markers seen from a side that can be turned by dragging or with the arrow keys. */
export function StickFigure({ stick, row, around, width, label, ghost }: StickProps) {
  const [turn, setTurn] = useState<[number, number]>([0.6, 0.12]);
  void dark.value;
  const height = width * 1.1;
  const look = (of: ArrayLike<number>) => stick.markers.map(([, axes]) => seen(axes.map((j) => of[j]!) as [number, number, number], around, turn, width, height));
  const drag = (event: PointerEvent) => {
    const target = event.currentTarget as Element;
    target.setPointerCapture(event.pointerId);
    const [x, y, from] = [event.clientX, event.clientY, turn];
    const move = (next: Event) => {
      const { clientX, clientY } = next as PointerEvent;
      setTurn([from[0] + (clientX - x) * 0.01, Math.max(-1.5, Math.min(1.5, from[1] + (clientY - y) * 0.01))]);
    };
    const up = () => {
      target.removeEventListener('pointermove', move);
      target.removeEventListener('pointerup', up);
    };
    target.addEventListener('pointermove', move);
    target.addEventListener('pointerup', up);
  };
  const key = (event: KeyboardEvent) => {
    const by: Record<string, [number, number]> = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    const way = by[event.key];
    if (!way) return;
    event.preventDefault();
    setTurn([turn[0] + way[0], Math.max(-1.5, Math.min(1.5, turn[1] + way[1]))]);
  };
  const [places, shadow] = [look(row), ghost ? look(ghost) : null];
  const there = ([x, y]: [number, number]) => Number.isFinite(x) && Number.isFinite(y);
  const links = (of: [number, number][], kind: string) =>
    stick.links.map(([a, b], k) => there(of[a]!) && there(of[b]!) && <line key={k} class={kind} x1={of[a]![0]} y1={of[a]![1]} x2={of[b]![0]} y2={of[b]![1]} />);
  return (
    <svg class="stick" width={width} height={height} role="img" aria-label={`${label}. Drag or use the arrow keys to turn it.`} tabIndex={0} onPointerDown={drag} onKeyDown={key}>
      {shadow && links(shadow, 'ghost')}
      {links(places, 'link')}
      {places.map((at, k) => there(at) && <circle key={k} class="joint" cx={at[0]} cy={at[1]} r={3} />)}
    </svg>
  );
}

/** Orthographic: turned around the upright axis, then tilted. */
function seen(point: [number, number, number], { middle, reach, up }: StickProps['around'], [azimuth, tilt]: [number, number], width: number, height: number): [number, number] {
  const [a, b] = [0, 1, 2].filter((axis) => axis !== up) as [number, number];
  const [x, y, z] = [point[a]! - middle[a]!, point[b]! - middle[b]!, point[up]! - middle[up]!];
  const across = x * Math.cos(azimuth) - y * Math.sin(azimuth);
  const depth = x * Math.sin(azimuth) + y * Math.cos(azimuth);
  const unit = Math.min(width, height) / (2.15 * reach);
  return [width / 2 + across * unit, height / 2 - (z * Math.cos(tilt) - depth * Math.sin(tilt)) * unit];
}
