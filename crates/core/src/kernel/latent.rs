//! Kernels of latent coordinates with a relevance for each: those of a Gaussian process latent variable model.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, exp, product};

/// The form of a kernel of latent coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatentForm {
    /// σ² exp(−½ Σₖ αₖ (xₖ − x′ₖ)²): curved surfaces.
    #[default]
    Rbf,
    /// Σₖ αₖ xₖ x′ₖ: planes, as in PPCA.
    Linear,
}

impl LatentForm {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rbf => "rbf",
            Self::Linear => "linear",
        }
    }
}

impl std::str::FromStr for LatentForm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "rbf" => Ok(Self::Rbf),
            "linear" => Ok(Self::Linear),
            _ => {
                let (name, value) = ("the kernel of latent coordinates", name.into());
                Err(Error::Parameter { name, value, allowed: "rbf or linear" })
            }
        }
    }
}

/// k(x, x′) of latent coordinates: automatic relevance determination gives each dimension its own α.
///
/// ```
/// use covary::kernel::{LatentForm, LatentKernel};
/// let kernel = LatentKernel::new(LatentForm::Rbf, 2.0, vec![1.0, 0.5])?;
/// let k = kernel.of(&[1.0, 2.0], &[0.0, 0.0]);
/// assert!((k - 2.0 * (-1.5_f64).exp()).abs() < 1e-15);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LatentKernel {
    form: LatentForm,
    variance: f64,       // σ²; 1 of a linear kernel
    relevance: Vec<f64>, // α (q)
}

/// What a function of a kernel matrix K(Z, Z) has as derivatives by what the matrix is made of.
#[derive(Debug, Clone)]
pub(crate) struct KernelAdjoint {
    pub(crate) points: Mat<f64>,    // by Z (M × q)
    pub(crate) log_variance: f64,   // by log σ²
    pub(crate) relevance: Vec<f64>, // by α (q)
}

impl LatentKernel {
    /// A kernel of this form. A linear one has no variance of its own.
    ///
    /// # Errors
    /// When the variance or a relevance is not finite and positive, or there is no dimension.
    pub fn new(form: LatentForm, variance: f64, relevance: Vec<f64>) -> Result<Self> {
        let positive = |x: &f64| x.is_finite() && *x > 0.0;
        let wrong = |name, value: f64| {
            Err(Error::Parameter { name, value: value.to_string(), allowed: "finite and positive" })
        };
        if relevance.is_empty() {
            return Err(Error::Length { what: "relevances", expected: 1, found: 0 });
        }
        if let Some(alpha) = relevance.iter().find(|a| !positive(a)) {
            return wrong("the relevance of a latent dimension", *alpha);
        }
        match form {
            LatentForm::Rbf if !positive(&variance) => wrong("the variance of the kernel", variance),
            LatentForm::Rbf => Ok(Self { form, variance, relevance }),
            LatentForm::Linear => Ok(Self { form, variance: 1.0, relevance }),
        }
    }

    /// Its form.
    pub fn form(&self) -> LatentForm {
        self.form
    }

    /// σ².
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// α (q).
    pub fn relevance(&self) -> &[f64] {
        &self.relevance
    }

    /// Number of latent dimensions, q.
    pub fn n_latent(&self) -> usize {
        self.relevance.len()
    }

    /// k(x, x′).
    pub fn of(&self, x: &[f64], y: &[f64]) -> f64 {
        let terms = || self.relevance.iter().zip(x.iter().zip(y));
        match self.form {
            LatentForm::Rbf => {
                self.variance * (-0.5 * terms().map(|(a, (x, y))| a * (x - y).powi(2)).sum::<f64>()).exp()
            }
            LatentForm::Linear => terms().map(|(a, (x, y))| a * x * y).sum(),
        }
    }

    /// k(x, x).
    pub fn own(&self, x: &[f64]) -> f64 {
        match self.form {
            LatentForm::Rbf => self.variance,
            LatentForm::Linear => self.relevance.iter().zip(x).map(|(a, x)| a * x * x).sum(),
        }
    }

    /// Kernel values of points (m × q) with others (l × q), as m × l.
    pub fn matrix(&self, x: MatRef<'_, f64>, z: MatRef<'_, f64>) -> Mat<f64> {
        let (q, root) = (self.n_latent(), |k: usize| self.relevance[k].sqrt());
        let scaled = |of: MatRef<'_, f64>| Mat::from_fn(of.nrows(), q, |i, k| of[(i, k)] * root(k));
        let (x, z) = (scaled(x), scaled(z));
        let mut out = product(x.as_ref(), z.transpose());
        if self.form == LatentForm::Linear {
            return out;
        }
        let half = |of: &Mat<f64>| -> Vec<f64> { of.row_iter().map(|r| 0.5 * r.squared_norm_l2()).collect() };
        let (own, others, log) = (half(&x), half(&z), self.variance.ln());
        for (j, other) in others.iter().enumerate() {
            let column = out.col_as_slice_mut(j);
            column.iter_mut().zip(&own).for_each(|(k, own)| *k = log + (*k - own - other).min(0.0));
            exp(column);
        }
        out
    }

    /// The derivatives of Σ Ḡ ∘ K(Z, Z), given a symmetric Ḡ and K (M × M).
    pub(crate) fn pull_back(&self, z: &Mat<f64>, k: &Mat<f64>, adjoint: &Mat<f64>) -> KernelAdjoint {
        let (m, q) = (z.nrows(), self.n_latent());
        let weighted = match self.form {
            LatentForm::Rbf => Mat::from_fn(m, m, |i, j| adjoint[(i, j)] * k[(i, j)]), // Q
            LatentForm::Linear => adjoint.clone(),
        };
        let total: Vec<f64> = weighted.col_iter().map(|c| c.iter().sum()).collect(); // Σᵢ Q (M)
        let along = product(weighted.as_ref(), z.as_ref()); // Q Z (M × q)
        let mut points = Mat::zeros(m, q);
        let mut relevance = vec![0.0; q];
        for (c, slope) in relevance.iter_mut().enumerate() {
            let alpha = self.relevance[c];
            for i in 0..m {
                let (z, qz) = (z[(i, c)], along[(i, c)]);
                match self.form {
                    // −½ Σ Q (z − z′)² = −Σ Q z² + Σ z Q z′ for a symmetric Q
                    LatentForm::Rbf => {
                        *slope -= z * (total[i] * z - qz);
                        points[(i, c)] = -2.0 * alpha * (total[i] * z - qz);
                    }
                    LatentForm::Linear => {
                        *slope += z * qz;
                        points[(i, c)] = 2.0 * alpha * qz;
                    }
                }
            }
        }
        let log_variance = match self.form {
            LatentForm::Rbf => total.iter().sum(),
            LatentForm::Linear => 0.0,
        };
        KernelAdjoint { points, log_variance, relevance }
    }
}
