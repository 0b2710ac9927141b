// The command, for tests that compare the page with it: COVARY says where it is, otherwise the debug build.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decode, type Block } from '../src/decode';

export const COMMAND = process.env.COVARY ?? join(dirname(fileURLToPath(import.meta.url)), '../../target/debug/covary');
export const present = existsSync(COMMAND);

export class Place {
  readonly dir = mkdtempSync(join(tmpdir(), 'covary-page-'));

  write(name: string, text: string): void {
    writeFileSync(join(this.dir, name), text);
  }

  text(name: string): string {
    return readFileSync(join(this.dir, name), 'utf8');
  }

  run(...words: string[]): string {
    return execFileSync(COMMAND, words, { cwd: this.dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });
  }

  async block(page: string): Promise<Block> {
    const html = readFileSync(join(this.dir, page), 'utf8');
    return decode(/id="data">([^<]*)<\/script>/.exec(html)![1]!);
  }

  /** Columns of numbers of a CSV text. */
  static columns(text: string): Map<string, number[]> {
    const lines = text.trim().split('\n').map((line) => line.split(','));
    return new Map(lines[0]!.map((name, at) => [name, lines.slice(1).map((line) => (line[at] === '' ? NaN : Number(line[at])))]));
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A table with two hidden variables, in three decimals, of which some cells may be missing. */
export function table(rows: number, features: number, missing: number, seed = 1): string {
  let state = seed;
  const random = () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
  const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random());
  const weights = Array.from({ length: features }, () => [normal(), normal()] as const);
  const lines = [['name', 'kind', ...weights.map((_, j) => `f${j + 1}`)].join(',')];
  for (let i = 0; i < rows; i++) {
    const group = i % 3;
    const [a, b] = [normal() + 2 * group, normal()];
    const cells = weights.map(([u, v], j) => (random() < missing ? '' : (10 * j + 3 * u * a + 2 * v * b + 0.7 * normal()).toFixed(3)));
    lines.push([`n${i + 1}`, 'abc'[group], ...cells].join(','));
  }
  return lines.join('\n') + '\n';
}
