//! Where a fit with missing values starts: the spectrum of the available cases, or of rows whose missing
//! cells are filled with the mean.

use std::sync::Arc;

use super::eigen::decompose;
use super::resolution::check_scales;
use super::{Components, Guard, Limits, Objective, Passes, RowIteration, Step, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{AvailableCases, Census, FilledSketch, Margins};
use crate::expectation::LatentParameters;
use crate::linalg::{
    BlockKrylov, Eigen, Mat, MatRef, comparable, graded_eigen, power_of_two, product, symmetric_eigen,
};

/// The least noise of a start, as a share of the mean variance: a spectrum that is not positive can leave
/// none.
const LEAST_NOISE: f64 = 1e-3;
/// Passes over filled rows, and the residual, relative to its eigenvalue, at which a direction of them is
/// good enough: a start need not be exact.
const FILLED: Limits = Limits { tolerance: 1e-2, iterations: 3 };

/// From the leading eigenvectors of the pairwise covariance.
pub(crate) fn from_available_cases(
    cases: &AvailableCases,
    components: Components,
    seed: u64,
) -> Result<LatentParameters> {
    supported(components, &cases.census)?;
    let variances = cases.variances();
    let variance = variances.iter().sum::<f64>();
    check_variance(variance)?;
    check_scales(&variances)?;
    let scales = (!comparable(variances.iter().copied())).then_some(&variances[..]);
    let eigen = match scales {
        Some(variances) => of_scaled(cases.covariance.as_ref(), variances)?,
        None => decompose(cases.covariance.as_ref(), components, seed)?,
    };
    let positive: Vec<f64> = eigen.values.iter().map(|v| v.max(0.0)).collect();
    let possible = supported(Components::All, &cases.census)?;
    let q = match components {
        Components::Fraction(_) => {
            components.resolve(usize::MAX, positive.len(), &positive, 0.0)?.min(possible)
        }
        Components::Count(q) => q,
        Components::All | Components::Auto => possible,
        Components::Evidence => {
            let reason =
                "the evidence for a number of components needs complete rows; give a number or a fraction";
            return Err(Error::Solver { solver: "em", reason: reason.into() });
        }
    };
    Ok(from_spectrum(cases.mean.clone(), &eigen, q, (variance, scales)))
}

/// From a few passes of block Krylov over the rows, missing cells filled with the mean: no p × p matrix. Also
/// the number of passes.
pub(crate) fn from_filled_rows(
    source: &dyn RowSource,
    (census, margins): (&Census, &Margins),
    components: Components,
    seed: u64,
    control: &Control<'_>,
) -> Result<(LatentParameters, usize)> {
    let Components::Count(q) = components else {
        let reason = "so many features with missing values need a number of components".into();
        return Err(Error::Solver { solver: "em", reason });
    };
    supported(components, census)?;
    let variances = margins.variance();
    let variance = variances.iter().sum::<f64>();
    check_variance(variance)?;
    check_scales(&variances)?;
    let units =
        if comparable(variances.iter().copied()) { vec![1.0; variances.len()] } else { units_of(&variances) };
    let filled = FilledDirections::new(margins.mean().to_vec(), units.clone(), (q, seed), census.weight());
    let (eigen, journey) = drive(Passes::over(source, filled), FILLED, control)?;
    let scaled: f64 = variances.iter().zip(&units).map(|(v, unit)| v / (unit * unit)).sum();
    let found = from_spectrum(margins.mean().to_vec(), &eigen, q, (scaled, None));
    let found = if comparable(variances.iter().copied()) { found } else { in_units_of_data(&found, &units) };
    Ok((found, journey.passes))
}

/// A power of two near the deviation of each feature.
fn units_of(variances: &[f64]) -> Vec<f64> {
    variances.iter().map(|v| power_of_two(v.sqrt())).collect()
}

/// The spectrum of a pairwise covariance of features of very different scales, each to its own: made positive
/// definite where the features have comparable scales, then decomposed in their own.
fn of_scaled(covariance: MatRef<'_, f64>, variances: &[f64]) -> Result<Eigen> {
    let (p, units) = (variances.len(), units_of(variances));
    let scaled = Mat::from_fn(p, p, |i, j| covariance[(i, j)] / units[i] / units[j]);
    let Eigen { values, vectors } = symmetric_eigen(scaled.as_ref())?;
    let least = LEAST_NOISE * values.iter().sum::<f64>() / p as f64;
    let stretched = Mat::from_fn(p, p, |i, k| units[i] * vectors[(i, k)] * values[k].max(least).sqrt());
    let positive = product(stretched.as_ref(), stretched.transpose());
    Ok(graded_eigen(positive.as_ref(), f64::EPSILON).0)
}

/// Parameters of features that were divided by units, in the units of the data, with the least noise that any
/// feature has.
fn in_units_of_data(found: &LatentParameters, units: &[f64]) -> LatentParameters {
    let least = units.iter().copied().fold(f64::INFINITY, f64::min);
    let w = found.loadings();
    let loadings = Mat::from_fn(w.ncols(), w.nrows(), |k, j| w[(j, k)] * units[j] / least);
    LatentParameters::in_units(found.mean().to_vec(), &loadings, found.noise_variance(0), least)
}

/// The number of components that was asked for, or the largest possible one, if the observed cells support
/// it.
pub(crate) fn supported(components: Components, census: &Census) -> Result<usize> {
    components.check_possible(census.rows(), census.n_features())?;
    let possible = census.supported_components();
    let requested = components.count().unwrap_or(1);
    if requested > possible {
        return Err(Error::TooFewCells { requested, possible, cells: census.observed() });
    }
    Ok(possible)
}

fn check_variance(variance: f64) -> Result<()> {
    match variance {
        0.0 => Err(Error::Constant),
        v if v.is_normal() => Ok(()),
        _ => Err(Error::Scale),
    }
}

/// PPCA's closed form, as if the spectrum were that of complete rows.
///
/// `variance` is that of all features together, and `scales` are those of each where they are not comparable.
fn from_spectrum(
    mean: Vec<f64>,
    eigen: &Eigen,
    q: usize,
    (variance, scales): (f64, Option<&[f64]>),
) -> LatentParameters {
    let p = mean.len();
    let unit = power_of_two((variance / p as f64).sqrt());
    let (rest, typical) = match scales {
        None => (variance - eigen.values[..q].iter().sum::<f64>(), variance / p as f64),
        Some(scales) => {
            let positive = scales.iter().copied().filter(|v| *v > 0.0);
            (eigen.values[q..].iter().sum(), positive.fold(f64::INFINITY, f64::min))
        }
    };
    let noise = (rest / (p - q).max(1) as f64).max(LEAST_NOISE * typical);
    let length = |k: usize| (eigen.values[k] - noise).max(LEAST_NOISE * noise).sqrt() / unit;
    let loadings = Mat::from_fn(q, p, |k, j| eigen.vectors[(j, k)] * length(k));
    LatentParameters::in_units(mean, &loadings, noise / (unit * unit), unit)
}

struct FilledDirections {
    krylov: BlockKrylov,
    block: Arc<Mat<f64>>, // of the scatter, each feature divided by its unit
    mean: Arc<Vec<f64>>,
    units: Vec<f64>,
    weight: f64,
    done: bool,
}

impl FilledDirections {
    fn new(mean: Vec<f64>, units: Vec<f64>, (q, seed): (usize, u64), weight: f64) -> Self {
        let krylov = BlockKrylov::new(mean.len(), q, seed).tolerance(FILLED.tolerance);
        let block = Arc::new(divided(krylov.next_block(), &units));
        Self { krylov, block, mean: Arc::new(mean), units, weight, done: false }
    }
}

/// Rows of a matrix divided by units.
fn divided(matrix: MatRef<'_, f64>, units: &[f64]) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)] / units[i])
}

impl RowIteration for FilledDirections {
    type Evidence = FilledSketch;
    type Output = Eigen;

    fn objective(&self) -> Objective {
        Objective { name: "captured variance", guard: Guard::NeverFalls }
    }

    fn evidence(&self) -> FilledSketch {
        FilledSketch::empty(Arc::clone(&self.mean), Arc::clone(&self.block))
    }

    fn update(&mut self, sketch: FilledSketch) -> Result<Step> {
        let mut image = divided(sketch.image(), &self.units); // scatter × block
        image.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= self.weight));
        let step = self.krylov.absorb(image.as_ref())?;
        self.block = Arc::new(divided(self.krylov.next_block(), &self.units));
        self.done = step.done;
        Ok(Step { objective: step.captured, change: step.residual })
    }

    /// The block knows its tolerance, and what is rounding.
    fn converged(&self, _: f64) -> bool {
        self.done
    }

    fn finish(self) -> Result<Eigen> {
        self.krylov.into_eigen().ok_or(Error::Interrupted)
    }
}
