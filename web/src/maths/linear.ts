// A linear-Gaussian model as the core has it: coordinates, T², SPE and densities of rows with missing values.
//
// e = x − μ over the observed cells; r = noise relative to its mean s; A = W/√r, G = AᵀA, b = Aᵀ(e/√r).
// Least squares G⁺b, posterior mean (G + sI)⁻¹b, T² = Σ (v·b)²/(g(g + s)) over the eigenvectors v of G,
// SPE = ‖e − W G⁺b‖²; without noise s = 0.
import { cholesky, solveCholesky, spectral, symmetricEigen, identity, product, transpose } from './linalg';
import { chi2Tail, fTail, logGamma } from './special';

export interface LinearParts {
  p: number;
  q: number;
  mean: Float64Array;
  /** W (p × q). */
  loadings: Float64Array;
  /** Ψ (p). */
  noise: Float64Array;
  /** What a unit of each coordinate does to each feature (p × q). */
  directions: Float64Array;
  /** T (q × q): coordinates are Tᵀz. */
  turn: Float64Array | null;
  /** What features are divided by before they are projected (p). */
  scale: Float64Array | null;
  posterior: boolean;
  proper: boolean;
  degreesOfFreedom: number | null;
}

/** The q × q work of one pattern of observed cells. */
export interface Factor {
  observed: Int32Array;
  /** (G + sI)⁻¹ (q × q). */
  shrunk: Float64Array;
  /** G⁺ (q × q). */
  least: Float64Array;
  /** Σ ln ψ + ln |I + G/s| over the observed cells. */
  logDet: number;
  rank: number;
}

export interface RowAnswer {
  /** Coordinates as `covary transform` gives them. */
  coordinates: Float64Array;
  t2: number;
  spe: number;
  /** Squared Mahalanobis distance; NaN without noise. */
  distance: number;
  observed: number;
}

/** A normal distribution by its covariance (q × q), or a t distribution by its scale and degrees of freedom. */
export interface Spread {
  scale: Float64Array;
  degreesOfFreedom: number | null;
}

export class LinearModel {
  readonly s: number;
  private readonly whole: Factor;
  private readonly known = new Map<string, Factor>();
  private readonly projected = new Map<string, Float64Array>();

  constructor(readonly parts: LinearParts) {
    const { p, noise } = parts;
    let sum = 0;
    for (let j = 0; j < p; j++) sum += noise[j]!;
    this.s = p > 0 ? sum / p : 0;
    this.whole = this.factorOf(Int32Array.from({ length: p }, (_, j) => j));
  }

  get q(): number {
    return this.parts.q;
  }

  /** Noise of a feature relative to the mean noise; 1 without noise. */
  private relative(j: number): number {
    return this.s > 0 ? this.parts.noise[j]! / this.s : 1;
  }

  /** The factor of the cells that a row has; rows that observe the same cells share it. */
  factor(row: Float64Array): Factor {
    const seen: number[] = [];
    for (let j = 0; j < row.length; j++) if (!Number.isNaN(row[j]!)) seen.push(j);
    if (seen.length === row.length) return this.whole;
    const key = patternKey(row);
    let found = this.known.get(key);
    if (!found) {
      found = this.factorOf(Int32Array.from(seen));
      if (this.known.size < 5000) this.known.set(key, found);
    }
    return found;
  }

  private factorOf(observed: Int32Array): Factor {
    const { q, loadings, noise } = this.parts;
    const gram = new Float64Array(q * q);
    let logDet = 0;
    for (const j of observed) {
      const weight = 1 / this.relative(j);
      logDet += Math.log(noise[j]!);
      for (let a = 0; a < q; a++) {
        const x = weight * loadings[j * q + a]!;
        for (let b = 0; b <= a; b++) gram[a * q + b]! += x * loadings[j * q + b]!;
      }
    }
    for (let a = 0; a < q; a++) for (let b = a + 1; b < q; b++) gram[a * q + b] = gram[b * q + a]!;
    const s = this.s;
    const fast = observed.length > q && observed.length < this.parts.p ? this.byCholesky(gram, observed, logDet) : null;
    if (fast) return fast;
    const eigen = symmetricEigen(gram, q);
    const least = 1e-12 * Math.max(eigen.values[0] ?? 0, 0);
    const rank = eigen.values.reduce((count, g) => count + (g > least && g > 0 ? 1 : 0), 0);
    const positive = (g: number) => (g > least && g > 0 ? g : 0);
    if (s > 0) eigen.values.forEach((g) => (logDet += Math.log1p(Math.max(g, 0) / s)));
    return {
      observed,
      rank,
      logDet,
      least: spectral(eigen, q, (g) => (positive(g) > 0 ? 1 / g : 0)),
      shrunk: spectral(eigen, q, (g) => (s > 0 ? 1 / (Math.max(g, 0) + s) : positive(g) > 0 ? 1 / g : 0)),
    };
  }

  private byCholesky(gram: Float64Array, observed: Int32Array, logDet: number): Factor | null {
    const { q } = this.parts;
    const shifted = Float64Array.from(gram);
    for (let k = 0; k < q; k++) shifted[k * q + k]! += this.s;
    const [small, large] = [cholesky(gram, q), cholesky(shifted, q)];
    if (!small || !large) return null;
    for (let k = 0; k < q; k++) logDet += 2 * Math.log(large[k * q + k]!) - (this.s > 0 ? Math.log(this.s) : 0);
    return { observed, rank: q, logDet, least: inverse(small, q), shrunk: inverse(large, q) };
  }

  /** b = Aᵀ(e/√r) (q). */
  private b(row: Float64Array, factor: Factor): Float64Array {
    const { q, loadings, mean } = this.parts;
    const b = new Float64Array(q);
    for (const j of factor.observed) {
      const e = (row[j]! - mean[j]!) / this.relative(j);
      for (let k = 0; k < q; k++) b[k]! += loadings[j * q + k]! * e;
    }
    return b;
  }

  answer(row: Float64Array): RowAnswer {
    const { q, loadings, mean, noise } = this.parts;
    const factor = this.factor(row);
    const b = this.b(row, factor);
    const z = times(factor.shrunk, b, q);
    const least = times(factor.least, b, q);
    let t2 = 0;
    for (let k = 0; k < q; k++) t2 += z[k]! * least[k]!;
    let spe = 0;
    let weighted = 0;
    for (const j of factor.observed) {
      let residual = row[j]! - mean[j]!;
      for (let k = 0; k < q; k++) residual -= loadings[j * q + k]! * least[k]!;
      spe += residual * residual;
      weighted += (residual * residual) / noise[j]!;
    }
    if (factor.observed.length <= factor.rank) [spe, weighted] = [0, 0]; // the plane passes through such cells
    const distance = this.s > 0 ? Math.max(t2, 0) + weighted : NaN;
    return { coordinates: this.coordinates(row, factor, z), t2: Math.max(t2, 0), spe, distance, observed: factor.observed.length };
  }

  /** Posterior mean of z, turned; or the least-squares projection on the directions. */
  private coordinates(row: Float64Array, factor: Factor, z: Float64Array): Float64Array {
    const { q, turn, posterior } = this.parts;
    if (!posterior) return this.projection(row, factor.observed);
    if (!turn) return z;
    const out = new Float64Array(q);
    for (let k = 0; k < q; k++) for (let l = 0; l < q; l++) out[k]! += turn[l * q + k]! * z[l]!;
    return out;
  }

  private projection(row: Float64Array, observed: Int32Array): Float64Array {
    const { q, directions, mean, scale } = this.parts;
    const b = new Float64Array(q);
    for (const j of observed) {
      const weight = scale ? 1 / scale[j]! ** 2 : 1;
      for (let k = 0; k < q; k++) b[k]! += weight * directions[j * q + k]! * (row[j]! - mean[j]!);
    }
    return times(this.projector(observed, row), b, q);
  }

  /** (DᵀSD)⁺ of the observed cells (q × q). */
  projector(observed: Int32Array, row: Float64Array): Float64Array {
    const key = observed.length === this.parts.p ? '' : patternKey(row);
    let found = this.projected.get(key);
    if (!found) {
      found = projectorOf(this.parts, observed);
      if (this.projected.size < 5000) this.projected.set(key, found);
    }
    return found;
  }

  /** How far the coordinates of a row may lie from what its cells say: of the posterior, or of the error of the projection. */
  spread(row: Float64Array): Spread {
    const { q, turn, posterior, scale, noise, degreesOfFreedom: nu } = this.parts;
    const factor = this.factor(row);
    if (!posterior) {
      let inUnits = 0;
      for (let j = 0; j < this.parts.p; j++) inUnits += noise[j]! / (scale ? scale[j]! ** 2 : 1);
      const variance = inUnits / Math.max(this.parts.p, 1);
      return { scale: this.projector(factor.observed, row).map((x) => x * variance), degreesOfFreedom: nu };
    }
    const { distance, observed } = this.answer(row);
    const tails = nu === null ? 1 : (nu + distance) / (nu + observed);
    const c = factor.shrunk.map((x) => x * this.s * tails);
    const turned = turn ? product(product(transpose(turn, q, q), c, q, q, q), turn, q, q, q) : c;
    return { scale: turned, degreesOfFreedom: nu === null ? null : nu + observed };
  }

  /** μ + D c. */
  decode(coordinates: ArrayLike<number>): Float64Array {
    const { p, q, directions, mean } = this.parts;
    const out = new Float64Array(p);
    for (let j = 0; j < p; j++) {
      let x = 0;
      for (let k = 0; k < q; k++) x += directions[j * q + k]! * coordinates[k]!;
      out[j] = mean[j]! + x;
    }
    return out;
  }

  /** Standard deviation of a cell around what its place in the latent space says. */
  noiseDeviation(j: number): number {
    const nu = this.parts.degreesOfFreedom;
    const tails = nu === null ? 1 : nu > 2 ? nu / (nu - 2) : Infinity;
    return Math.sqrt(this.parts.noise[j]! * tails);
  }

  /** Standard deviation of a feature under the model. */
  featureDeviation(j: number): number {
    const { q, loadings, noise } = this.parts;
    let variance = noise[j]!;
    for (let k = 0; k < q; k++) variance += loadings[j * q + k]! ** 2;
    return Math.sqrt(variance);
  }

  /** Covariance of the coordinates of a new row (q × q): Φ of factors, I of z, and D⁺CD⁺ᵀ of projections. */
  coordinateCovariance(): Float64Array {
    const { p, q, turn, posterior, directions, scale, loadings, noise } = this.parts;
    if (posterior) return turn ? product(transpose(turn, q, q), turn, q, q, q) : identity(q);
    const weighted = directions.map((x, at) => (scale ? x / scale[Math.floor(at / q)]! ** 2 : x));
    const all = Int32Array.from({ length: p }, (_, j) => j);
    const pseudo = product(this.projector(all, this.parts.mean), transpose(weighted, p, q), q, q, p); // D⁺ (q × p)
    const signal = product(pseudo, loadings, q, p, q);
    const out = product(signal, transpose(signal, q, q), q, q, q);
    for (let a = 0; a < q; a++)
      for (let b = 0; b < q; b++)
        for (let j = 0; j < p; j++) out[a * q + b]! += pseudo[a * p + j]! * noise[j]! * pseudo[b * p + j]!;
    return out;
  }

  /** Log density of a row's observed cells; null without noise. */
  logDensity(row: Float64Array): number | null {
    if (!this.parts.proper) return null;
    const { distance, observed: k } = this.answer(row);
    const { logDet } = this.factor(row);
    return logDensityOf(distance, k, logDet, this.parts.degreesOfFreedom);
  }

  /** Probability that a row of the model lies at least as far out. */
  pValue(distance: number, observed: number): number {
    const nu = this.parts.degreesOfFreedom;
    if (observed === 0) return 1;
    return nu === null ? chi2Tail(distance, observed) : fTail(distance / observed, observed, nu);
  }
}

/** ln of the density at a squared distance: normal, or t with ν degrees of freedom. */
export function logDensityOf(distance: number, k: number, logDet: number, nu: number | null): number {
  if (k === 0) return 0;
  if (nu === null) return -0.5 * (k * Math.log(2 * Math.PI) + logDet + distance);
  return (
    logGamma((nu + k) / 2) - logGamma(nu / 2) - 0.5 * (k * Math.log(nu * Math.PI) + logDet) - 0.5 * (nu + k) * Math.log1p(distance / nu)
  );
}

export function projectorOf(
  parts: { q: number; directions: Float64Array; scale: Float64Array | null },
  observed: ArrayLike<number>,
): Float64Array {
  const { q, directions, scale } = parts;
  const gram = new Float64Array(q * q);
  for (let o = 0; o < observed.length; o++) {
    const j = observed[o]!;
    const weight = scale ? 1 / scale[j]! ** 2 : 1;
    for (let a = 0; a < q; a++)
      for (let b = 0; b < q; b++) gram[a * q + b]! += weight * directions[j * q + a]! * directions[j * q + b]!;
  }
  const eigen = symmetricEigen(gram, q);
  const least = 1e-12 * Math.max(eigen.values[0] ?? 0, 0);
  return spectral(eigen, q, (g) => (g > least && g > 0 ? 1 / g : 0));
}

/** Which cells are there, as text: sixteen to a character. */
export function patternKey(row: Float64Array): string {
  const codes: number[] = [];
  for (let j = 0; j < row.length; j += 15) {
    let bits = 0;
    for (let k = j; k < Math.min(j + 15, row.length); k++) bits = bits * 2 + (Number.isNaN(row[k]!) ? 0 : 1);
    codes.push(bits + 1);
  }
  return codes.map((code) => String.fromCharCode(code)).join('');
}

function times(a: Float64Array, b: Float64Array, q: number): Float64Array {
  const out = new Float64Array(q);
  for (let i = 0; i < q; i++) for (let j = 0; j < q; j++) out[i]! += a[i * q + j]! * b[j]!;
  return out;
}

function inverse(l: Float64Array, q: number): Float64Array {
  const out = new Float64Array(q * q);
  for (let k = 0; k < q; k++) {
    const unit = new Float64Array(q);
    unit[k] = 1;
    solveCholesky(l, q, unit).forEach((x, i) => (out[i * q + k] = x));
  }
  return out;
}
