//! What the means of the features have in common, as one more row.
//!
//! Before rows are seen, the means of the features are taken to be alike:
//! $\mu_j = m - w_j^\top z_0 + \varepsilon_j$ with a level m, latent variables $z_0 \sim \mathcal N(0, I)$
//! and $\varepsilon_j \sim \mathcal N(0, v)$. In other words there is one more row, which has m in every cell
//! and noise v of its own. Where the means differ more than that says, v is large and the row says nothing,
//! as if the prior were flat; a feature of few cells borrows from the others; and where the mean of the rows
//! lies along components, as that of ratios to a control does, it tells about their directions.
//!
//! m and v are found from the data, √v with a flat prior \[Ge06\] from the standard error of a mean upwards:
//! the means are never held to be more alike than could be seen. With $\lambda_k$ the eigenvalues of
//! $\sum_j \mathrm E w_j w_j^\top$ (q × q) and, along its eigenvectors, $a = \sum_j \mathrm E w_j$ and
//! $b = \sum_j \mathrm E w_j \mu_j$ (q), the optimum satisfies
//!
//! - $\mathrm E z_{0k} = (m a_k - b_k) / (v + \lambda_k)$ and
//!   $\operatorname{var} z_{0k} = v / (v + \lambda_k)$,
//! - $m = -\sum_k \frac{a_k b_k}{v + \lambda_k} \big/ \left( p - \sum_k \frac{a_k^2}{v + \lambda_k} \right)$,
//!   the means counted from their own mean, $z_0$ moving along with m,
//! - $v = \sum_j \mathrm E (\mu_j + w_j^\top z_0 - m)^2 / (p - 1)$,
//!
//! and alternating between the last and the others climbs.

use super::optimise::fixed_point;
use super::prior::expected_products;
use crate::error::Result;
use crate::expectation::LatentParameters;
use crate::linalg::{Mat, packed, packed_len, product, symmetric_eigen};

/// The row, in units: its best level and noise, and its latent variables given those.
pub(super) struct MeanRow {
    /// m − μⱼ of each feature.
    pub(super) offsets: Vec<f64>,
    /// v.
    pub(super) noise: f64,
    /// E[(z₀, 1)(z₀, 1)ᵀ], packed.
    pub(super) second: Vec<f64>,
    /// What it adds to the bound, counted in units.
    pub(super) objective: f64,
}

/// Sums over the features, along the eigenvectors of E WᵀW, with means counted from their own mean.
struct Sums {
    products: Vec<f64>, // λ, eigenvalues of Σ E wwᵀ (q)
    cross: Vec<f64>,    // b = Σ E wμ (q)
    loadings: Vec<f64>, // a = Σ E w (q)
    squares: f64,       // Σ E μ²
    p: f64,
}

impl MeanRow {
    /// Given the distribution of W and μ; `least` is the smallest v that is allowed, in units. `None` when
    /// there is one mean, or they lie so far apart that their squares leave their range.
    pub(super) fn of(parameters: &LatentParameters, least: f64) -> Result<Option<Self>> {
        let (p, unit) = (parameters.n_features(), parameters.scale().of(0));
        let middle = parameters.mean().iter().map(|m| m / p as f64).sum::<f64>();
        let each = parameters.mean().iter().zip(parameters.mean_rest());
        let mut means: Vec<f64> = each.map(|(m, rest)| (m - middle + rest) / unit).collect();
        let rounding = means.iter().sum::<f64>() / p as f64; // of their middle
        means.iter_mut().for_each(|m| *m -= rounding);
        let (sums, vectors) = Sums::of(parameters, &means)?;
        if p == 1 || !sums.squares.is_finite() {
            return Ok(None);
        }
        let noise = fixed_point(f64::INFINITY, |noise| {
            let level = sums.level(noise);
            let next = (sums.rest(&sums.latent(level, noise), level, noise) / (sums.p - 1.0)).max(least);
            Some((next, next - noise))
        });
        let noise = noise.unwrap_or(f64::INFINITY);
        Ok(Some(Self::standing(&sums, &vectors, &means, (sums.level(noise), noise), sums.p - 1.0)))
    }

    /// A row that has given cells, and noise of a given variance.
    ///
    /// $\mu_j = m_j - w_j^\top z_0 + \varepsilon_j$ with a level $m_j$ for each feature: the same with means
    /// counted from those, and a level of 0.
    pub(super) fn around(parameters: &LatentParameters, levels: &[f64], variance: f64) -> Result<Self> {
        let unit = parameters.scale().of(0);
        let each = parameters.mean().iter().zip(parameters.mean_rest()).zip(levels);
        let means: Vec<f64> = each.map(|((m, rest), level)| (m - level + rest) / unit).collect();
        let (sums, vectors) = Sums::of(parameters, &means)?;
        Ok(Self::standing(&sums, &vectors, &means, (0.0, variance / unit / unit), sums.p))
    }

    /// The row of a level and a noise; of the noise so many degrees of freedom are counted.
    fn standing(
        sums: &Sums,
        vectors: &Mat<f64>,
        means: &[f64],
        (level, noise): (f64, f64),
        degrees: f64,
    ) -> Self {
        let q = vectors.nrows();
        let latent = sums.latent(level, noise);
        let objective = sums.objective(&latent, (level, noise), degrees);
        let turned = Mat::from_fn(q, 1, |k, _| latent[k]);
        let z = product(vectors.as_ref(), turned.as_ref());
        let scaled = Mat::from_fn(q, q, |i, k| vectors[(i, k)] * sums.variance(k, noise));
        let covariance = product(scaled.as_ref(), vectors.transpose());
        let mut second = vec![1.0; packed_len(q + 1)];
        for i in 0..q {
            (0..=i).for_each(|k| second[packed(i, k)] = covariance[(i, k)] + z[(i, 0)] * z[(k, 0)]);
            second[packed(q, i)] = z[(i, 0)];
        }
        let offsets = means.iter().map(|m| level - m).collect();
        Self { offsets, noise, second, objective }
    }
}

impl Sums {
    fn of(parameters: &LatentParameters, means: &[f64]) -> Result<(Self, Mat<f64>)> {
        let (q, w) = (parameters.n_latent(), parameters.loadings_transposed());
        // Covariances of μ with w, and its variances, over all features.
        let spread = |i: usize| parameters.spread().map_or(0.0, |s| s.row(packed(q, i)).iter().sum::<f64>());
        let with_means = |i: usize| w.row(i).iter().zip(means).map(|(w, m)| w * m).sum::<f64>() + spread(i);
        let eigen = symmetric_eigen(expected_products(w, parameters.spread()).as_ref())?;
        let turned = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            eigen.vectors.col_iter().map(|v| v.iter().enumerate().map(|(i, v)| v * of(i)).sum()).collect()
        };
        let sums = Self {
            cross: turned(&with_means),
            loadings: turned(&|i| w.row(i).iter().sum()),
            products: eigen.values,
            squares: means.iter().map(|m| m * m).sum::<f64>() + spread(q),
            p: means.len() as f64,
        };
        Ok((sums, eigen.vectors))
    }

    /// var z₀ₖ.
    fn variance(&self, k: usize, noise: f64) -> f64 {
        if noise.is_finite() { noise / (noise + self.products[k]) } else { 1.0 }
    }

    /// E z₀.
    fn latent(&self, level: f64, noise: f64) -> Vec<f64> {
        let mean = |k: usize| (level * self.loadings[k] - self.cross[k]) / (noise + self.products[k]);
        (0..self.products.len()).map(mean).collect()
    }

    /// The best m, E z₀ moving along with it.
    fn level(&self, noise: f64) -> f64 {
        let sum = |of: &dyn Fn(usize) -> f64| -> f64 {
            (0..self.products.len()).map(|k| of(k) / (noise + self.products[k])).sum()
        };
        let left = self.p - sum(&|k| self.loadings[k] * self.loadings[k]);
        -sum(&|k| self.loadings[k] * self.cross[k]) / left.max(f64::EPSILON * self.p)
    }

    /// Σ E(μ + wᵀz₀ − m)².
    fn rest(&self, latent: &[f64], level: f64, noise: f64) -> f64 {
        let along = |(k, z): (usize, &f64)| {
            let open = self.variance(k, noise);
            2.0 * z * (self.cross[k] - level * self.loadings[k]) + (z * z + open) * self.products[k]
        };
        self.squares + self.p * level * level + latent.iter().enumerate().map(along).sum::<f64>()
    }

    /// E log p(μ | W, z₀) + E log p(z₀) − E log q(z₀), up to a constant.
    fn objective(&self, latent: &[f64], (level, noise): (f64, f64), degrees: f64) -> f64 {
        let standing = |(k, z): (usize, &f64)| {
            let open = self.variance(k, noise);
            0.5 * (open.ln() + 1.0 - open - z * z)
        };
        let fit = -0.5 * (degrees * noise.ln() + self.rest(latent, level, noise) / noise);
        fit + latent.iter().enumerate().map(standing).sum::<f64>()
    }
}
