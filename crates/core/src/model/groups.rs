//! A group of rows that are worked on together, and what is known of them.

use super::factored::FactoredModel;
use super::many_patterns::{ManyPatterns, ScaledFeatures};
use crate::blocks::IncompleteRows;
use crate::error::Result;
use crate::expectation::normal_log_density;
use crate::linalg::{LatentFactor, Mat, MatRef, product};

/// Some rows of a chunk.
pub(super) enum Group<'a> {
    /// All observe the same cells.
    OnePattern(OnePattern<'a>),
    /// Each observes cells of its own.
    ManyPatterns(Box<ManyPatterns<'a>>),
}

/// Rows that observe the same cells, as scaled deviations.
pub(super) struct OnePattern<'a> {
    /// The model of exactly the cells that these rows have.
    pub(super) model: &'a FactoredModel,
    /// Which rows of the chunk.
    pub(super) rows: &'a [usize],
    /// D^-½ (x − μ) of the observed features (rows × observed).
    pub(super) e: MatRef<'a, f64>,
    /// Which features those are; `None` for all.
    pub(super) features: Option<&'a [usize]>,
}

impl<'a> Group<'a> {
    /// Rows that each observe cells of their own.
    pub(super) fn many_patterns(
        features: &'a ScaledFeatures,
        rows: Vec<usize>,
        cells: &'a (dyn IncompleteRows + 'a),
    ) -> Self {
        Self::ManyPatterns(Box::new(ManyPatterns::new(features, rows, cells)))
    }

    /// Which rows of the chunk.
    pub(super) fn rows(&self) -> &[usize] {
        match self {
            Self::OnePattern(rows) => rows.rows,
            Self::ManyPatterns(rows) => &rows.rows,
        }
    }

    /// Whether the rows are complete.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::OnePattern(rows) => rows.features.is_none(),
            Self::ManyPatterns(_) => false,
        }
    }

    /// Posterior means (q × rows).
    pub(super) fn latent(&self) -> Mat<f64> {
        match self {
            Self::OnePattern(rows) => rows.model.latent(rows.model.factor(), rows.e),
            Self::ManyPatterns(rows) => rows.latent().transpose().to_owned(),
        }
    }

    /// Roots R of the posterior covariances RRᵀ, one column for each pattern (q² × patterns), and the pattern
    /// of each row.
    pub(super) fn roots(&self) -> Result<(Mat<f64>, Vec<usize>)> {
        match self {
            Self::OnePattern(rows) => Ok((rows.model.posterior_root()?, vec![0; rows.rows.len()])),
            Self::ManyPatterns(rows) => Ok((rows.roots(), rows.pattern().to_vec())),
        }
    }

    /// Draws of the latent variables (q × rows) from standard normals (q × rows).
    pub(super) fn draw(&self, normals: &Mat<f64>) -> Result<Mat<f64>> {
        match self {
            Self::OnePattern(rows) => rows.draw(normals),
            Self::ManyPatterns(rows) => Ok(rows.draw(normals.transpose().to_owned()).transpose().to_owned()),
        }
    }

    /// Squared Mahalanobis distance of each row, or the error that there is no density.
    pub(super) fn mahalanobis(&self) -> Result<Vec<f64>> {
        match self {
            Self::OnePattern(rows) => rows.model.log_det().map(|_| rows.model.mahalanobis(rows.e)),
            Self::ManyPatterns(rows) => Ok(rows.mahalanobis()),
        }
    }

    /// Number of observed cells of each row.
    pub(super) fn observed(&self) -> Vec<usize> {
        match self {
            Self::OnePattern(rows) => vec![rows.model.n_features(); rows.rows.len()],
            Self::ManyPatterns(rows) => rows.observed(),
        }
    }

    /// Log density of each row, or the error that there is none.
    pub(super) fn log_density(&self) -> Result<Vec<f64>> {
        match self {
            Self::OnePattern(rows) => {
                let (cells, log_det) = (rows.model.n_features(), rows.model.log_det()?);
                let distances = rows.model.mahalanobis(rows.e).into_iter();
                Ok(distances.map(|d| normal_log_density(cells, log_det, d)).collect())
            }
            Self::ManyPatterns(rows) => Ok(rows.log_density()),
        }
    }

    /// Log density at the mean of the cells that each row has, −½(k ln 2π + ln |C|), or the error that there
    /// is none.
    pub(super) fn peak_log_density(&self) -> Result<Vec<f64>> {
        match self {
            Self::OnePattern(rows) => {
                let (cells, log_det) = (rows.model.n_features(), rows.model.log_det()?);
                Ok(vec![normal_log_density(cells, log_det, 0.0); rows.rows.len()])
            }
            Self::ManyPatterns(rows) => Ok(rows.log_density_at(&vec![0.0; rows.rows.len()])),
        }
    }

    /// [`mahalanobis`](Self::mahalanobis), each row by itself where a group's order of additions depends on how
    /// many rows it has.
    pub(super) fn mahalanobis_row_by_row(&self) -> Result<Vec<f64>> {
        let Self::OnePattern(rows) = self else { return self.mahalanobis() };
        rows.model.log_det()?;
        Ok((0..rows.rows.len()).flat_map(|i| rows.model.mahalanobis(rows.e.subrows(i, 1))).collect())
    }

    /// Least-squares coordinates (q × rows); the group must have been made for them.
    pub(super) fn least_squares(&self) -> Result<Mat<f64>> {
        match self {
            Self::OnePattern(rows) => Ok(rows.model.latent(rows.model.least_squares()?, rows.e)),
            Self::ManyPatterns(rows) => Ok(rows.least_squares().transpose().to_owned()),
        }
    }

    /// Whether the cells determine the least-squares coordinates; the group must have been made for them.
    pub(super) fn determined(&self) -> Result<bool> {
        match self {
            Self::OnePattern(rows) => {
                let p = rows.model.n_features();
                rows.model.least_squares().map(|factor| factor.rank(p) == factor.n_latent())
            }
            Self::ManyPatterns(_) => Ok(true), // the others have left the group
        }
    }

    /// T² and SPE of each row; the group must have been made for least squares.
    pub(super) fn t2_spe(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        match self {
            Self::OnePattern(rows) => rows.t2_spe(),
            Self::ManyPatterns(rows) => Ok(rows.t2_spe()),
        }
    }
}

impl OnePattern<'_> {
    /// Each row by itself: a product's order of additions depends on how many rows there are.
    fn draw(&self, normals: &Mat<f64>) -> Result<Mat<f64>> {
        let root = self.model.factor().root()?; // (q × r), r ≤ q
        let mut z = Mat::zeros(normals.nrows(), normals.ncols());
        for i in 0..normals.ncols() {
            let mean = self.model.latent(self.model.factor(), self.e.subrows(i, 1));
            let z = z.col_as_slice_mut(i);
            z.copy_from_slice(mean.col_as_slice(0));
            for (column, u) in root.col_iter().zip(normals.col_as_slice(i)) {
                z.iter_mut().zip(column.iter()).for_each(|(z, r)| *z += r * u);
            }
        }
        Ok(z)
    }

    fn t2_spe(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        let (model, factor) = (self.model, self.model.least_squares()?);
        let z = model.latent(factor, self.e);
        let spe = model.squared_error(model.residual(self.e, z.as_ref()).as_ref());
        Ok((squared_scores(factor, model.factor().noise(), z.as_ref()), spe))
    }
}

/// T² = zᵀ (I + s G⁺)⁻¹ z of least-squares coordinates z (q × rows), whose covariance under the model is I +
/// s G⁺.
fn squared_scores(least_squares: &LatentFactor, noise: f64, z: MatRef<'_, f64>) -> Vec<f64> {
    let LatentFactor::Noiseless { eigen, rank, .. } = least_squares else { return Vec::new() };
    let t = product(eigen.vectors.subcols(0, *rank).transpose(), z); // (rank × rows)
    let share: Vec<f64> = eigen.values[..*rank].iter().map(|g| g / (g + noise)).collect();
    t.col_iter().map(|c| c.iter().zip(&share).fold(0.0, |sum, (t, s)| sum + t * t * s)).collect()
}
