// What people have chosen, shared by all pictures.
import { computed, effect, signal } from '@preact/signals';
import { options } from 'preact';
import type { Data } from './data';

/** The two components that are drawn. */
export const axes = signal<[number, number]>([0, 1]);

/** What points are coloured by: a name that `colouring` knows. */
export const colourBy = signal('none');
export const shapeBy = signal('none');

/** Rows that are selected: 1 for each; null for none. */
export const selection = signal<Uint8Array | null>(null);
export const selected = computed(() => {
  const mask = selection.value;
  if (!mask) return [];
  const rows: number[] = [];
  for (let i = 0; i < mask.length; i++) if (mask[i]) rows.push(i);
  return rows;
});

/** The row that is looked at. */
export const focus = signal<number | null>(null);

/** The place in the latent space that is explored. */
export const place = signal<number[]>([]);

export type Theme = 'auto' | 'light' | 'dark';
export const theme = signal<Theme>('auto');
const preferred = signal(typeof matchMedia === 'function' && matchMedia('(prefers-color-scheme: dark)').matches);
export const printing = signal(false);
export const dark = computed(() => !printing.value && (theme.value === 'auto' ? preferred.value : theme.value === 'dark'));

/** Everything that a change leads to, at once: a printer does not wait for the next frame. */
function atOnce(change: () => void): void {
  const before = options.debounceRendering;
  options.debounceRendering = (work) => work();
  try {
    change();
  } finally {
    options.debounceRendering = before;
  }
}

/** Follows the system, and is light on paper. */
export function watchTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => (preferred.value = event.matches));
  addEventListener('beforeprint', () => atOnce(() => (printing.value = true)));
  addEventListener('afterprint', () => (printing.value = false));
}

export function select(data: Data, rows: Iterable<number>, add = false): void {
  const mask = add && selection.value ? Uint8Array.from(selection.value) : new Uint8Array(data.n);
  let any = false;
  for (const i of rows) {
    mask[i] = 1;
    any = true;
  }
  selection.value = any || add ? mask : null;
}
