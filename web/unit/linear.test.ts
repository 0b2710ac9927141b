// The linear-Gaussian model against brute force with whole p × p matrices.
import { describe, expect, test } from 'vitest';
import { contributions } from '../src/maths/contributions';
import { cholesky, product, solveCholesky, spectral, symmetricEigen } from '../src/maths/linalg';
import { LinearModel, type LinearParts } from '../src/maths/linear';

const NAN = NaN;

function model(changes: Partial<LinearParts> = {}): LinearModel {
  const loadings = Float64Array.of(1.2, 0.1, 0.8, -0.4, -0.5, 0.9, 0.3, 0.7, 0.0, 0.6);
  return new LinearModel({
    p: 5,
    q: 2,
    mean: Float64Array.of(1, -2, 0.5, 3, 10),
    loadings,
    noise: Float64Array.of(0.3, 0.5, 0.2, 0.7, 0.4),
    directions: loadings,
    turn: null,
    scale: null,
    posterior: true,
    proper: true,
    degreesOfFreedom: null,
    ...changes,
  });
}

/** C over some features, inverted by solving for unit vectors. */
function brute(m: LinearModel, features: number[]) {
  const { q, loadings, noise } = m.parts;
  const k = features.length;
  const c = new Float64Array(k * k);
  features.forEach((a, i) =>
    features.forEach((b, j) => {
      for (let l = 0; l < q; l++) c[i * k + j]! += loadings[a * q + l]! * loadings[b * q + l]!;
      if (i === j) c[i * k + i]! += noise[a]!;
    }),
  );
  const factor = cholesky(c, k)!;
  const inverse = new Float64Array(k * k);
  for (let j = 0; j < k; j++) {
    const unit = new Float64Array(k);
    unit[j] = 1;
    solveCholesky(factor, k, unit).forEach((x, i) => (inverse[i * k + j] = x));
  }
  let logDet = 0;
  for (let j = 0; j < k; j++) logDet += 2 * Math.log(factor[j * k + j]!);
  return { inverse, logDet, k };
}

function mahalanobis(m: LinearModel, row: Float64Array): number {
  const seen = Array.from(row.keys()).filter((j) => !Number.isNaN(row[j]!));
  const { inverse, k } = brute(m, seen);
  const e = seen.map((j) => row[j]! - m.parts.mean[j]!);
  let d = 0;
  for (let i = 0; i < k; i++) for (let j = 0; j < k; j++) d += e[i]! * inverse[i * k + j]! * e[j]!;
  return d;
}

const ROWS = [
  Float64Array.of(2, -1, 0, 4, 9),
  Float64Array.of(2, NAN, 0, 4, NAN),
  Float64Array.of(NAN, NAN, NAN, 2, NAN),
  Float64Array.of(NAN, NAN, NAN, NAN, NAN),
];

describe('linear algebra', () => {
  test('eigenvectors put a matrix together again', () => {
    const a = Float64Array.of(4, 1, 0.5, 1, 3, -1, 0.5, -1, 2);
    const eigen = symmetricEigen(a, 3);
    spectral(eigen, 3, (x) => x).forEach((x, at) => expect(x).toBeCloseTo(a[at]!, 12));
    expect(product(a, eigen.vectors, 3, 3, 3)[0]).toBeCloseTo(eigen.values[0]! * eigen.vectors[0]!, 12);
  });
  test('what is not positive definite has no factor', () => expect(cholesky(Float64Array.of(1, 2, 2, 1), 2)).toBeNull());
});

describe('rows of a linear-Gaussian model', () => {
  test('distances are (x − μ)ᵀC⁻¹(x − μ) over the observed cells', () => {
    for (const row of ROWS) expect(model().answer(row).distance).toBeCloseTo(mahalanobis(model(), row), 12);
  });

  test('log densities are those of the normal distribution', () => {
    for (const row of ROWS) {
      const seen = Array.from(row.keys()).filter((j) => !Number.isNaN(row[j]!));
      const { logDet, k } = brute(model(), seen);
      expect(model().logDensity(row)).toBeCloseTo(k === 0 ? 0 : -0.5 * (k * Math.log(2 * Math.PI) + logDet + mahalanobis(model(), row)), 12);
    }
  });

  test('coordinates are Wᵀ C⁻¹ (x − μ)', () => {
    const [m, row] = [model(), ROWS[1]!];
    const seen = [0, 2, 3];
    const { inverse } = brute(m, seen);
    for (let l = 0; l < 2; l++) {
      let z = 0;
      seen.forEach((a, i) => seen.forEach((b, j) => (z += m.parts.loadings[a * 2 + l]! * inverse[i * 3 + j]! * (row[b]! - m.parts.mean[b]!))));
      expect(m.answer(row).coordinates[l]).toBeCloseTo(z, 12);
    }
  });

  test('a turn turns coordinates and their covariance', () => {
    const turn = Float64Array.of(0.6, 0, 0.8, 1); // columns of length 1: (0.6, 0.8) and (0, 1)
    const [plain, turned, row] = [model(), model({ turn }), ROWS[1]!];
    const z = plain.answer(row).coordinates;
    expect(turned.answer(row).coordinates[0]).toBeCloseTo(0.6 * z[0]! + 0.8 * z[1]!, 13);
    const [c, t] = [plain.spread(row).scale, turned.spread(row).scale];
    expect(t[3]).toBeCloseTo(c[3]!, 13);
    expect(t[0]).toBeCloseTo(0.36 * c[0]! + 0.96 * c[1]! + 0.64 * c[3]!, 13);
  });

  test('projections are least squares on the directions', () => {
    const directions = Float64Array.of(1, 0, 0, 1, 0, 0, 0, 0, 0, 0);
    const m = model({ posterior: false, directions });
    expect(Array.from(m.answer(ROWS[0]!).coordinates)).toEqual([1, 1]);
    const missing = m.answer(ROWS[1]!).coordinates;
    expect(missing[0]).toBeCloseTo(1, 14);
    expect(missing[1]).toBeCloseTo(0, 14);
  });

  test('decoding is μ + D c', () => {
    expect(model().decode([2, -1])[0]).toBeCloseTo(1 + 2.4 - 0.1, 14);
  });

  test('without noise rows have no density, and distances within the plane are those of z', () => {
    const m = model({ noise: new Float64Array(5), proper: false });
    const row = m.decode([1.5, -0.5]);
    const { t2, spe } = m.answer(row);
    expect(t2).toBeCloseTo(1.5 ** 2 + 0.25, 12);
    expect(spe).toBeLessThan(1e-24);
    expect(m.logDensity(row)).toBeNull();
  });

  test('heavy tails: the density of t with many degrees of freedom is nearly normal', () => {
    expect(model({ degreesOfFreedom: 1e8 }).logDensity(ROWS[0]!)).toBeCloseTo(model().logDensity(ROWS[0]!)!, 5);
  });
});

describe('heavy tails', () => {
  test('given k cells at distance δ, z has the scale (ν + δ)/(ν + k) and ν + k degrees of freedom', () => {
    const [plain, heavy, row] = [model(), model({ degreesOfFreedom: 5 }), ROWS[1]!];
    const { scale, degreesOfFreedom } = heavy.spread(row);
    expect(degreesOfFreedom).toBe(8);
    expect(scale[1]! / plain.spread(row).scale[1]!).toBeCloseTo((5 + mahalanobis(plain, row)) / 8, 12);
  });
});

describe('contributions', () => {
  for (const [index, row] of ROWS.slice(0, 2).entries()) {
    const m = model();
    const told = contributions(m, row);
    const seen = told.filter((cell) => !Number.isNaN(cell.value));

    test(`the distance falls by each cell that is dropped (row ${index})`, () => {
      for (const { feature, cell } of seen) {
        const without = Float64Array.from(row);
        without[feature] = NAN;
        expect(cell).toBeCloseTo(mahalanobis(m, row) - mahalanobis(m, without), 11);
      }
    });

    test(`shares add up to T² and SPE (row ${index})`, () => {
      const { t2, spe } = m.answer(row);
      expect(seen.reduce((sum, cell) => sum + cell.t2, 0)).toBeCloseTo(t2, 12);
      expect(seen.reduce((sum, cell) => sum + cell.spe, 0)).toBeCloseTo(spe, 12);
    });

    test(`what is expected is what a missing cell would be (row ${index})`, () => {
      for (const { feature, expected, deviation } of seen) {
        const without = Float64Array.from(row);
        without[feature] = NAN;
        const missing = contributions(m, without)[feature]!;
        expect(expected).toBeCloseTo(missing.expected, 11);
        expect(deviation).toBeCloseTo(missing.deviation, 11);
      }
    });
  }
});
