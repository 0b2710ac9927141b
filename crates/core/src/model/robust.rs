//! Robust PPCA: the linear-Gaussian model with Student's t in place of the normal, so that rows far out count
//! for little.

use std::ops::Range;
use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{
    Decode, Density, Encode, Explain, Fill, LatentPosterior, Loadings, Reconstruct, numbered,
};
use super::gaussian::is_proper;
use super::limits::Wanted;
use super::questions::column;
use super::{
    AnyModel, Capability, Conditional, Contributions, Factors, Imputed, Kind, LatentCovariance, Limits,
    LinearGaussian, Model, Noise, Outliers, Posterior, Predicted, Reconstruction, Sample, ppca,
};
use crate::control::Control;
use crate::data::{Observed, RowSource, Rows};
use crate::error::{Error, Result};
use crate::expectation::Student;
use crate::linalg::{Mat, MatRef};
use crate::memory;

/// Its kind.
pub static KIND: Kind = Kind {
    name: "robust",
    title: "robust PPCA",
    about: "probabilistic PCA with Student's t: outliers count for little",
    components: "components",
    capabilities: &Capability::LINEAR_GAUSSIAN,
    read: |file| Ok(Arc::new(read(file)?)),
};

fn read(file: &dyn StoredArrays) -> Result<LinearStudent> {
    // Infinite for the normal distribution.
    let dof = file.vector_with_limits("degrees_of_freedom", Some(1))?[0];
    LinearStudent::new(ppca::read(file)?, dof)
}

/// x = μ + (W z + ε)/√u with z ~ N(0, I), ε ~ N(0, noise) and u ~ Γ(ν/2, ν/2): a multivariate t distribution
/// of location μ, scale C = W Wᵀ + noise and ν degrees of freedom \[LLT89\].
///
/// The mean of z and of missing cells is that of the normal model of the same μ and C; spreads grow with the
/// distance of the row, because a row that lies far out is one of small u. Cells that are missing are
/// integrated out: those that are there have a t distribution too, of the same ν. A variance that does not
/// exist, of a row of k cells with ν + k ≤ 2, is infinite.
///
/// ```
/// use covary::data::Rows;
/// use covary::linalg::Mat;
/// use covary::model::{LinearGaussian, LinearStudent, Noise};
///
/// let w = Mat::from_fn(2, 1, |i, _| [1.0, 2.0][i]);
/// let scale = LinearGaussian::new(vec![0.0, 0.0], w, Noise::Isotropic(0.5))?;
/// let model = LinearStudent::new(scale, 4.0)?;
/// // The weight of a row: (ν + 2)/(ν + δ), δ its squared Mahalanobis distance, 0 at the mean.
/// let weights = model.weights(Rows::from_slice(&[0.0, 0.0, 30.0, -20.0], 2)?)?;
/// assert!((weights[0] - 1.5).abs() < 1e-14 && weights[1] < 0.01);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinearStudent {
    scale: LinearGaussian,
    student: Student,
}

impl LinearStudent {
    /// The t distribution of the location and scale of a linear-Gaussian model, with ν > 0 degrees of freedom;
    /// with infinitely many it is that model.
    ///
    /// # Errors
    /// When ν is not above 0.
    pub fn new(scale: LinearGaussian, degrees_of_freedom: f64) -> Result<Self> {
        Ok(Self { scale, student: Student::new(degrees_of_freedom)? })
    }

    /// Location μ, loadings W and noise, whose C is the scale of the t distribution.
    pub fn scale(&self) -> &LinearGaussian {
        &self.scale
    }

    /// ν; infinite for the normal distribution.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.student.dof()
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.scale.n_features()
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        self.scale.n_latent()
    }

    /// How much each row counts: the mean of u given its cells, $(\nu + k)/(\nu + \delta)$ for k cells of
    /// squared Mahalanobis distance δ. About 1 for rows of the model, near 0 for gross outliers, and 1 for a
    /// row without cells.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or there is no density.
    pub fn weights<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.of_distances(rows, Student::weight)
    }

    /// One number per row, of its number of cells and their squared Mahalanobis distance.
    fn of_distances<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        f: impl Fn(Student, usize, f64) -> f64 + Sync,
    ) -> Result<Vec<f64>> {
        self.scale.per_row(rows, |group| {
            let rows = group.mahalanobis()?.into_iter().zip(group.observed());
            Ok(rows.map(|(distance, cells)| f(self.student, cells, distance)).collect())
        })
    }

    /// (ν + δ)/(ν + k − 2) of each row.
    fn spreads(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        self.of_distances(rows, Student::spread)
    }

    fn is_normal(&self) -> bool {
        self.student == Student::NORMAL
    }

    /// ν/(ν − 2): the covariance in units of the scale.
    ///
    /// # Errors
    /// When ν ≤ 2.
    fn inflation(&self) -> Result<f64> {
        let nu = self.degrees_of_freedom();
        match self.student.spread(0, 0.0) {
            finite if finite.is_finite() => Ok(finite),
            _ => {
                let (name, value) = ("the degrees of freedom (nu)", nu.to_string());
                let allowed = "above 2: a t distribution with fewer has no covariance, only a scale";
                Err(Error::Parameter { name, value, allowed })
            }
        }
    }
}

impl Model for LinearStudent {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.scale.n_features()
    }

    fn n_latent(&self) -> usize {
        self.scale.n_latent()
    }

    fn arrays(&self) -> Arrays {
        let mut arrays = ppca::arrays(&self.scale);
        arrays.insert("degrees_of_freedom", Array::Vector(vec![self.degrees_of_freedom()]));
        arrays
    }

    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        Ok(Arc::new(Self { scale: ppca::rescaled(&self.scale, scale)?, ..self.clone() }))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
        Some(self)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
    }

    fn as_density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn as_explain(&self) -> Option<&dyn Explain> {
        Some(self)
    }

    fn as_fill(&self) -> Option<&dyn Fill> {
        Some(self)
    }

    fn as_loadings(&self) -> Option<&dyn Loadings> {
        Some(self)
    }
}

impl Encode for LinearStudent {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', self.n_latent())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.scale.latent_mean(rows)
    }
}

impl LatentPosterior for LinearStudent {
    /// z/√u given a row has a t distribution with ν + k degrees of freedom: the mean of the normal model, and
    /// its covariance times (ν + δ)/(ν + k − 2), one for each row.
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        let Posterior { mean, covariance } = self.scale.posterior(rows)?;
        if self.is_normal() {
            return Ok(Posterior { mean, covariance });
        }
        let (spreads, q) = (self.spreads(rows)?, self.n_latent());
        memory::check("the table of posterior covariances", &[spreads.len(), q, q])?;
        let mut cells = Vec::with_capacity(spreads.len() * q * q);
        for (row, spread) in spreads.iter().enumerate() {
            let c = covariance.of(row);
            cells
                .extend((0..q).flat_map(|j| (0..q).map(move |i| (i, j))).map(|ij| spread_of(c, ij, *spread)));
        }
        let pattern = (0..spreads.len()).collect();
        Ok(Posterior { mean, covariance: LatentCovariance::PerPattern { cells, pattern, latent: q } })
    }
}

/// An entry of a covariance that is multiplied by a spread. Where that is infinite, so are variances, and
/// covariances are not defined.
fn spread_of(c: MatRef<'_, f64>, (i, j): (usize, usize), spread: f64) -> f64 {
    match spread.is_finite() {
        true => c[(i, j)] * spread,
        false if i == j => f64::INFINITY,
        false => f64::NAN,
    }
}

impl Decode for LinearStudent {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        self.scale.decode(latent)
    }
}

impl Reconstruct for LinearStudent {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        self.scale.reconstruct(rows, kind)
    }
}

impl Density for LinearStudent {
    fn log_density(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        self.scale.per_row(rows, |group| {
            let (peaks, distances) = (group.peak_log_density()?, group.mahalanobis()?);
            let rows = peaks.into_iter().zip(distances.into_iter().zip(group.observed()));
            Ok(rows.map(|(peak, (d, k))| peak + self.student.relative_log_density(k, d)).collect())
        })
    }

    /// T² and SPE are those of the normal model of the same scale; the p-value is the upper tail of the F
    /// distribution of δ/k, with k and ν degrees of freedom.
    fn outliers(&self, rows: &dyn RowSource) -> Result<Outliers> {
        let all = self.scale.per_row_columns(rows, 3, |group| {
            let distances = group.mahalanobis()?.into_iter().zip(group.observed());
            let tails: Vec<f64> = distances.map(|(d, k)| self.student.upper_tail(k, d)).collect();
            let (t2, spe) = group.t2_spe()?;
            Ok(Mat::from_fn(3, tails.len(), |i, j| [t2[j], spe[j], tails[j]][i]))
        })?;
        Ok(Outliers { t2: column(&all, 0), spe: column(&all, 1), p_value: column(&all, 2) })
    }

    fn row_weights(&self, rows: &dyn RowSource) -> Result<Option<Vec<f64>>> {
        self.weights(rows).map(Some)
    }

    fn distances(&self, rows: &dyn RowSource) -> Result<(Vec<f64>, Vec<f64>)> {
        self.scale.t2_spe(rows)
    }

    fn is_proper(&self) -> Result<bool> {
        is_proper(&self.scale)
    }

    fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64> {
        self.scale.sample_student_rows(rows, seed, self.degrees_of_freedom())
    }

    fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        self.scale.sample_student_with(n, seed, self.degrees_of_freedom(), control)
    }

    /// C ν/(ν − 2), which exists for ν > 2 only.
    fn covariance(&self) -> Result<Mat<f64>> {
        let factor = self.inflation()?;
        let mut c = self.scale.try_covariance()?;
        c.col_iter_mut().for_each(|column| column.iter_mut().for_each(|x| *x *= factor));
        Ok(c)
    }

    fn precision(&self, control: &Control<'_>) -> Result<Mat<f64>> {
        let factor = self.inflation()?;
        let mut c = self.scale.precision_with(control)?;
        c.col_iter_mut().for_each(|column| column.iter_mut().for_each(|x| *x /= factor));
        Ok(c)
    }

    fn marginal(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(Self { scale: self.scale.marginal(features)?, ..self.clone() }))
    }
}

impl Explain for LinearStudent {
    /// Shares, and the fall of the squared distance if a cell were missing, are those of the normal model of the same
    /// scale C. The rest of a row expects the same too; its deviation is that of the t distribution with ν + k
    /// degrees of freedom, k the number of other cells, and so larger where these lie far out.
    fn contributions(&self, rows: &dyn RowSource) -> Result<Contributions> {
        self.scale.contributions_student(rows, self.student)
    }

    /// In place of χ² with h degrees of freedom stands h times F with h and ν, which is exact where all noise is the
    /// same: a part of a t distribution has its ν.
    fn limits(&self, rows: &dyn RowSource, level: f64, sample: Option<Sample>) -> Result<Limits> {
        self.scale.limits_wanted(rows, Wanted::new(level, sample)?.student(self.student))
    }
}

impl Fill for LinearStudent {
    fn impute(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.scale.impute(rows)
    }

    fn impute_with_std(&self, rows: &dyn RowSource) -> Result<Imputed> {
        let mut imputed = self.scale.impute_with_std(rows)?;
        if self.is_normal() {
            return Ok(imputed);
        }
        let stretch: Vec<f64> = self.spreads(rows)?.iter().map(|s| s.sqrt()).collect();
        for column in imputed.std.col_iter_mut() {
            let missing = column.iter_mut().zip(&stretch).filter(|(std, _)| **std > 0.0);
            missing.for_each(|(std, s)| *std *= s);
        }
        Ok(imputed)
    }

    fn draw_missing(&self, rows: &dyn RowSource, draws: Range<usize>, seed: u64) -> Result<Vec<Mat<f64>>> {
        self.scale.draw_missing_student(rows, draws, seed, self.student)
    }

    fn conditional(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional> {
        let mut given = self.scale.conditional_with(row, control)?;
        if self.is_normal() {
            return Ok(given);
        }
        let spread = self.spreads(Rows::from_slice(row, row.len())?.source())?[0];
        let c = given.covariance;
        let entry = |i: usize, j: usize| spread_of(c.as_ref(), (i, j), spread);
        given.covariance = Mat::from_fn(c.nrows(), c.ncols(), entry);
        Ok(given)
    }

    fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        self.scale.predict_student(rows, cells, self.student)
    }
}

impl Loadings for LinearStudent {
    fn mean(&self) -> &[f64] {
        self.scale.mean()
    }

    fn loadings(&self) -> &Mat<f64> {
        self.scale.loadings()
    }

    fn noise(&self) -> Noise {
        self.scale.noise().clone()
    }

    fn axes(&self) -> Result<Mat<f64>> {
        Ok(self.scale.principal_axes()?.0)
    }

    /// Of the scale C, which exists for every ν.
    fn variances(&self) -> Result<Vec<f64>> {
        Ok(self.scale.principal_axes()?.1)
    }

    fn factors(&self) -> Factors {
        Factors::new(self.scale.clone())
    }
}
