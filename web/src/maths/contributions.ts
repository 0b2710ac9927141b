// What each cell of a row contributes, and what the rest of the row says it should be.
import type { LinearModel } from './linear';

export interface CellTold {
  feature: number;
  /** NaN where the cell is missing. */
  value: number;
  /** What the rest of the row says, and its standard deviation. */
  expected: number;
  deviation: number;
  /** By how much the squared Mahalanobis distance falls if the cell were missing: χ² with one degree of freedom. */
  cell: number;
  /** Shares of T² and SPE, which add up to them. */
  t2: number;
  spe: number;
  /** The nearest point of the plane. */
  rebuilt: number;
}

/** For each feature, with Λ = C⁻¹ over the observed cells: r = (Λe)ⱼ/Λⱼⱼ, cell = r²Λⱼⱼ. Needs noise. */
export function contributions(model: LinearModel, row: Float64Array): CellTold[] {
  const { q, p, loadings, mean, noise } = model.parts;
  const { observed, shrunk, least } = model.factor(row);
  const s = model.s;
  const b = new Float64Array(q);
  for (const j of observed) for (let k = 0; k < q; k++) b[k]! += (loadings[j * q + k]! * (row[j]! - mean[j]!) * s) / noise[j]!;
  const z = multiply(shrunk, b, q);
  const nearest = multiply(least, b, q);
  const both = multiply(shrunk, nearest, q); // (G + s)⁻¹G⁺b
  const nu = model.parts.degreesOfFreedom;
  const distance = nu === null ? 0 : model.answer(row).distance;
  // Of a t distribution deviations grow with the squared distance δ of the k other cells: √((ν + δ)/(ν + k − 2)).
  const tails = (k: number, others: number) => (nu === null ? 1 : nu + k > 2 ? Math.sqrt((nu + Math.max(others, 0)) / (nu + k - 2)) : Infinity);
  const told: CellTold[] = [];
  for (let j = 0; j < p; j++) {
    const w = loadings.subarray(j * q, j * q + q);
    const posterior = quadratic(shrunk, w, q) * s; // wᵀ Cov(z | row) w
    const [at, plane] = [dot(w, z), dot(w, nearest)];
    const e = row[j]! - mean[j]!;
    if (Number.isNaN(e)) {
      const deviation = Math.sqrt(noise[j]! + posterior) * tails(observed.length, distance);
      told.push({ feature: j, value: NaN, expected: mean[j]! + at, deviation, cell: 0, t2: 0, spe: 0, rebuilt: mean[j]! + plane });
      continue;
    }
    // Λe = (e − Wz)/ψ and Λⱼⱼ = (1 − wᵀCov(z)w/ψ)/ψ.
    const precision = (1 - posterior / noise[j]!) / noise[j]!;
    const gap = (e - at) / noise[j]! / precision;
    const cell = gap * gap * precision;
    told.push({
      feature: j,
      value: row[j]!,
      expected: row[j]! - gap,
      deviation: tails(observed.length - 1, distance - cell) / Math.sqrt(precision),
      cell,
      t2: (e * s * dot(w, both)) / noise[j]!,
      spe: (e - plane) ** 2,
      rebuilt: mean[j]! + plane,
    });
  }
  return told;
}

function multiply(a: Float64Array, b: Float64Array, q: number): Float64Array {
  const out = new Float64Array(q);
  for (let i = 0; i < q; i++) for (let j = 0; j < q; j++) out[i]! += a[i * q + j]! * b[j]!;
  return out;
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k]! * b[k]!;
  return sum;
}

function quadratic(a: Float64Array, w: ArrayLike<number>, q: number): number {
  let sum = 0;
  for (let i = 0; i < q; i++) for (let j = 0; j < q; j++) sum += w[i]! * a[i * q + j]! * w[j]!;
  return sum;
}
