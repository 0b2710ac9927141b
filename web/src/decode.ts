// From the block in the page to what is told and arrays; the layout is that of crates/report/src/block.rs.
import type { About } from './about';

export type Typed = Float64Array | Float32Array | Uint32Array | Uint8Array;

export interface NamedArray {
  shape: [number, number];
  values: Typed;
}

export interface Block {
  about: About;
  arrays: Map<string, NamedArray>;
}

interface Entry {
  name: string;
  type: 'f64' | 'f32' | 'u32' | 'u8';
  shape: [number, number];
  offset: number;
}

const kinds = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u8: Uint8Array };

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const clean = text.trim();
  const native = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (native.fromBase64) return native.fromBase64(clean);
  const raw = atob(clean);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export async function unzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

export function parseBlock(buffer: ArrayBuffer): Block {
  const length = new DataView(buffer).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const { about, arrays } = JSON.parse(json) as { about: About; arrays: Entry[] };
  const start = Math.ceil((4 + length) / 8) * 8;
  const found = new Map<string, NamedArray>();
  for (const { name, type, shape, offset } of arrays) {
    const values = new kinds[type](buffer, start + offset, shape[0] * shape[1]);
    found.set(name, { shape, values });
  }
  return { about, arrays: found };
}

export async function decode(text: string): Promise<Block> {
  return parseBlock(await unzip(bytesOfBase64(text)));
}
