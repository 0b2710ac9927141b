// How probable a place in the latent space is: the density of the coordinates of a new row.
import { cholesky, solveCholesky, symmetricEigen } from './linalg';
import { logDensityOf, type LinearModel } from './linear';
import { squaredRadius } from './special';

export class LatentDensity {
  private readonly factor: Float64Array | null;
  private readonly logDet: number;
  /** Standard deviation of each coordinate. */
  readonly deviations: number[];

  /** Covariance of the coordinates (q × q). */
  readonly covariance: Float64Array;

  constructor(private readonly model: LinearModel) {
    const q = model.q;
    const covariance = model.coordinateCovariance();
    this.covariance = covariance;
    this.factor = cholesky(covariance, q);
    this.deviations = Array.from({ length: q }, (_, k) => Math.sqrt(covariance[k * q + k]!));
    let logDet = 0;
    if (this.factor) for (let k = 0; k < q; k++) logDet += 2 * Math.log(this.factor[k * q + k]!);
    this.logDet = logDet;
  }

  /** The ellipse around the middle that holds this share of the places in a plane of two coordinates, as so many points. */
  ellipse(a: number, b: number, share: number, points = 60): [number, number][] {
    const [c, q] = [this.covariance, this.model.q];
    const { values, vectors } = symmetricEigen(Float64Array.of(c[a * q + a]!, c[a * q + b]!, c[a * q + b]!, c[b * q + b]!), 2);
    const r = Math.sqrt(squaredRadius(share, this.model.parts.degreesOfFreedom));
    const [u, v] = [r * Math.sqrt(Math.max(values[0]!, 0)), r * Math.sqrt(Math.max(values[1]!, 0))];
    return Array.from({ length: points }, (_, t) => {
      const [x, y] = [u * Math.cos((2 * Math.PI * t) / points), v * Math.sin((2 * Math.PI * t) / points)];
      return [vectors[0]! * x + vectors[1]! * y, vectors[2]! * x + vectors[3]! * y];
    });
  }

  /** Squared distance from the middle, in units of the covariance. */
  distance(place: ArrayLike<number>): number {
    const q = this.model.q;
    if (!this.factor) return NaN;
    const solved = solveCholesky(this.factor, q, Float64Array.from(place));
    let sum = 0;
    for (let k = 0; k < q; k++) sum += place[k]! * solved[k]!;
    return sum;
  }

  logDensity(place: ArrayLike<number>): number {
    return logDensityOf(this.distance(place), this.model.q, this.logDet, this.model.parts.degreesOfFreedom);
  }

  /** Probability that a new row lies at least as far out. */
  tail(place: ArrayLike<number>): number {
    return this.model.pValue(this.distance(place), this.model.q);
  }
}
