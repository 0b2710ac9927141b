//! Evidence of t rows made without rows: multiplied, from a model, and about other parameters.

use std::sync::Arc;

use super::{Collected, StudentEvidence, StudentSums};
use crate::error::Result;
use crate::evidence::{Frame, Latent, Moments};
use crate::expectation::{LatentParameters, Student};

impl StudentSums {
    /// The same with every weight multiplied.
    pub(crate) fn times(&self, factor: f64) -> Self {
        Self {
            weight: self.weight * factor,
            cells: self.cells * factor,
            counted: self.counted * factor,
            log_bias: self.log_bias * factor,
            slope: self.slope * factor,
            curvature: self.curvature * factor,
            log_likelihood: self.log_likelihood * factor,
            ..self.clone()
        }
    }
}

impl StudentEvidence {
    /// From what is collected for given parameters.
    pub(crate) fn of(parameters: Arc<LatentParameters>, collected: Collected) -> Self {
        Self { parameters, collected }
    }

    /// As if rows of total weight 1 had exactly the location, scale and ν of a model: for one that has no
    /// evidence of its own rows.
    pub(crate) fn of_model(parameters: Arc<LatentParameters>, student: Student, rows: usize) -> Result<Self> {
        let (w, p) = (parameters.loadings(), parameters.n_features());
        let mut scale = crate::linalg::product(w.as_ref(), w.transpose());
        (0..p).for_each(|j| scale[(j, j)] += parameters.noise_variance(j));
        let moments = Moments::from_parts(rows.max(1), 1.0, parameters.mean().to_vec(), scale)?;
        let mut sums = StudentSums::empty(student);
        (sums.rows, sums.weight, sums.cells, sums.counted) = (rows, 1.0, p as f64, 1.0);
        // EM's ν of it is ν itself.
        sums.log_bias = student.log_bias(0);
        Ok(Self { parameters, collected: Collected::Complete(Box::new((moments, sums))) })
    }

    /// The same with every weight multiplied.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let collected = match &self.collected {
            Collected::Complete(parts) => {
                Collected::Complete(Box::new((parts.0.times(factor), parts.1.times(factor))))
            }
            Collected::Incomplete(latent) => {
                let sums = latent.student.as_ref().map(|sums| sums.times(factor));
                Collected::Incomplete(Box::new(Latent::clone(latent).scaled(factor).with_student(sums)))
            }
        };
        Self { parameters: Arc::clone(&self.parameters), collected }
    }

    /// What complete rows say, in the form that rows with missing values have.
    pub(crate) fn by_cells(&self) -> Result<Self> {
        let Collected::Complete(parts) = &self.collected else { return Ok(self.clone()) };
        let latent = Latent::of_weighted_moments(&self.parameters, &parts.0, parts.1.weight)?;
        let collected = Collected::Incomplete(Box::new(latent.with_student(Some(parts.1.clone()))));
        Ok(Self::of(Arc::clone(&self.parameters), collected))
    }

    /// The same about the parameters that a step from it has led to.
    pub(crate) fn carried(&self, to: &Arc<LatentParameters>, student: Student) -> Result<Self> {
        let collected = match &self.collected {
            Collected::Complete(parts) => {
                let sums = StudentSums { student, ..parts.1.clone() };
                Collected::Complete(Box::new((parts.0.clone(), sums)))
            }
            Collected::Incomplete(latent) => {
                let sums = latent.student.as_ref().map(|sums| StudentSums { student, ..sums.clone() });
                let carried = latent.carried(to, &Frame::of(latent)?);
                Collected::Incomplete(Box::new(carried.with_student(sums)))
            }
        };
        Ok(Self::of(Arc::clone(to), collected))
    }
}
