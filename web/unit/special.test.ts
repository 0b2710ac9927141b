// Distribution functions against numbers of tables and closed forms.
import { describe, expect, test } from 'vitest';
import { betaIncomplete, chi2Tail, fTail, logGamma, normalCdf, normalQuantile, squaredRadius } from '../src/maths/special';

describe('distributions', () => {
  test('gamma function: Γ(5) = 24, Γ(1/2) = √π', () => {
    expect(logGamma(5)).toBeCloseTo(Math.log(24), 12);
    expect(logGamma(0.5)).toBeCloseTo(0.5 * Math.log(Math.PI), 12);
  });

  test('χ² tails: closed forms for 2 and 4 degrees of freedom', () => {
    for (const x of [0.1, 1, 5, 30]) {
      expect(chi2Tail(x, 2)).toBeCloseTo(Math.exp(-x / 2), 13);
      expect(chi2Tail(x, 4)).toBeCloseTo(Math.exp(-x / 2) * (1 + x / 2), 13);
    }
    expect(chi2Tail(500, 2) / Math.exp(-250)).toBeCloseTo(1, 9);
  });

  test('shares of the plane: χ² and F of 2 degrees of freedom', () => {
    expect(squaredRadius(0.95, null)).toBeCloseTo(5.991465, 6);
    // F(2, 10) is 4.102821 at 95 % in printed tables.
    expect(squaredRadius(0.95, 10)).toBeCloseTo(2 * 4.102821, 5);
    for (const nu of [0.7, 3, 50]) expect(fTail(squaredRadius(0.9, nu) / 2, 2, nu)).toBeCloseTo(0.1, 12);
  });

  test('F: with one and ν degrees of freedom it is the square of t; with 2 and n it is closed', () => {
    for (const x of [0.5, 2, 9]) expect(fTail(x, 2, 6)).toBeCloseTo((1 + (2 * x) / 6) ** -3, 13);
    expect(fTail(2.228139 ** 2, 1, 10)).toBeCloseTo(0.05, 6);
    expect(chi2Tail(3.841459, 1)).toBeCloseTo(0.05, 6);
    expect(betaIncomplete(0.3, 1, 1)).toBeCloseTo(0.3, 14);
  });

  test('normal quantiles are inverse to the distribution', () => {
    expect(normalQuantile(0.975)).toBeCloseTo(1.959963985, 8);
    for (const p of [1e-9, 0.01, 0.5, 0.9]) expect(normalCdf(normalQuantile(p)) / p).toBeCloseTo(1, 9);
  });
});
