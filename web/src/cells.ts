// The cells of the rows: 16-bit steps of each feature, as crates/report/src/quantise.rs writes them.

const MISSING = 65535;

export class Cells {
  private readonly codes: Uint16Array;

  constructor(
    readonly n: number,
    readonly p: number,
    planes: Uint8Array,
    private readonly steps: Float64Array,
  ) {
    this.codes = new Uint16Array(n * p);
    for (let j = 0; j < p; j++) {
      const high = 2 * j * n;
      for (let i = 0; i < n; i++) this.codes[j * n + i] = (planes[high + i]! << 8) | planes[high + n + i]!;
    }
  }

  isMissing(i: number, j: number): boolean {
    return this.codes[j * this.n + i] === MISSING;
  }

  /** NaN where the cell is missing. */
  value(i: number, j: number): number {
    const code = this.codes[j * this.n + i]!;
    if (code === MISSING) return NaN;
    const s = this.steps;
    return (s[3 * j]! + code * s[3 * j + 1]!) / s[3 * j + 2]!;
  }

  row(i: number): Float64Array {
    const out = new Float64Array(this.p);
    for (let j = 0; j < this.p; j++) out[j] = this.value(i, j);
    return out;
  }

  column(j: number): Float64Array {
    const out = new Float64Array(this.n);
    for (let i = 0; i < this.n; i++) out[i] = this.value(i, j);
    return out;
  }

  /** How many cells of the row are missing. */
  missingIn(i: number): number {
    let count = 0;
    for (let j = 0; j < this.p; j++) if (this.isMissing(i, j)) count++;
    return count;
  }
}
