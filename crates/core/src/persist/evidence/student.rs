//! Evidence of rows that have a t distribution as bytes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::latent::{Units, read_sums, write_parameters, write_sums};
use super::{Portable, SavedEvidence, Tensors, check_kind, check_names, moments, plain};
use crate::error::{Error, Result};
use crate::evidence::{LatentTotals, StudentCollected as Collected, StudentEvidence, StudentSums};
use crate::expectation::Student;
use crate::model::StoredArrays;
use crate::persist::check;
use crate::persist::container::{Container, Tensor, to_bytes};

/// What the file of evidence of t rows is called.
const KIND: &str = "student_evidence";

/// Numbers of evidence of t rows that are not tensors.
#[derive(Serialize, Deserialize)]
struct StudentDetails {
    features: Vec<String>,
    #[serde(flatten)]
    units: Units,
    sums: Sums,
    part: Part,
}

/// The sums that ν is found by.
#[derive(Serialize, Deserialize)]
struct Sums {
    rows: usize,
    low: usize,
    /// `None` before the first row.
    least: Option<f64>,
    weight: f64,
    cells: f64,
    counted: f64,
    log_bias: f64,
    slope: f64,
    curvature: f64,
    log_likelihood: f64,
}

/// Numbers of the evidence about the other parameters that are not tensors.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    /// Rows and weight of complete rows.
    Complete(usize, f64),
    /// The sums that are not about single features.
    Incomplete(LatentTotals),
}

/// What the arrays of complete rows are called, beside those of the parameters.
fn of_rows(name: &str) -> String {
    format!("rows.{name}")
}

impl Sums {
    fn of(sums: &StudentSums) -> Self {
        Self {
            rows: sums.rows,
            low: sums.low,
            least: Some(sums.least).filter(|u| u.is_finite()),
            weight: sums.weight,
            cells: sums.cells,
            counted: sums.counted,
            log_bias: sums.log_bias,
            slope: sums.slope,
            curvature: sums.curvature,
            log_likelihood: sums.log_likelihood,
        }
    }

    fn read(self, student: Student) -> Result<StudentSums> {
        let sizes = [self.weight, self.cells, self.counted, self.least.unwrap_or(0.0)];
        let others = [self.log_bias, self.slope, self.curvature, self.log_likelihood];
        let possible = check::is_weight(self.rows, self.weight)
            && (self.weight > 0.0) == (self.counted > 0.0)
            && self.low <= self.rows
            && sizes.iter().all(|x| *x >= 0.0)
            && sizes.iter().chain(&others).all(|x| x.is_finite());
        if !possible {
            return Err(Error::Format("sums of a t distribution that no rows can have".into()));
        }
        let mut sums = StudentSums::empty(student);
        (sums.rows, sums.low, sums.least) = (self.rows, self.low, self.least.unwrap_or(f64::INFINITY));
        (sums.weight, sums.cells, sums.counted) = (self.weight, self.cells, self.counted);
        (sums.log_bias, sums.slope, sums.curvature) = (self.log_bias, self.slope, self.curvature);
        sums.log_likelihood = self.log_likelihood;
        Ok(sums)
    }
}

impl Portable for StudentEvidence {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let parameters = self.parameters();
        check_names(features, parameters.n_features())?;
        let sums = self.sums().cloned().unwrap_or_else(|| StudentSums::empty(Student::NORMAL));
        let mut tensors = Tensors::new();
        write_parameters(parameters, &mut tensors);
        tensors.insert("degrees_of_freedom".into(), Tensor::vector(&[sums.student.dof()]));
        let part = match &self.collected {
            Collected::Complete(parts) => {
                moments::write(&parts.0, &of_rows, &mut tensors);
                Part::Complete(parts.0.rows(), parts.0.weight())
            }
            Collected::Incomplete(latent) => {
                write_sums(latent, &plain, &mut tensors);
                Part::Incomplete(latent.totals.clone())
            }
        };
        let (features, units) = (features.to_vec(), Units::of(parameters));
        to_bytes(KIND, &StudentDetails { features, units, sums: Sums::of(&sums), part }, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, KIND)?;
        let StudentDetails { features, units, sums, part } = file.details()?;
        let (parameters, p) = units.read(&file)?;
        check::check_names(&features, p)?;
        // Infinite for the normal distribution.
        let nu = file.vector_with_limits("degrees_of_freedom", Some(1))?[0];
        let student = Student::new(nu).map_err(|e| Error::Format(e.to_string()))?;
        let (sums, parameters) = (sums.read(student)?, Arc::new(parameters));
        let collected = match part {
            Part::Complete(rows, weight) => {
                let moments = moments::read(&file, p, (rows, weight), &of_rows)?;
                Collected::Complete(Box::new((moments, sums)))
            }
            Part::Incomplete(totals) => {
                let latent = read_sums(&file, Arc::clone(&parameters), totals, &plain)?;
                Collected::Incomplete(Box::new(latent.with_student(Some(sums))))
            }
        };
        Ok(SavedEvidence { evidence: Self::of(parameters, collected), features })
    }
}
