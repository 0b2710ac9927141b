//! Kernel PCA: options, exact while the kernel matrix fits in memory, landmarks beyond.

mod by_landmarks;
mod exact;
mod fit;
mod matrix;
mod missing;
mod plan;
mod report;
mod sample;

use std::sync::Arc;

use super::family::no_warm_start;
use super::run::run_options;
use super::{Chooser, Family, Fit, Run, Solver, explained, with_threads};
use crate::algorithm::Components;
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::kernel::{Gamma, Kernel, KernelForm};
use crate::linalg::Mat;
use crate::model::{AnyModel, KernelComponents, Kind, Preimage, kind};

pub use report::{KernelReport, LandmarkMethod};
pub(crate) use sample::RowsToChoose;

/// Kernel PCA: principal components in the feature space of a kernel \[SSM98\].
///
/// The eigenvectors of the centred kernel matrix $\tilde K = HKH$, found from the n × n matrix itself while it
/// fits in memory. Beyond that, or when asked, m landmarks stand for the rows: with $K_{ZZ} = LL^\top$ the map
/// $\varphi(x) = L^{-1}k(Z, x)$ turns kernel PCA into PCA of φ (Nyström), in a pass over rows that may lie
/// in a file. Landmarks are drawn by randomly pivoted Cholesky \[CETW24\], and the trace that they leave out is
/// known exactly.
///
/// Rows may miss cells with the rbf and the linear kernel: a Bayesian PCA of the rows ([`BayesianPca`](crate::BayesianPca))
/// knows the distribution of the cells, and the image of a row is E φ(x) over it. The variance of φ(x) around its
/// expectation, which no other row shares, counts in the trace and in the noise, not in the components. Landmarks are
/// then rows whose missing cells are filled by their means. A row without a cell is no row of the fit.
///
/// ```
/// use covary::data::Rows;
/// use covary::kernel::KernelForm;
/// use covary::model::Encode;
/// use covary::{Gamma, KernelPca};
///
/// // Two rings: no line tells them apart, the first component of an rbf kernel does.
/// let ring = |i: usize| {
///     let (angle, radius) = (i as f64 * 0.7, if i % 2 == 0 { 0.3 } else { 2.0 });
///     [radius * angle.cos(), radius * angle.sin()]
/// };
/// let cells: Vec<f64> = (0..60).flat_map(ring).collect();
/// let rows = Rows::from_slice(&cells, 2)?;
/// let fit = KernelPca::new(1).kernel(KernelForm::Rbf).gamma(Gamma::Given(1.0)).fit(&rows)?;
/// let z = fit.model.encode(rows.source())?;
/// let inner: Vec<f64> = (0..60).step_by(2).map(|i| z[(i, 0)]).collect();
/// assert!((1..60).step_by(2).all(|i| inner.iter().all(|inner| (inner - z[(i, 0)]).abs() > 0.3)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelPca {
    components: Components,
    form: KernelForm,
    gamma: Gamma,
    landmarks: Landmarks,
    solver: Solver,
    drop_empty: bool,
    preimage: WayBack,
    run: Run,
}

/// Where landmarks come from.
#[derive(Debug, Clone, Default)]
pub enum Landmarks {
    /// None while the kernel matrix fits in memory; beyond, as many as are usual, drawn.
    #[default]
    Auto,
    /// So many, drawn from the rows by randomly pivoted Cholesky.
    Pivoted(usize),
    /// The centres of so many clusters of the rows.
    KMeans(usize),
    /// These (m × p).
    Given(Mat<f64>),
}

impl Landmarks {
    /// How many are asked for.
    fn asked(&self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Pivoted(m) | Self::KMeans(m) => Some(*m),
            Self::Given(points) => Some(points.nrows()),
        }
    }
}

/// How rows are found from coordinates.
#[derive(Debug, Clone, Copy, Default)]
enum WayBack {
    /// By the fixed point, from a regression whose width is the median distance of coordinates.
    #[default]
    Median,
    /// By the kernel of the rows, as scikit-learn does; α, and whether the fixed point follows.
    SameKernel(f64, bool),
}

/// α of the regression when nobody gives one.
const RIDGE: f64 = 1e-3;

impl KernelPca {
    /// So many components, or as many as hold a share of the trace of the centred kernel.
    pub fn new(components: impl Into<Components>) -> Self {
        Self {
            components: components.into(),
            form: KernelForm::Rbf,
            gamma: Gamma::default(),
            landmarks: Landmarks::default(),
            solver: Solver::Auto,
            drop_empty: false,
            preimage: WayBack::default(),
            run: Run::default(),
        }
    }

    /// The form of the kernel; rbf by default.
    pub fn kernel(self, form: KernelForm) -> Self {
        Self { form, ..self }
    }

    /// γ of the kernel; by the median distance by default.
    pub fn gamma(self, gamma: Gamma) -> Self {
        Self { gamma, ..self }
    }

    /// Landmarks; none by default while the kernel matrix fits in memory.
    pub fn landmarks(self, landmarks: Landmarks) -> Self {
        Self { landmarks, ..self }
    }

    /// How the kernel matrix is decomposed: dual (whole), krylov (the leading part) or automatically.
    pub fn solver(self, solver: Solver) -> Self {
        Self { solver, ..self }
    }

    /// Whether components beyond the rank of the kernel are left out; they are 0 by default.
    pub fn drop_empty(self, drop_empty: bool) -> Self {
        Self { drop_empty, ..self }
    }

    /// Finds rows from coordinates by a ridge regression with the kernel of the rows, as scikit-learn does; the
    /// fixed point follows or not.
    pub fn same_kernel_back(self, alpha: f64, fixed_point: bool) -> Self {
        Self { preimage: WayBack::SameKernel(alpha, fixed_point), ..self }
    }

    run_options! {
        /// Not used: the iteration ends when eigenvectors are found to rounding.
    }

    /// Fits rows; of a precomputed kernel, the n × n matrix.
    ///
    /// # Errors
    /// When the options make no sense, there are fewer than two rows, a cell is infinite, or one is missing and the
    /// kernel is neither rbf nor linear.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<KernelComponents>> {
        self.fit_with(rows, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        control: &Control<'_>,
    ) -> Result<Fit<KernelComponents>> {
        let rows = rows.into();
        self.run.check()?;
        self.check(rows.source().n_features())?;
        let fitted = with_threads(self.run.threads, || fit::fit(self, rows.source(), control));
        fitted.map_err(|error| explained(error, rows.source(), control))
    }

    /// What makes no sense, of so many features.
    fn check(&self, features: usize) -> Result<()> {
        let wrong = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
        self.components.check()?;
        if features == 0 {
            return Err(Error::NoFeatures);
        }
        match (self.components, self.landmarks.asked(), self.form) {
            (Components::Evidence, ..) => {
                return wrong(
                    "the number of components",
                    "mle".into(),
                    "a number or a share of the trace: a kernel has no likelihood",
                );
            }
            (_, Some(0), _) => return wrong("the number of landmarks", "0".into(), "at least 1"),
            (Components::Count(q), Some(m), _) if q > m => {
                return wrong(
                    "the number of landmarks",
                    m.to_string(),
                    "at least the number of components, each of which is a combination of landmarks",
                );
            }
            (_, Some(_), KernelForm::Precomputed) => {
                return wrong("the landmarks", "given".into(), "left out with a precomputed kernel");
            }
            (_, Some(_), KernelForm::Sigmoid { .. }) => {
                return wrong(
                    "the kernel",
                    "sigmoid".into(),
                    "one that is positive semidefinite, such as rbf, when landmarks are used",
                );
            }
            _ => (),
        }
        if let WayBack::SameKernel(alpha, _) = self.preimage
            && !(alpha > 0.0 && alpha.is_finite())
        {
            return wrong("alpha", alpha.to_string(), "a finite number above 0");
        }
        let Landmarks::Given(points) = &self.landmarks else { return Ok(()) };
        if points.ncols() != features {
            return Err(Error::FeatureCount { expected: features, found: points.ncols() });
        }
        if points.as_ref().is_all_finite() {
            return Ok(());
        }
        wrong("a cell of the landmarks", "not finite".into(), "finite")
    }
}

impl Family for KernelPca {
    fn kind(&self) -> &'static Kind {
        &kind::KPCA
    }

    fn components(&self) -> Components {
        self.components
    }

    fn chooser(&self) -> Chooser {
        Chooser::KernelParallelAnalysis
    }

    fn as_kernel_pca(&self) -> Option<&KernelPca> {
        Some(self)
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        Arc::new(Self { components, ..self.clone() })
    }

    fn how(&self) -> Run {
        self.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(self.clone().run(run))
    }

    fn with_start(&self, _: &AnyModel) -> Result<Arc<dyn Family>> {
        Err(no_warm_start("left out: kernel PCA has no iteration that could start anywhere"))
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        Err(Error::Parameter {
            name: "what kernel PCA is fitted to",
            value: "moments, or rows that pass once".into(),
            allowed: "rows that can be read again: moments of rows do not tell their kernel",
        })
    }
}

impl WayBack {
    /// Of coordinates, given their median width.
    fn preimage(self, same: Kernel, width: Option<f64>) -> Result<Preimage> {
        let rbf = |gamma| Kernel::new(KernelForm::Rbf, gamma);
        match self {
            Self::SameKernel(alpha, fixed_point) => Ok(Preimage { kernel: same, alpha, fixed_point }),
            Self::Median => {
                Ok(Preimage { kernel: rbf(width.unwrap_or(1.0))?, alpha: RIDGE, fixed_point: true })
            }
        }
    }
}
