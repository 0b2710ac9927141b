//! Where a fit with holes starts: the spectrum of the available cases, or of rows whose holes are filled with the mean.

use std::sync::Arc;

use super::eigen::decompose;
use super::{Algorithm, Components, Step, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{AvailableCases, Census, FilledSketch, LatentParameters, Margins};
use crate::linalg::{BlockKrylov, Eigen, Mat, power_of_two};

/// The least noise of a start, as a share of the mean variance: a spectrum that is not positive can leave none.
const LEAST_NOISE: f64 = 1e-3;
/// Passes over filled rows: a start need not be exact.
const FILLED_PASSES: usize = 3;
/// Residual, relative to its eigenvalue, at which a direction of filled rows is good enough.
const FILLED_TOLERANCE: f64 = 1e-2;

/// From the leading eigenvectors of the pairwise covariance.
pub(crate) fn from_available_cases(
    cases: &AvailableCases,
    components: Components,
    seed: u64,
) -> Result<LatentParameters> {
    supported(components, &cases.census)?;
    let variance = (0..cases.mean.len()).map(|j| cases.covariance[(j, j)]).sum::<f64>();
    check_variance(variance)?;
    let eigen = decompose(cases.covariance.as_ref(), components, seed)?;
    let positive: Vec<f64> = eigen.values.iter().map(|v| v.max(0.0)).collect();
    let possible = supported(Components::All, &cases.census)?;
    let q = match components {
        Components::Fraction(_) => components.resolve(usize::MAX, positive.len(), &positive)?.min(possible),
        Components::Count(q) => q,
        Components::All => possible,
        Components::Evidence => {
            let reason =
                "the evidence for a number of components needs complete rows; give a number or a fraction";
            return Err(Error::Solver { solver: "em", reason: reason.into() });
        }
    };
    Ok(from_spectrum(cases.mean.clone(), &eigen, q, variance))
}

/// From a few passes of block Krylov over the rows, holes filled with the mean: no p × p matrix. Also the number of passes.
pub(crate) fn from_filled_rows(
    source: &dyn RowSource,
    (census, margins): (&Census, &Margins),
    components: Components,
    seed: u64,
    control: &Control<'_>,
) -> Result<(LatentParameters, usize)> {
    let Components::Count(q) = components else {
        let reason = "so many features with holes need a number of components".into();
        return Err(Error::Solver { solver: "em", reason });
    };
    supported(components, census)?;
    let variance = margins.variance().iter().sum::<f64>();
    check_variance(variance)?;
    let mean = Arc::new(margins.mean().to_vec());
    let krylov = BlockKrylov::new(mean.len(), q, seed).tolerance(FILLED_TOLERANCE);
    let filled =
        Filled { block: Arc::new(krylov.next_block().to_owned()), krylov, mean, weight: census.weight() };
    let (eigen, journey) = drive(filled, source, FILLED_PASSES, control)?;
    Ok((from_spectrum(margins.mean().to_vec(), &eigen, q, variance), journey.passes))
}

/// The number of components that was asked for, or the largest possible one, if the observed cells support it.
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
fn from_spectrum(mean: Vec<f64>, eigen: &Eigen, q: usize, variance: f64) -> LatentParameters {
    let p = mean.len();
    let unit = power_of_two((variance / p as f64).sqrt());
    let rest = variance - eigen.values[..q].iter().sum::<f64>();
    let noise = (rest / (p - q).max(1) as f64).max(LEAST_NOISE * variance / p as f64);
    let length = |k: usize| (eigen.values[k] - noise).max(LEAST_NOISE * noise).sqrt() / unit;
    let loadings = Mat::from_fn(q, p, |k, j| eigen.vectors[(j, k)] * length(k));
    LatentParameters::in_units(mean, &loadings, noise / (unit * unit), unit)
}

struct Filled {
    krylov: BlockKrylov,
    block: Arc<Mat<f64>>,
    mean: Arc<Vec<f64>>,
    weight: f64,
}

impl Algorithm for Filled {
    const MEASURE: &'static str = "captured variance";
    type Evidence = FilledSketch;
    type Output = Eigen;

    fn evidence(&self) -> FilledSketch {
        FilledSketch::empty(Arc::clone(&self.mean), Arc::clone(&self.block))
    }

    fn update(&mut self, sketch: FilledSketch) -> Result<Step> {
        let mut image = sketch.image().to_owned(); // scatter × block
        image.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= self.weight));
        let step = self.krylov.absorb(image.as_ref())?;
        self.block = Arc::new(self.krylov.next_block().to_owned());
        Ok(Step { objective: step.captured, change: step.residual, converged: step.done })
    }

    fn finish(self) -> Result<Eigen> {
        self.krylov.into_eigen().ok_or(Error::Interrupted)
    }
}
