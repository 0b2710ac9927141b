// Points written into the pixels of an image: a hundred thousand of them in a few milliseconds, without a GPU.

export interface Sprite {
  /** Pixels relative to the middle, and how much of each is covered. */
  dx: Int32Array;
  dy: Int32Array;
  cover: Float32Array;
}

export const SHAPES = ['circle', 'triangle', 'square', 'diamond', 'cross', 'ring'] as const;
export type Shape = (typeof SHAPES)[number];

/** How far inside a shape of radius 1 a place is: above 0 inside. */
function inside(shape: Shape, x: number, y: number): number {
  switch (shape) {
    case 'circle':
      return 1 - Math.hypot(x, y);
    case 'ring':
      return 0.28 - Math.abs(Math.hypot(x, y) - 0.78);
    case 'square':
      return 0.86 - Math.max(Math.abs(x), Math.abs(y));
    case 'diamond':
      return 1.15 - Math.abs(x) - Math.abs(y);
    case 'triangle':
      return Math.min(0.62 - y, (y + 1.1 - 1.9 * Math.abs(x)) * 0.5);
    case 'cross':
      return Math.max(Math.min(0.3 - Math.abs(x - y) * 0.7, 0.95 - Math.max(Math.abs(x), Math.abs(y))), Math.min(0.3 - Math.abs(x + y) * 0.7, 0.95 - Math.max(Math.abs(x), Math.abs(y))));
  }
}

export function sprite(shape: Shape, radius: number): Sprite {
  const [dx, dy, cover]: [number[], number[], number[]] = [[], [], []];
  const reach = Math.ceil(radius + 1);
  for (let y = -reach; y <= reach; y++)
    for (let x = -reach; x <= reach; x++) {
      const share = Math.max(0, Math.min(1, inside(shape, x / radius, y / radius) * radius + 0.5));
      if (share > 0.02) {
        dx.push(x);
        dy.push(y);
        cover.push(share);
      }
    }
  return { dx: Int32Array.from(dx), dy: Int32Array.from(dy), cover: Float32Array.from(cover) };
}

/** The radius that suits so many points, in pixels of the screen. */
export const radiusFor = (n: number): number => (n > 30000 ? 1 : n > 8000 ? 1.4 : n > 2000 ? 2 : n > 400 ? 2.8 : 3.8);

export interface Drawing {
  width: number;
  height: number;
  words: Uint32Array;
}

/** Draws points at x, y (pixels) in their colours; dimmed ones with little cover and beneath the others. */
export function drawPoints(
  drawing: Drawing,
  x: Float32Array,
  y: Float32Array,
  colours: Uint32Array,
  sprites: Sprite[],
  shapes: Uint32Array | null,
  mask: Uint8Array | null,
): void {
  drawing.words.fill(0);
  if (mask) drawSome(drawing, x, y, colours, sprites, shapes, mask, 0, 0.16);
  drawSome(drawing, x, y, colours, sprites, shapes, mask, 1, 0.88);
}

function drawSome(
  { width, height, words }: Drawing,
  x: Float32Array,
  y: Float32Array,
  colours: Uint32Array,
  sprites: Sprite[],
  shapes: Uint32Array | null,
  mask: Uint8Array | null,
  wanted: number,
  strength: number,
): void {
  for (let i = 0; i < x.length; i++) {
    if (mask && mask[i] !== wanted) continue;
    const px = x[i]!;
    const py = y[i]!;
    if (!(px > -20 && py > -20 && px < width + 20 && py < height + 20)) continue;
    const { dx, dy, cover } = sprites[shapes ? shapes[i]! % sprites.length : 0]!;
    const [cx, cy, colour] = [Math.round(px), Math.round(py), colours[i]!];
    for (let k = 0; k < dx.length; k++) {
      const [ax, ay] = [cx + dx[k]!, cy + dy[k]!];
      if (ax < 0 || ay < 0 || ax >= width || ay >= height) continue;
      const at = ay * width + ax;
      words[at] = blend(words[at]!, colour, cover[k]! * strength);
    }
  }
}

/** A colour over another; beneath the first there is nothing, so that paper and screen show through. */
function blend(under: number, over: number, share: number): number {
  const there = (under >>> 24) / 255;
  const whole = share + there * (1 - share);
  const keep = (there * (1 - share)) / whole;
  share /= whole;
  const r = (under & 255) * keep + (over & 255) * share;
  const g = ((under >> 8) & 255) * keep + ((over >> 8) & 255) * share;
  const b = ((under >> 16) & 255) * keep + ((over >> 16) & 255) * share;
  return ((Math.round(255 * whole) << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** The point nearest to a place, within a reach. */
export function nearest(x: Float32Array, y: Float32Array, atX: number, atY: number, reach: number): number | null {
  let [best, found] = [reach * reach, -1];
  for (let i = 0; i < x.length; i++) {
    const d = (x[i]! - atX) ** 2 + (y[i]! - atY) ** 2;
    if (d < best) [best, found] = [d, i];
  }
  return found < 0 ? null : found;
}

/** Labels that do not overlap: those that come first have their place. */
export function placeLabels(
  candidates: { x: number; y: number; text: string; row: number }[],
  width: number,
  height: number,
): { x: number; y: number; text: string; row: number }[] {
  const placed: { x: number; y: number; text: string; row: number; w: number }[] = [];
  for (const candidate of candidates) {
    const w = 6.2 * [...candidate.text].length + 6;
    if (candidate.x < 0 || candidate.y < 6 || candidate.x + w > width || candidate.y > height) continue;
    const free = placed.every((other) => Math.abs(other.y - candidate.y) > 13 || candidate.x > other.x + other.w || other.x > candidate.x + w);
    if (free) placed.push({ ...candidate, w });
    if (placed.length >= 60) break;
  }
  return placed;
}
