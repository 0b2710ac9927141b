//! A group of rows that are worked on together, and what is known of them.

use super::incomplete::Patchy;
use super::kernel::Kernel;
use crate::error::Result;
use crate::linalg::{LatentFactor, Mat, MatRef, product};

/// Some rows of a chunk.
pub(super) enum Group<'a> {
    /// All have the same features.
    Same(Same<'a>),
    /// Each has features of its own.
    Patchy(Patchy<'a>),
}

/// Rows that have the same features, as scaled deviations.
pub(super) struct Same<'a> {
    /// Made for exactly the features that these rows have.
    pub(super) kernel: &'a Kernel,
    /// Which rows of the chunk.
    pub(super) rows: &'a [usize],
    /// D^-½ (x − μ) of the observed features (rows × observed).
    pub(super) e: MatRef<'a, f64>,
    /// Whether the rows have no holes.
    pub(super) complete: bool,
}

impl Group<'_> {
    /// Which rows of the chunk.
    pub(super) fn rows(&self) -> &[usize] {
        match self {
            Self::Same(same) => same.rows,
            Self::Patchy(patchy) => &patchy.rows,
        }
    }

    /// Whether the rows have no holes.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Same(same) => same.complete,
            Self::Patchy(_) => false,
        }
    }

    /// Posterior means (q × rows).
    pub(super) fn latent(&self) -> Mat<f64> {
        match self {
            Self::Same(same) => same.kernel.latent(same.kernel.factor(), same.e),
            Self::Patchy(patchy) => patchy.latent().transpose().to_owned(),
        }
    }

    /// Posterior covariances, one column for each pattern (q² × patterns), and the pattern of each row.
    pub(super) fn covariances(&self) -> (Mat<f64>, Vec<usize>) {
        match self {
            Self::Same(same) => {
                let c = same.kernel.factor().covariance();
                let q = c.nrows();
                (Mat::from_fn(q * q, 1, |k, _| c[(k % q, k / q)]), vec![0; same.rows.len()])
            }
            Self::Patchy(patchy) => (patchy.covariances(), patchy.pattern().to_vec()),
        }
    }

    /// Draws of the latent variables (q × rows) from standard normals (q × rows).
    pub(super) fn draw(&self, normals: &Mat<f64>) -> Result<Mat<f64>> {
        match self {
            Self::Same(same) => same.draw(normals),
            Self::Patchy(patchy) => Ok(patchy.draw(normals.transpose().to_owned()).transpose().to_owned()),
        }
    }

    /// Squared Mahalanobis distance of each row, or the error that there is no density.
    pub(super) fn mahalanobis(&self) -> Result<Vec<f64>> {
        match self {
            Self::Same(same) => same.kernel.log_det().map(|_| same.kernel.mahalanobis(same.e)),
            Self::Patchy(patchy) => Ok(patchy.mahalanobis()),
        }
    }

    /// Number of observed cells of each row.
    pub(super) fn observed(&self) -> Vec<usize> {
        match self {
            Self::Same(same) => vec![same.kernel.n_features(); same.rows.len()],
            Self::Patchy(patchy) => patchy.observed(),
        }
    }

    /// log |C| of each row, or the error that there is no density.
    fn log_det(&self) -> Result<Vec<f64>> {
        match self {
            Self::Same(same) => Ok(vec![same.kernel.log_det()?; same.rows.len()]),
            Self::Patchy(patchy) => Ok(patchy.log_det()),
        }
    }

    /// Log density of each row.
    pub(super) fn log_density(&self) -> Result<Vec<f64>> {
        let parts = self.observed().into_iter().zip(self.log_det()?).zip(self.mahalanobis()?);
        let normal = std::f64::consts::TAU.ln();
        Ok(parts.map(|((k, log_det), d)| 0.0 - 0.5 * (k as f64 * normal + log_det + d)).collect())
    }

    /// Least-squares coordinates (q × rows); the group must have been made for them.
    pub(super) fn least_squares(&self) -> Result<Mat<f64>> {
        match self {
            Self::Same(same) => Ok(same.kernel.latent(same.kernel.least_squares()?, same.e)),
            Self::Patchy(patchy) => Ok(patchy.least_squares().transpose().to_owned()),
        }
    }

    /// Whether the cells determine the least-squares coordinates; the group must have been made for them.
    pub(super) fn determined(&self) -> Result<bool> {
        match self {
            Self::Same(same) => {
                let p = same.kernel.n_features();
                same.kernel.least_squares().map(|factor| factor.rank(p) == factor.n_latent())
            }
            Self::Patchy(_) => Ok(true), // the others have left the group
        }
    }

    /// T² and SPE of each row; the group must have been made for least squares.
    pub(super) fn t2_spe(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        match self {
            Self::Same(same) => same.t2_spe(),
            Self::Patchy(patchy) => Ok(patchy.t2_spe()),
        }
    }
}

impl Same<'_> {
    /// Each row by itself: a product's order of additions depends on how many rows there are.
    fn draw(&self, normals: &Mat<f64>) -> Result<Mat<f64>> {
        let root = self.kernel.factor().root()?; // (q × r), r ≤ q
        let mut z = Mat::zeros(normals.nrows(), normals.ncols());
        for i in 0..normals.ncols() {
            let mean = self.kernel.latent(self.kernel.factor(), self.e.subrows(i, 1));
            let z = z.col_as_slice_mut(i);
            z.copy_from_slice(mean.col_as_slice(0));
            for (column, u) in root.col_iter().zip(normals.col_as_slice(i)) {
                z.iter_mut().zip(column.iter()).for_each(|(z, r)| *z += r * u);
            }
        }
        Ok(z)
    }

    fn t2_spe(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        let (kernel, factor) = (self.kernel, self.kernel.least_squares()?);
        let z = kernel.latent(factor, self.e);
        let spe = kernel.squared_error(kernel.residual(self.e, z.as_ref()).as_ref());
        Ok((squared_scores(factor, kernel.factor().noise(), z.as_ref()), spe))
    }
}

/// T² = zᵀ (I + s G⁺)⁻¹ z of least-squares coordinates z (q × rows), whose covariance under the model is I + s G⁺.
fn squared_scores(least_squares: &LatentFactor, noise: f64, z: MatRef<'_, f64>) -> Vec<f64> {
    let LatentFactor::Noiseless { eigen, rank } = least_squares else { return Vec::new() };
    let t = product(eigen.vectors.subcols(0, *rank).transpose(), z); // (rank × rows)
    let share: Vec<f64> = eigen.values[..*rank].iter().map(|g| g / (g + noise)).collect();
    t.col_iter().map(|c| c.iter().zip(&share).map(|(t, s)| t * t * s).sum()).collect()
}
