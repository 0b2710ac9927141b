//! Kernel functions k(x, x′): inner products of rows in a space that nobody has to write down.

mod compared;
mod expected;
mod features;
mod latent;
mod points;
mod psi;
mod width;

use serde::{Deserialize, Serialize};

pub(crate) use compared::{Compared, Known};
pub use expected::{FilledRows, Filling, FillingNumbers, Spread};
pub use features::FeatureMap;
pub use latent::{LatentForm, LatentKernel};
pub(crate) use points::Points;
pub(crate) use psi::{Psi, PsiAdjoint, RowAdjoint};
pub use width::Gamma;
pub(crate) use width::ROWS as WIDTH_ROWS;

use crate::error::{Error, Result};

/// The form of a kernel function, without its width.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelForm {
    /// x·x′: PCA itself.
    Linear,
    /// exp(−γ‖x − x′‖²).
    Rbf,
    /// exp(−γ Σⱼ|xⱼ − x′ⱼ|).
    Laplacian,
    /// (γ x·x′ + c)ᵈ.
    Polynomial {
        /// d, at least 1.
        degree: u32,
        /// c.
        coef0: f64,
    },
    /// tanh(γ x·x′ + c), which is not positive semidefinite for all data.
    Sigmoid {
        /// c.
        coef0: f64,
    },
    /// x·x′ / ‖x‖‖x′‖.
    Cosine,
    /// Rows are kernel values already: k(x, xᵢ) for each row xᵢ of the fit.
    Precomputed,
}

impl KernelForm {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Rbf => "rbf",
            Self::Laplacian => "laplacian",
            Self::Polynomial { .. } => "poly",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Cosine => "cosine",
            Self::Precomputed => "precomputed",
        }
    }

    /// Whether its values depend on γ.
    pub fn has_gamma(self) -> bool {
        matches!(self, Self::Rbf | Self::Laplacian | Self::Polynomial { .. } | Self::Sigmoid { .. })
    }

    /// Whether moving all rows changes nothing once the kernel is centred: rows are then taken around their
    /// mean, so that a mean of 1e8 costs nothing.
    pub(crate) fn is_shift_free(self) -> bool {
        matches!(self, Self::Linear | Self::Rbf | Self::Laplacian)
    }

    /// Whether it may have negative eigenvalues.
    pub(crate) fn may_be_indefinite(self) -> bool {
        match self {
            Self::Sigmoid { .. } | Self::Precomputed => true,
            Self::Polynomial { coef0, .. } => coef0 < 0.0,
            _ => false,
        }
    }

    fn check(self) -> Result<()> {
        let wrong = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
        match self {
            Self::Polynomial { degree: 0, .. } => {
                wrong("the degree of the kernel", "0".into(), "a whole number, at least 1")
            }
            Self::Polynomial { coef0, .. } | Self::Sigmoid { coef0 } if !coef0.is_finite() => {
                wrong("the constant of the kernel", coef0.to_string(), "finite")
            }
            _ => Ok(()),
        }
    }
}

/// A kernel function: its form and its γ.
///
/// ```
/// use covary::kernel::{Kernel, KernelForm};
/// let kernel = Kernel::new(KernelForm::Rbf, 0.5)?;
/// let (a, b) = ([1.0, 2.0], [2.0, 0.0]);
/// assert!((kernel.of(&a, &b) - (-0.5 * 5.0_f64).exp()).abs() < 1e-15);
/// assert!(Kernel::new(KernelForm::Rbf, 0.0).is_err());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    form: KernelForm,
    gamma: f64,
}

impl Kernel {
    /// A kernel of this form; γ must be above 0, and is not looked at where the form has none.
    ///
    /// # Errors
    /// When γ, the degree or the constant is not possible.
    pub fn new(form: KernelForm, gamma: f64) -> Result<Self> {
        form.check()?;
        if form.has_gamma() && !(gamma > 0.0 && gamma.is_finite()) {
            let (name, value) = ("gamma of the kernel", gamma.to_string());
            return Err(Error::Parameter { name, value, allowed: "a finite number above 0" });
        }
        Ok(Self { form, gamma: if form.has_gamma() { gamma } else { 1.0 } })
    }

    /// Its form.
    pub fn form(self) -> KernelForm {
        self.form
    }

    /// γ; 1 where the form has none.
    pub fn gamma(self) -> f64 {
        self.gamma
    }

    /// Form, γ, degree and constant as they stand in files.
    pub(crate) fn to_numbers(self) -> [f64; 4] {
        let (code, degree, coef0) = match self.form {
            KernelForm::Linear => (0.0, 1.0, 0.0),
            KernelForm::Rbf => (1.0, 1.0, 0.0),
            KernelForm::Laplacian => (2.0, 1.0, 0.0),
            KernelForm::Polynomial { degree, coef0 } => (3.0, f64::from(degree), coef0),
            KernelForm::Sigmoid { coef0 } => (4.0, 1.0, coef0),
            KernelForm::Cosine => (5.0, 1.0, 0.0),
            KernelForm::Precomputed => (6.0, 1.0, 0.0),
        };
        [code, self.gamma, degree, coef0]
    }

    /// The way back.
    ///
    /// # Errors
    /// When no kernel has such numbers.
    pub(crate) fn from_numbers([code, gamma, degree, coef0]: [f64; 4]) -> Result<Self> {
        let whole = (1.0..=f64::from(u32::MAX)).contains(&degree) && degree.fract() == 0.0;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let degree = if whole { degree as u32 } else { 0 };
        let form = match code {
            0.0 => KernelForm::Linear,
            1.0 => KernelForm::Rbf,
            2.0 => KernelForm::Laplacian,
            3.0 => KernelForm::Polynomial { degree, coef0 },
            4.0 => KernelForm::Sigmoid { coef0 },
            5.0 => KernelForm::Cosine,
            6.0 => KernelForm::Precomputed,
            _ => return Err(Error::Format(format!("kernel {code} is not known"))),
        };
        Self::new(form, gamma)
    }

    /// k(x, x′) of two rows as they are.
    pub fn of(self, x: &[f64], y: &[f64]) -> f64 {
        let dot = || x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
        let length = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
        match self.form {
            KernelForm::Linear | KernelForm::Precomputed => dot(),
            KernelForm::Rbf => {
                (-self.gamma * x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp()
            }
            KernelForm::Laplacian => {
                (-self.gamma * x.iter().zip(y).map(|(a, b)| (a - b).abs()).sum::<f64>()).exp()
            }
            KernelForm::Polynomial { degree, coef0 } => power(self.gamma * dot() + coef0, degree),
            KernelForm::Sigmoid { coef0 } => (self.gamma * dot() + coef0).tanh(),
            KernelForm::Cosine => match length(x) * length(y) {
                0.0 => 0.0,
                lengths => dot() / lengths,
            },
        }
    }
}

/// xᵈ.
pub(crate) fn power(x: f64, degree: u32) -> f64 {
    x.powi(i32::try_from(degree).unwrap_or(i32::MAX))
}
