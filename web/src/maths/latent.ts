// How probable a place in the latent space is: the density of the coordinates of a new row.
import { cholesky, solveCholesky } from './linalg';
import { logDensityOf, type LinearModel } from './linear';

export class LatentDensity {
  private readonly factor: Float64Array | null;
  private readonly logDet: number;
  /** Standard deviation of each coordinate. */
  readonly deviations: number[];

  constructor(private readonly model: LinearModel) {
    const q = model.q;
    const covariance = model.coordinateCovariance();
    this.factor = cholesky(covariance, q);
    this.deviations = Array.from({ length: q }, (_, k) => Math.sqrt(covariance[k * q + k]!));
    let logDet = 0;
    if (this.factor) for (let k = 0; k < q; k++) logDet += 2 * Math.log(this.factor[k * q + k]!);
    this.logDet = logDet;
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
