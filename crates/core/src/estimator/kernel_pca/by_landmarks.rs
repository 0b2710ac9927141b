//! The model that moments in the feature space of landmarks make.

use super::exact::{noise, preimage};
use super::report::KernelReport;
use super::{KernelPca, WayBack};
use crate::algorithm::Components;
use crate::algorithm::kernel::{number, rounding};
use crate::error::{Error, Result};
use crate::evidence::KernelFeatures;
use crate::kernel::{FeatureMap, Kernel};
use crate::linalg::{Mat, leading_eigen, standard_signs, symmetric_eigen};
use crate::model::{KernelComponents, KernelParts, LinearGaussian};

/// What the moments of the rows in the space of the landmarks have told.
pub(super) struct ByLandmarks {
    vectors: Mat<f64>, // U (m × q)
    values: Vec<f64>,  // eigenvalues of the centred kernel (q)
    mean: Vec<f64>,    // of φ (m)
    weight: f64,
    rank: usize,
    pub(super) trace: f64, // of the centred kernel, with what is left out
    left_out: f64,         // of the trace
    noise: f64,
}

impl ByLandmarks {
    pub(super) fn of(map: &FeatureMap, evidence: &KernelFeatures, family: &KernelPca) -> Result<Self> {
        let (moments, m) = (evidence.moments(), map.n_features());
        let (weight, left_out) = (moments.weight(), evidence.left_out_of(&moments));
        let trace = weight * moments.total_variance() + left_out;
        if !trace.is_finite() {
            return Err(Error::Scale);
        }
        let covariance = moments.covariance();
        let leading = match family.components {
            Components::Count(q) if 6 * q < m => {
                leading_eigen(covariance.as_ref(), q.max(1), family.run.seed)?
            }
            _ => None,
        };
        let eigen = leading.map_or_else(|| symmetric_eigen(covariance.as_ref()), Ok)?;
        let values: Vec<f64> = eigen.values.iter().map(|v| v * weight).collect();
        let floor = rounding(m, &values);
        let q = number(family.components, &values, trace, floor);
        let known = |v: &f64| if v.abs() <= floor { 0.0 } else { *v };
        let mut values: Vec<f64> = values[..q].iter().map(known).collect();
        let rank = values.iter().filter(|v| **v > 0.0).count();
        if family.drop_empty {
            values.truncate(rank);
        }
        let rest = trace - values.iter().sum::<f64>();
        // Components beyond the landmarks that were found have no variance.
        let asked = family.components.count().filter(|_| !family.drop_empty).unwrap_or(values.len());
        let vectors = Mat::from_fn(m, asked, |i, j| match values.get(j) {
            Some(v) if *v > 0.0 => eigen.vectors[(i, j)],
            _ => 0.0,
        });
        values.resize(asked, 0.0);
        let noise = noise(rest, trace, moments.rows(), asked);
        let mean = moments.mean().to_vec();
        Ok(Self { vectors, values, mean, weight, rank, trace, left_out, noise })
    }

    pub(super) fn model(
        &self,
        kernel: Kernel,
        map: &FeatureMap,
        (mean, filling): (Vec<f64>, Option<LinearGaussian>),
        back: WayBack,
    ) -> Result<KernelComponents> {
        let (m, q) = (map.n_features(), self.values.len());
        let mut coefficients = self.vectors.clone();
        map.weights_of_landmarks(coefficients.as_mut());
        standard_signs(&mut coefficients);
        let mut centre = Mat::from_fn(m, 1, |i, _| self.mean[i]);
        map.weights_of_landmarks(centre.as_mut());
        let parts = KernelParts {
            kernel,
            divisors: vec![1.0; mean.len()],
            mean,
            points: map.landmarks().clone(),
            coefficients,
            centre: centre.col_as_slice(0).to_vec(),
            offset: vec![0.0; q],
            square: self.mean.iter().map(|m| m * m).sum(),
            variances: self.values.iter().map(|v| v / self.weight).collect(),
            noise: self.noise,
            preimage: preimage(back, kernel, &Mat::zeros(0, q))?,
            filling,
        };
        // Directions times the mean: Aᵀ K_ZZ c, with the signs that the coefficients have got.
        let unmoved = KernelComponents::new(parts.clone())?;
        let projected = unmoved.coordinates_of_points()?; // K_ZZ A (m × q)
        let dot = |j: usize| projected.col_as_slice(j).iter().zip(&parts.centre).map(|(k, c)| k * c).sum();
        let offset: Vec<f64> = (0..q).map(dot).collect();
        let coordinates = Mat::from_fn(m, q, |i, j| projected[(i, j)] - offset[j]);
        let preimage = preimage(back, kernel, &coordinates)?;
        KernelComponents::new(KernelParts { offset, preimage, ..parts })
    }

    pub(super) fn report(&self, kernel: Kernel, map: &FeatureMap) -> KernelReport {
        KernelReport {
            left_out: if self.trace > 0.0 { self.left_out / self.trace } else { 0.0 },
            rank: self.rank,
            noise_variance: self.noise,
            ..KernelReport::new(kernel, map.n_features())
        }
    }
}
