//! Components split in two or merged into one: where other optima of a mixture are looked for.

use crate::error::Result;
use crate::linalg::{Mat, symmetric_eigen};
use crate::model::{LinearGaussian, Mixture, Noise};

/// How far the halves of a component lie from its mean, in deviations along the axis.
const APART: f64 = 0.8;
/// Least share of its noise variance that a shortened loading keeps: one of length 0 would stay so.
const LEAST: f64 = 0.01;

/// The mixture with component k cut in two along a unit vector (p) with variance λ under it. Together the
/// halves have about its mean and covariance.
pub(crate) fn split(mixture: &Mixture, k: usize, axis: &[f64], variance: f64) -> Result<Mixture> {
    let whole = &mixture.components()[k];
    let apart = APART * variance.sqrt();
    let half = |side: f64| {
        let mean = whole.mean().iter().zip(axis).map(|(m, u)| m + side * apart * u).collect();
        LinearGaussian::new(mean, shortened(whole, axis), whole.noise().clone())
    };
    let (mut weights, mut components) = (mixture.weights().to_vec(), mixture.components().to_vec());
    weights[k] *= 0.5;
    weights.push(weights[k]);
    components[k] = half(1.0)?;
    components.push(half(-1.0)?);
    Mixture::new(weights, components)
}

/// Loadings whose extent along an axis is what is left of it in each half.
fn shortened(whole: &LinearGaussian, axis: &[f64]) -> Mat<f64> {
    let w = whole.loadings();
    let (p, q) = (w.nrows(), w.ncols());
    let along: Vec<f64> = (0..q).map(|k| (0..p).map(|j| axis[j] * w[(j, k)]).sum()).collect();
    let extent: f64 = along.iter().map(|a| a * a).sum();
    if extent == 0.0 {
        return w.clone();
    }
    let noise: f64 = (0..p).map(|j| axis[j].powi(2) * whole.noise().of(j)).sum();
    let left = ((1.0 - APART * APART) * (extent + noise) - noise).max(LEAST * noise).min(extent);
    let factor = (left / extent).sqrt() - 1.0;
    Mat::from_fn(p, q, |j, k| w[(j, k)] + factor * axis[j] * along[k])
}

/// The mixture with components i and j as one, of their common mean and covariance as far as q latent
/// variables and noise can have it.
pub(crate) fn merged(mixture: &Mixture, i: usize, j: usize) -> Result<Mixture> {
    let (a, b) = (&mixture.components()[i], &mixture.components()[j]);
    let (wa, wb) = (mixture.weights()[i], mixture.weights()[j]);
    let (share, p) = (wa / (wa + wb), a.n_features());
    let average = |x: f64, y: f64| share * x + (1.0 - share) * y;
    let mean: Vec<f64> = a.mean().iter().zip(b.mean()).map(|(x, y)| average(*x, *y)).collect();
    let (ca, cb) = (a.covariance(), b.covariance());
    let apart: Vec<f64> = a.mean().iter().zip(b.mean()).map(|(x, y)| x - y).collect();
    let between = |r: usize, c: usize| share * (1.0 - share) * apart[r] * apart[c];
    let covariance = Mat::from_fn(p, p, |r, c| average(ca[(r, c)], cb[(r, c)]) + between(r, c));
    let one = of_covariance(mean, &covariance, a.n_latent().max(b.n_latent()), a.noise())?;
    let keep = |k: &usize| *k != i && *k != j;
    let others = (0..mixture.n_components()).filter(keep);
    let weights = others.clone().map(|k| mixture.weights()[k]).chain([wa + wb]).collect();
    let components = others.map(|k| mixture.components()[k].clone()).chain([one]).collect();
    Mixture::new(weights, components)
}

/// PPCA of a covariance; where noise is diagonal, what the axes leave of each variance.
fn of_covariance(mean: Vec<f64>, covariance: &Mat<f64>, q: usize, like: &Noise) -> Result<LinearGaussian> {
    let (p, eigen) = (mean.len(), symmetric_eigen(covariance.as_ref())?);
    let rest: f64 = eigen.values[q..].iter().sum();
    let noise = rest / (p - q).max(1) as f64;
    let length = |k: usize| (eigen.values[k] - noise).max(0.0).sqrt();
    let w = Mat::from_fn(p, q, |j, k| eigen.vectors[(j, k)] * length(k));
    let left = |j: usize| (covariance[(j, j)] - w.row(j).squared_norm_l2()).max(0.1 * covariance[(j, j)]);
    let noise = match like {
        Noise::Isotropic(_) => Noise::Isotropic(noise),
        Noise::Diagonal(_) => Noise::Diagonal((0..p).map(left).collect()),
    };
    LinearGaussian::new(mean, w, noise)
}

/// The two axes of largest variance of a component, with their variances.
pub(crate) fn leading_axes(covariance: &Mat<f64>) -> Result<Vec<(Vec<f64>, f64)>> {
    let eigen = symmetric_eigen(covariance.as_ref())?;
    let axis = |k: usize| (eigen.vectors.col_as_slice(k).to_vec(), eigen.values[k]);
    Ok((0..eigen.values.len().min(2)).map(axis).filter(|(_, v)| *v > 0.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Density;

    fn one() -> Mixture {
        let w = Mat::from_fn(3, 1, |i, _| [3.0, 0.0, 0.0][i]);
        let model = LinearGaussian::new(vec![1.0, 2.0, 3.0], w, Noise::Isotropic(1.0)).unwrap();
        Mixture::new(vec![1.0], vec![model]).unwrap()
    }

    /// The halves have the mean and the covariance of the whole.
    #[test]
    fn a_split_keeps_mean_and_covariance() {
        let whole = one();
        let (axis, variance) = leading_axes(&whole.components()[0].covariance()).unwrap().remove(0);
        assert!((variance - 10.0).abs() < 1e-12);
        let halves = split(&whole, 0, &axis, variance).unwrap();
        assert_eq!(halves.weights(), [0.5, 0.5]);
        let (a, b) = (whole.covariance().unwrap(), halves.covariance().unwrap());
        for i in 0..3 {
            assert!((whole.mean()[i] - halves.mean()[i]).abs() < 1e-12);
            (0..3).for_each(|j| assert!((a[(i, j)] - b[(i, j)]).abs() < 1e-12));
        }
        let back = merged(&halves, 0, 1).unwrap();
        let c = back.covariance().unwrap();
        (0..3).for_each(|i| (0..3).for_each(|j| assert!((a[(i, j)] - c[(i, j)]).abs() < 1e-12)));
    }
}
