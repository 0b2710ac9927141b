// Points on a canvas under SVG: drag, zoom, brush, hover and keys; the same for every cloud of rows.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { scaleLinear, scalePow, type ScaleContinuousNumeric } from 'd3-scale';
import { extent } from '../maths/statistics';
import { BottomAxis, LeftAxis } from './axis';
import { SHAPES, drawPoints, nearest, radiusFor, sprite } from './points';
import { useWidth } from './size';

export type Linear = ScaleContinuousNumeric<number, number>;

export interface View {
  x: Linear;
  y: Linear;
  width: number;
  height: number;
  /** Pixels of points (of the screen). */
  px: Float32Array;
  py: Float32Array;
}

interface Props {
  label: string;
  x: Float64Array;
  y: Float64Array;
  xName: string;
  yName: string;
  colours: Uint32Array;
  shapes?: Uint32Array | null;
  mask?: Uint8Array | null;
  height?: number;
  /** Squared distances are shown on a scale of roots, along these axes. */
  root?: 'both' | 'y';
  /** The same unit along both axes. */
  equal?: boolean;
  /** Ends of the axes at least, besides those of the points. */
  include?: [number, number, number, number];
  mode?: 'drag' | 'brush' | 'place';
  onBrush?: (rows: number[], add: boolean) => void;
  onPick?: (row: number | null) => void;
  onPlace?: (x: number, y: number) => void;
  hover?: (row: number) => string;
  under?: (context: CanvasRenderingContext2D, view: View) => void;
  children?: (view: View) => ComponentChildren;
  reset?: unknown;
}

const MARGIN = { left: 62, right: 14, top: 12, bottom: 46 };

interface Window {
  x: [number, number];
  y: [number, number];
}

export function Scatter(props: Props) {
  const { x, y, colours, shapes = null, mask = null, height = 460, root, mode = 'drag' } = props;
  const [rootX, rootY] = [root === 'both', root !== undefined];
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const inner = { width: Math.max(80, width - MARGIN.left - MARGIN.right), height: height - MARGIN.top - MARGIN.bottom };
  const home = useMemo(() => homeWindow(props, inner.width, inner.height), [x, y, inner.width, inner.height, root, props.equal, props.reset]);
  const [moved, setMoved] = useState<Window | null>(null);
  useEffect(() => setMoved(null), [home]);
  const window = moved ?? home;
  const [brush, setBrush] = useState<[number, number, number, number] | null>(null);
  const [tip, setTip] = useState<{ x: number; y: number; row: number } | null>(null);
  const make = (domain: [number, number], range: [number, number], isRoot: boolean): Linear =>
    (isRoot ? scalePow().exponent(0.5) : scaleLinear()).domain(domain).range(range) as Linear;
  const sx = make(window.x, [0, inner.width], rootX);
  const sy = make(window.y, [inner.height, 0], rootY);
  const ratio = typeof devicePixelRatio === 'number' ? Math.min(devicePixelRatio, 2) : 1;
  const pixels = useRef<{ px: Float32Array; py: Float32Array }>({ px: new Float32Array(0), py: new Float32Array(0) });
  const view = useMemo<View>(() => {
    if (pixels.current.px.length !== x.length) pixels.current = { px: new Float32Array(x.length), py: new Float32Array(x.length) };
    const { px, py } = pixels.current;
    project(x, px, window.x, inner.width, false, rootX);
    project(y, py, window.y, inner.height, true, rootY);
    return { x: sx, y: sy, width: inner.width, height: inner.height, px, py };
  }, [x, y, window, inner.width, inner.height, root]);
  const sprites = useMemo(() => {
    const radius = radiusFor(x.length) * ratio;
    return shapes ? SHAPES.map((shape) => sprite(shape, radius * 1.15)) : [sprite('circle', radius)];
  }, [x.length, shapes, ratio]);
  const image = useRef<ImageData | null>(null);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const [w, h] = [Math.round(inner.width * ratio), Math.round(inner.height * ratio)];
    if (canvas.current!.width !== w) canvas.current!.width = w;
    if (canvas.current!.height !== h) canvas.current!.height = h;
    if (!image.current || image.current.width !== w || image.current.height !== h) image.current = new ImageData(w, h);
    const words = new Uint32Array(image.current.data.buffer);
    const scaled = (from: Float32Array) => (ratio === 1 ? from : from.map((v) => v * ratio));
    drawPoints({ width: w, height: h, words }, scaled(view.px), scaled(view.py), colours, sprites, shapes, mask);
    context.putImageData(image.current, 0, 0);
    if (props.under) {
      context.save();
      context.scale(ratio, ratio);
      props.under(context, view);
      context.restore();
    }
  }, [view, colours, sprites, shapes, mask, ratio, props.under]);

  const local = (event: { clientX: number; clientY: number }): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const frame = useRef(0);
  const later = (work: () => void) => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(work);
  };
  const zoom = (factor: number, at: [number, number]) => {
    const around = (scale: Linear, place: number): [number, number] => {
      const [a, b] = scale.range() as [number, number];
      return [scale.invert(place + (a - place) * factor), scale.invert(place + (b - place) * factor)];
    };
    setMoved({ x: around(sx, at[0]), y: around(sy, at[1]) });
  };
  const shift = (dx: number, dy: number, from: Window = window) => {
    const [ax, ay] = [make(from.x, [0, inner.width], rootX), make(from.y, [inner.height, 0], rootY)];
    const moveBy = (scale: Linear, by: number): [number, number] => {
      const [a, b] = scale.range() as [number, number];
      return [scale.invert(a - by), scale.invert(b - by)];
    };
    setMoved({ x: moveBy(ax, dx), y: moveBy(ay, dy) });
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    const [startX, startY] = local(event);
    const from = window;
    let far = false;
    setTip(null);
    const placing = mode === 'place' && !event.shiftKey;
    const brushing = (mode === 'brush') !== event.shiftKey && mode !== 'place';
    if (placing) props.onPlace?.(sx.invert(startX), sy.invert(startY));
    let last: [number, number] = [startX, startY];
    const move = (next: PointerEvent) => {
      last = local(next);
      far ||= Math.hypot(last[0] - startX, last[1] - startY) > 3;
      if (!far && !placing) return;
      later(() => {
        if (placing) props.onPlace?.(sx.invert(last[0]), sy.invert(last[1]));
        else if (brushing) setBrush([startX, startY, last[0], last[1]]);
        else shift(last[0] - startX, last[1] - startY, from);
      });
    };
    const target = event.currentTarget as Element;
    const up = (next: Event) => {
      target.removeEventListener('pointermove', move as EventListener);
      target.removeEventListener('pointerup', up);
      target.removeEventListener('pointercancel', up);
      setBrush(null);
      if (next.type === 'pointercancel') return; // the page was scrolled with a finger
      if (!far && !placing) props.onPick?.(nearest(view.px, view.py, startX, startY, 12));
      else if (brushing) props.onBrush?.(within(view, startX, startY, last[0], last[1]), (next as PointerEvent).ctrlKey || (next as PointerEvent).metaKey);
    };
    target.addEventListener('pointermove', move as EventListener);
    target.addEventListener('pointerup', up);
    target.addEventListener('pointercancel', up);
  };
  const wheel = useRef<(event: WheelEvent) => void>(() => undefined);
  wheel.current = (event) => {
    event.preventDefault();
    const [px, py] = local(event);
    later(() => zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.0015))), [px, py]));
  };
  useEffect(() => {
    const element = canvas.current;
    const listen = (event: WheelEvent) => {
      if (document.activeElement === element || event.ctrlKey || event.metaKey) wheel.current(event);
    };
    element?.addEventListener('wheel', listen, { passive: false });
    return () => element?.removeEventListener('wheel', listen);
  }, []);
  const key = (event: KeyboardEvent) => {
    const step = event.shiftKey ? 0.02 : 0.08;
    const moves: Record<string, [number, number]> = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const way = moves[event.key];
    if (way && mode === 'place') {
      const middle = props.include ?? [0, 0, 0, 0];
      const [wx, wy] = [(window.x[1] - window.x[0]) * step * 0.5, (window.y[1] - window.y[0]) * step * 0.5];
      props.onPlace?.(middle[0] - way[0] * wx, middle[1] + way[1] * wy);
    } else if (way) shift(way[0] * step * inner.width, way[1] * step * inner.height);
    else if (event.key === '+' || event.key === '=') zoom(0.8, [inner.width / 2, inner.height / 2]);
    else if (event.key === '-') zoom(1.25, [inner.width / 2, inner.height / 2]);
    else if (event.key === '0' || event.key === 'Escape') setMoved(null);
    else return;
    event.preventDefault();
  };
  const hovered = (event: PointerEvent) => {
    if (!props.hover || event.buttons) return;
    const [px, py] = local(event);
    const row = nearest(view.px, view.py, px, py, 10);
    setTip(row === null ? null : { x: view.px[row]!, y: view.py[row]!, row });
  };
  return (
    <div class="scatter" ref={ref} style={{ height: `${height}px` }}>
      <canvas
        ref={canvas}
        class={`points ${mode}`}
        tabIndex={0}
        role="img"
        aria-label={`${props.label}. Arrow keys ${mode === 'place' ? 'move the place' : 'move the picture'}, + and − zoom, 0 shows all. Its table has the numbers.`}
        style={{ left: `${MARGIN.left}px`, top: `${MARGIN.top}px`, width: `${inner.width}px`, height: `${inner.height}px` }}
        onPointerDown={down}
        onPointerMove={hovered}
        onPointerLeave={() => setTip(null)}
        onDblClick={() => setMoved(null)}
        onKeyDown={key}
      />
      <svg class="over" width={width} height={height} aria-hidden="true">
        <BottomAxis scale={shiftScale(sx, MARGIN.left)} y={height - MARGIN.bottom} from={MARGIN.left} to={MARGIN.left + inner.width} name={props.xName} />
        {props.yName !== '' && <LeftAxis scale={shiftScale(sy, MARGIN.top)} x={MARGIN.left} from={MARGIN.top} to={height - MARGIN.bottom} name={props.yName} />}
        <svg x={MARGIN.left} y={MARGIN.top} width={inner.width} height={inner.height} class="inside">
          {props.children?.(view)}
          {brush && <rect class="brush" x={Math.min(brush[0], brush[2])} y={Math.min(brush[1], brush[3])} width={Math.abs(brush[2] - brush[0])} height={Math.abs(brush[3] - brush[1])} />}
          {tip && <circle class="tip" cx={tip.x} cy={tip.y} r={7} />}
        </svg>
      </svg>
      {moved && (
        <button type="button" class="home" data-export="no" onClick={() => setMoved(null)}>
          Show all
        </button>
      )}
      {tip && (
        <div class="tooltip" role="status" data-export="no" style={{ left: `${MARGIN.left + Math.min(tip.x + 12, inner.width - 120)}px`, top: `${MARGIN.top + Math.max(0, tip.y - 34)}px` }}>
          <bdi>{props.hover!(tip.row)}</bdi>
        </div>
      )}
    </div>
  );
}

/** A scale of the inner picture, in pixels of the whole. */
function shiftScale(scale: Linear, by: number) {
  const shifted = (value: number) => scale(value) + by;
  const bounded = (most?: number) => {
    const [a, b] = scale.domain() as [number, number];
    return scale.ticks(most).filter((tick) => tick >= Math.min(a, b) && tick <= Math.max(a, b));
  };
  return Object.assign(shifted, { ticks: bounded, tickFormat: (most?: number) => scale.tickFormat(most) });
}

/** The window that shows all points, a little wider. */
function homeWindow({ x, y, root, equal, include }: Props, width: number, height: number): Window {
  let [x0, x1] = extent(x);
  let [y0, y1] = extent(y);
  if (include) {
    x0 = Math.min(x0, include[0]);
    x1 = Math.max(x1, include[0], include[2]);
    y0 = Math.min(y0, include[1]);
    y1 = Math.max(y1, include[1], include[3]);
  }
  const pad = (low: number, high: number): [number, number] => {
    const wide = high - low || Math.abs(low) || 1;
    return [low - 0.06 * wide, high + 0.06 * wide];
  };
  const fromZero = (high: number): [number, number] => [0, high > 0 ? high * 1.08 : 1];
  let [wx, wy] = [root === 'both' ? fromZero(x1) : pad(x0, x1), root ? fromZero(y1) : pad(y0, y1)];
  if (equal) {
    const unit = Math.max((wx[1] - wx[0]) / width, (wy[1] - wy[0]) / height);
    const widen = ([low, high]: [number, number], size: number): [number, number] => {
      const middle = (low + high) / 2;
      return [middle - (unit * size) / 2, middle + (unit * size) / 2];
    };
    [wx, wy] = [widen(wx, width), widen(wy, height)];
  }
  return { x: wx, y: wy };
}

function project(values: Float64Array, out: Float32Array, [low, high]: [number, number], size: number, flip: boolean, root: boolean): void {
  const f = root ? (v: number) => Math.sign(v) * Math.sqrt(Math.abs(v)) : null;
  const [a, b] = f ? [f(low), f(high)] : [low, high];
  const scale = size / (b - a || 1);
  for (let i = 0; i < values.length; i++) {
    const at = ((f ? f(values[i]!) : values[i]!) - a) * scale;
    out[i] = flip ? size - at : at;
  }
}

function within({ px, py }: View, x0: number, y0: number, x1: number, y1: number): number[] {
  const [left, right, top, bottom] = [Math.min(x0, x1), Math.max(x0, x1), Math.min(y0, y1), Math.max(y0, y1)];
  const rows: number[] = [];
  for (let i = 0; i < px.length; i++) if (px[i]! >= left && px[i]! <= right && py[i]! >= top && py[i]! <= bottom) rows.push(i);
  return rows;
}
