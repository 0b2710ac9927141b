//! The expectation step of complete rows from their moments: rows without holes are all of one pattern, so sums over them are products
//! with their mean and scatter.

use std::f64::consts::TAU;
use std::sync::Arc;

use super::latent::Totals;
use super::moments::check_features;
use super::{Latent, LatentParameters, Moments};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, clean_zeros, mirror_lower, packed, packed_len, product};

impl Latent {
    /// What the rows that have these moments say: the same as a pass over them would, at a cost that does not depend on their number.
    ///
    /// # Errors
    /// When the numbers of features differ, or a decomposition fails.
    pub(crate) fn of_moments(parameters: &Arc<LatentParameters>, moments: &Moments) -> Result<Self> {
        check_features(parameters.n_features(), moments.n_features())?;
        let (p, q, n) = (parameters.n_features(), parameters.n_latent(), moments.weight());
        let (noise, w) = (parameters.noise(), parameters.loadings_transposed()); // (q × p)
        let (mean, scatter) = deviations(parameters, moments);
        // Sums over the features of what is not known of (w, μ).
        let blur = |i: usize, k: usize| {
            let sum = |s: &Mat<f64>| s.row(packed(i.max(k), i.min(k))).iter().sum::<f64>();
            parameters.spread().map_or(0.0, sum)
        };
        let mut gram = product(w, w.transpose()); // M
        for (i, k) in (0..q).flat_map(|i| (0..q).map(move |k| (i, k))) {
            gram[(i, k)] += blur(i, k) + if i == k { noise } else { 0.0 };
        }
        let factor = Cholesky::new(gram, "the precision of the latent variables")?;
        let mut inverse = Mat::identity(q, q);
        factor.solve(inverse.as_mut());
        // z = M⁻¹ (W e − s): its sum, its products with e, and with itself.
        let shift = Mat::from_fn(q, 1, |i, _| blur(q, i));
        let means = Mat::from_fn(p, 1, |j, _| mean[j]);
        let projected = product(w, means.as_ref()); // W ē (q × 1)
        let along = product(w, scatter.as_ref()); // W Σ eeᵀ (q × p)
        let away = Mat::from_fn(q, p, |i, j| along[(i, j)] - n * shift[(i, 0)] * mean[j]);
        let latent = product(inverse.as_ref(), (&projected - &shift).as_ref()); // z̄
        let cross = product(inverse.as_ref(), away.as_ref()); // Σ z eᵀ (q × p)
        let right = product(cross.as_ref(), w.transpose()); // Σ z (W e)ᵀ (q × q)
        let right = Mat::from_fn(q, q, |i, k| right[(i, k)] - n * latent[(i, 0)] * shift[(k, 0)]);
        let outer = product(right.as_ref(), inverse.as_ref()); // Σ z zᵀ
        let entry = |i: usize, k: usize| match (i < q, k < q) {
            (true, true) => 0.5 * (outer[(i, k)] + outer[(k, i)]) + n * noise * inverse[(i, k)],
            (false, true) => n * latent[(k, 0)],
            _ => n,
        };
        let mut second = vec![0.0; packed_len(q + 1)];
        (0..=q)
            .flat_map(|i| (0..=i).map(move |k| (i, k)))
            .for_each(|(i, k)| second[packed(i, k)] = entry(i, k));
        // Σ ‖e − Wz‖² + (z, 1)ᵀ S (z, 1), with M z = W e − s: Σ e² + S − Σ z (We − s)ᵀ − σ² Σ zᵀz.
        let squared = (0..q).map(|i| outer[(i, i)]).sum::<f64>();
        let explained = (0..q).map(|i| right[(i, i)]).sum::<f64>();
        let of_cells: Vec<f64> = (0..p).map(|j| scatter[(j, j)]).collect();
        let squares = of_cells.iter().sum::<f64>() + n * blur(q, q) - explained - noise * squared;
        let squares = squares.max(0.0);
        let volume = (p as f64 - q as f64) * noise.ln() + factor.log_det();
        let log_likelihood = -0.5 * (n * (p as f64 * TAU.ln() + volume) + squares / noise + squared);
        let spread: f64 = (0..q).map(|i| noise * inverse[(i, i)]).sum();
        let mut of_features = clean_zeros(packed_len(q + 1), p);
        of_features.col_iter_mut().for_each(|c| c.iter_mut().zip(&second).for_each(|(to, from)| *to = *from));
        let mut products = Mat::zeros(q + 1, p);
        for j in 0..p {
            (0..q).for_each(|i| products[(i, j)] = cross[(i, j)]);
            products[(q, j)] = n * mean[j];
        }
        let totals = Totals {
            weight: n,
            cells: n * p as f64,
            log_likelihood,
            squares,
            determined: n * (q as f64 - spread),
            second,
        };
        if !log_likelihood.is_finite() {
            return Err(Error::Scale);
        }
        Self::from_parts(Arc::clone(parameters), of_features, products, of_cells, totals)
    }
}

/// Mean (p) and scatter about 0 (p × p) of x − μ, in units.
fn deviations(parameters: &LatentParameters, moments: &Moments) -> (Vec<f64>, Mat<f64>) {
    let (p, n, unit) = (parameters.n_features(), moments.weight(), |j: usize| parameters.units().of(j));
    let mean: Vec<f64> = (0..p).map(|j| (moments.mean()[j] - parameters.mean()[j]) / unit(j)).collect();
    let mut scatter = moments.scatter_lower().to_owned();
    mirror_lower(&mut scatter);
    for (i, j) in (0..p).flat_map(|j| (0..p).map(move |i| (i, j))) {
        scatter[(i, j)] = scatter[(i, j)] / unit(i) / unit(j) + n * mean[i] * mean[j];
    }
    (mean, scatter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::data::Rows;
    use crate::evidence::gather;

    /// Against a pass over the rows, with and without uncertainty of W and μ, and with noises of the features' own.
    #[test]
    fn the_same_as_a_pass() {
        let (n, p, q) = (30, 4, 2);
        let wave =
            |i: usize, j: usize| ((i * (j + 2)) as f64 * 0.7).sin() + 0.3 * ((i * 5 + j) as f64).cos() + 2.0;
        let x = Mat::from_fn(n, p, wave);
        let rows = Rows::from(&x);
        let moments = gather(rows.source(), || Moments::empty(p), &Control::new()).unwrap();
        let w = Mat::from_fn(p, q, |j, k| ((j + 3 * k) as f64).cos());
        let mean = vec![1.8, 2.1, 1.9, 2.2];
        let plain = LatentParameters::new(mean.clone(), w.as_ref(), 0.4).unwrap();
        let spread = Mat::from_fn(packed_len(q + 1), p, |k, j| {
            let diagonal = (0..=q).any(|i| packed(i, i) == k);
            if diagonal { 0.05 + 0.01 * j as f64 } else { 0.01 * (k as f64 - 1.5) }
        });
        let averaged =
            LatentParameters::new(mean.clone(), w.as_ref(), 0.4).unwrap().with_spread(Some(spread));
        let own = LatentParameters::with_noises(mean, w.as_ref(), &[0.3, 0.2, 0.5, 0.9]).unwrap();
        for parameters in [plain, averaged, own] {
            let parameters = Arc::new(parameters);
            let passed =
                gather(rows.source(), || Latent::empty(parameters.clone()), &Control::new()).unwrap();
            let found = Latent::of_moments(&parameters, &moments).unwrap();
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{a} {b}");
            near(found.log_likelihood(), passed.log_likelihood());
            let (a, b) = (&found.totals, &passed.totals);
            [(a.weight, b.weight), (a.cells, b.cells), (a.squares, b.squares), (a.determined, b.determined)]
                .into_iter()
                .for_each(|(a, b)| near(a, b));
            a.second.iter().zip(&b.second).for_each(|(a, b)| near(*a, *b));
            for j in 0..p {
                (0..=q).for_each(|i| near(found.cross[(i, j)], passed.cross[(i, j)]));
                (0..packed_len(q + 1)).for_each(|k| near(found.second[(k, j)], passed.second[(k, j)]));
            }
        }
    }
}
