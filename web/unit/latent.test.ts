// The density of places in the latent space, against what is known of the normal distribution.
import { describe, expect, test } from 'vitest';
import { LatentDensity } from '../src/maths/latent';
import { LinearModel } from '../src/maths/linear';

const loadings = Float64Array.of(2, 0, 0, 1, 0, 0);
const parts = {
  p: 3,
  q: 2,
  mean: new Float64Array(3),
  loadings,
  noise: Float64Array.of(0.5, 0.5, 0.5),
  directions: loadings,
  turn: null,
  scale: null,
  posterior: true,
  proper: true,
  degreesOfFreedom: null,
};

describe('places', () => {
  test('of latent variables are N(0, I)', () => {
    const density = new LatentDensity(new LinearModel(parts));
    expect(density.logDensity([0, 0])).toBeCloseTo(-Math.log(2 * Math.PI), 13);
    expect(density.distance([3, 4])).toBeCloseTo(25, 13);
    expect(density.tail([2, 0])).toBeCloseTo(Math.exp(-2), 13);
  });

  test('of projections have the variances along the directions', () => {
    const unit = Float64Array.of(1, 0, 0, 1, 0, 0);
    const density = new LatentDensity(new LinearModel({ ...parts, directions: unit, posterior: false }));
    expect(density.deviations[0]).toBeCloseTo(Math.sqrt(4.5), 13);
    expect(density.deviations[1]).toBeCloseTo(Math.sqrt(1.5), 13);
  });

  test('of oblique factors have their correlation, and so do the ellipses', () => {
    const turn = Float64Array.of(1, 0.6, 0, 0.8);
    const density = new LatentDensity(new LinearModel({ ...parts, turn }));
    expect(density.covariance[1]).toBeCloseTo(0.6, 14);
    for (const [x, y] of density.ellipse(0, 1, 0.9)) expect(density.distance([x, y])).toBeCloseTo(-2 * Math.log(0.1), 12);
  });
});
