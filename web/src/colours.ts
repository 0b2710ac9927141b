// Colours that colour-blind people can tell apart: Okabe and Ito's for groups, viridis for amounts, orange to blue around 0.

export const GROUPS_LIGHT = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b58900', '#56b4e9', '#6b4c9a', '#4d4d4d', '#8c2d04', '#1b7837', '#01665e', '#bf812d'];
export const GROUPS_DARK = ['#56b4e9', '#ff8c3a', '#2ec9a0', '#e79cc5', '#f0e442', '#8cc8ff', '#b79be0', '#c9c9c9', '#e5734a', '#7fbf7b', '#5ab4ac', '#dfc27d'];

const VIRIDIS = ['#440154', '#482878', '#3e4989', '#31688e', '#26828e', '#1f9e89', '#35b779', '#6ece58', '#b5de2b', '#fde725'];
const ORANGE_BLUE_LIGHT = ['#993404', '#e6750c', '#fdbe85', '#f7f6f3', '#9ecae1', '#4292c6', '#08519c'];
const ORANGE_BLUE_DARK = ['#fdc38a', '#e6850c', '#8a4b12', '#26292f', '#1f5a94', '#4292c6', '#9ecae1'];

export type Rgb = [number, number, number];

export function rgb(hex: string): Rgb {
  const value = parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function ramp(stops: string[]): (t: number) => Rgb {
  const colours = stops.map(rgb);
  return (t) => {
    const at = Math.max(0, Math.min(1, Number.isFinite(t) ? t : 0)) * (colours.length - 1);
    const k = Math.min(colours.length - 2, Math.floor(at));
    const [a, b, f] = [colours[k]!, colours[k + 1]!, at - k];
    return [0, 1, 2].map((c) => Math.round(a[c]! + (b[c]! - a[c]!) * f)) as Rgb;
  };
}

export const amounts = ramp(VIRIDIS);
const around = { light: ramp(ORANGE_BLUE_LIGHT), dark: ramp(ORANGE_BLUE_DARK) };

/** From −1 through 0 to 1. */
export const signed = (x: number, dark: boolean): Rgb => around[dark ? 'dark' : 'light'](0.5 + x / 2);

export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;

/** As a word of the pixels of an image: opaque. */
export const pixel = ([r, g, b]: Rgb): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

export const groupColour = (code: number, dark: boolean): Rgb => {
  const palette = dark ? GROUPS_DARK : GROUPS_LIGHT;
  return rgb(palette[code % palette.length]!);
};
