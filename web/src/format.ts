// Numbers and names for people.
import { format } from 'd3-format';

const four = format('.4~g');

export function number(x: number | null | undefined): string {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  if (!Number.isFinite(x)) return x > 0 ? '∞' : '−∞';
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-4) return scientific(x);
  return minus(size >= 10000 ? count(Math.round(x)) : size >= 1000 ? format('.0f')(x) : four(x));
}

function scientific(x: number): string {
  const [digits, power] = x.toExponential(2).split('e');
  const raised = power!.replace('+', '').replace('-', '⁻').replace(/\d/g, (d) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(d)]!);
  return minus(`${digits}·10${raised}`);
}

const minus = (text: string): string => text.replace('-', '−');

/** With so many decimals; what rounds to 0 has no sign. */
export function fixed(x: number, digits: number): string {
  if (!Number.isFinite(x)) return number(x);
  const text = x.toFixed(digits);
  return minus(Number(text) === 0 ? text.replace('-', '') : text);
}

export const percent = (share: number, digits = 1): string => (Number.isFinite(share) ? `${minus((100 * share).toFixed(digits))} %` : '–');

export const count = (n: number): string => format(',')(n).replaceAll(',', '\u202f');

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

export function probability(p: number): string {
  if (!Number.isFinite(p)) return '–';
  if (p < 1e-300) return '< 10⁻³⁰⁰';
  return p < 1e-4 ? scientific(p) : p.toFixed(p < 0.01 ? 4 : 3);
}

/** A cell to the decimals that its deviation leaves: one figure of it, or two where the first is a 1 (as `covary score --words`). */
export function measured(x: number, deviation: number): string {
  if (!Number.isFinite(x) || !(deviation >= 1e-6) || !Number.isFinite(deviation) || Math.abs(x) >= 1e7) return number(x);
  let digits = 0;
  while (digits < 8 && deviation * 10 ** digits < 1.95) digits++;
  return fixed(x, digits);
}

/** A name that can be shown: control characters become symbols, and it is cut by characters, not by halves of them. */
export function label(name: string, most = 200): string {
  const shown: string[] = [];
  for (const character of name) {
    const code = character.codePointAt(0)!;
    if (shown.length >= most) {
      shown[most - 1] = '…';
      break;
    }
    shown.push(code < 32 ? String.fromCodePoint(0x2400 + code) : code === 127 ? '␡' : character);
  }
  const text = shown.join('');
  return text.trim() === '' ? '(no name)' : text;
}
