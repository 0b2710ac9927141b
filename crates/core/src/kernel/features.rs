//! Nyström's feature map: rows as vectors whose inner products are nearly their kernel values.

use std::sync::Arc;

use super::{Kernel, Points};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, MatMut};

/// Rounding of L⁻¹ S L⁻ᵀ, relative to its trace, that is let pass: where landmarks are nearly combinations of others
/// it is more, and rows are mapped before they are squared.
const PRODUCT_ROUNDING: f64 = 1e-9;
/// Rounding of a trace of squares, relative to it.
const TRACE_ROUNDING: f64 = 1e-14;

/// $\varphi(x) = L^{-1} k(Z, x)$ with $K_{ZZ} = L L^\top$ for landmarks Z \[WS01\].
///
/// φ(x)·φ(x′) is k(x, x′) wherever x or x′ is a landmark, and the best that functions of the landmarks can do
/// elsewhere. So linear methods on φ are kernel methods, on rows that may lie in a file, in one pass.
///
/// ```
/// use covary::kernel::{FeatureMap, Kernel, KernelForm};
/// use covary::linalg::Mat;
/// let landmarks = Mat::from_fn(2, 1, |i, _| i as f64);
/// let map = FeatureMap::new(Kernel::new(KernelForm::Rbf, 1.0)?, landmarks, &[0.5])?;
/// assert_eq!(map.n_features(), 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FeatureMap {
    points: Arc<Points>,
    landmarks: Mat<f64>, // (m × p)
    factor: Cholesky,    // L (m × m)
    rounding: f64,       // of L⁻¹ S L⁻ᵀ relative to its trace
}

impl FeatureMap {
    /// Landmarks as rows (m × p), no one of which may be a copy of another; `mean` is about where rows lie (p).
    ///
    /// # Errors
    /// When their kernel matrix is singular or a number overflows.
    pub fn new(kernel: Kernel, landmarks: Mat<f64>, mean: &[f64]) -> Result<Self> {
        let (m, p) = (landmarks.nrows(), landmarks.ncols());
        if m == 0 || p == 0 || mean.len() != p {
            return Err(Error::Length { what: "features of landmarks", expected: mean.len(), found: p });
        }
        let points = Points::around(kernel, landmarks.as_ref(), mean, &vec![1.0; p])?;
        let factor = Cholesky::new(points.gram(), "the kernel matrix of the landmarks")?;
        let trace: f64 = points.diagonal(points.columns()).iter().sum();
        // A bound on what rounding of the entries of S does to the trace of L⁻¹ S L⁻ᵀ.
        let rounding = f64::EPSILON * factor.inverse_size() * trace;
        Ok(Self { points: Arc::new(points), landmarks, factor, rounding })
    }

    /// m.
    pub fn n_features(&self) -> usize {
        self.landmarks.nrows()
    }

    /// Features of the rows that are mapped, p.
    pub fn n_inputs(&self) -> usize {
        self.landmarks.ncols()
    }

    /// Landmarks (m × p).
    pub fn landmarks(&self) -> &Mat<f64> {
        &self.landmarks
    }

    /// L⁻ᵀ b in place (m × any): from features to weights of the landmarks.
    pub(crate) fn weights_of_landmarks(&self, b: MatMut<'_, f64>) {
        self.factor.solve_upper(b);
    }

    /// L where the covariance of φ is found as L⁻¹ S L⁻ᵀ from the covariance S of kernel values: m² operations for
    /// each row less. `None` where that would lose digits.
    pub(crate) fn product_factor(&self) -> Option<&Cholesky> {
        (self.rounding <= PRODUCT_ROUNDING).then_some(&self.factor)
    }

    /// What rounding may do to the trace of the covariance of φ, relative to it.
    pub(crate) fn trace_rounding(&self) -> f64 {
        self.product_factor().map_or(TRACE_ROUNDING, |_| self.rounding.max(TRACE_ROUNDING))
    }

    /// Calls `f` with the place of each block in the chunk, its rows (m × b) and k(x, x) of each: as φ, or as kernel
    /// values where there is a [`product_factor`](Self::product_factor).
    pub(crate) fn for_each_block(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(usize, MatMut<'_, f64>, Vec<f64>) -> Result<()>,
    ) -> Result<()> {
        self.points.for_each_block(chunk, |first, block, mut values| {
            if self.product_factor().is_none() {
                self.factor.solve_lower(values.as_mut());
            }
            f(first, values, self.points.diagonal(block))
        })
    }
}
