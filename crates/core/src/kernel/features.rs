//! Nyström's feature map: rows as vectors whose inner products are nearly their kernel values.

use std::sync::Arc;

use super::{Compared, Filling, Kernel};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::linalg::serial::{Cells, Serial};
use crate::linalg::{Cholesky, Mat, MatMut, MatRef, product};

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
    points: Arc<Compared>,
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
        let points = Compared::around(kernel, landmarks.as_ref(), mean, &vec![1.0; p], None)?;
        let gram = points.gram()?;
        let factor = Cholesky::new(gram.clone(), "the kernel matrix of the landmarks")?;
        let rounding = rounding_of_products(gram.as_ref(), &factor);
        Ok(Self { points: Arc::new(points), landmarks, factor, rounding })
    }

    /// The same for rows that may miss cells, of which the filling knows the distribution: φ is then its expectation,
    /// L⁻¹ E k(Z, x).
    pub fn with_filling(self, filling: Arc<dyn Filling>) -> Self {
        Self { points: Arc::new(self.points.with_filling(filling)), ..self }
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

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.points.points().kernel()
    }

    /// Where rows are compared from (p): the mean that was given, or 0 where the kernel is not free of shifts.
    pub fn origin(&self) -> &[f64] {
        self.points.points().frame().parts().0
    }

    /// What is known of missing cells of rows.
    pub fn filling(&self) -> Option<&dyn Filling> {
        self.points.filling()
    }

    /// Whether features of rows are the same numbers.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let known = |map: &Self| map.filling().map(Filling::numbers);
        self.kernel() == other.kernel()
            && self.landmarks == other.landmarks
            && self.origin() == other.origin()
            && known(self) == known(other)
    }

    /// L⁻ᵀ b in place (m × any): from features to weights of the landmarks.
    pub(crate) fn weights_of_landmarks(&self, b: MatMut<'_, f64>) {
        self.factor.solve_upper(b);
    }

    /// L (m × m).
    pub(crate) fn factor(&self) -> &Cholesky {
        &self.factor
    }

    /// Whether L⁻¹ can be applied to moments of kernel values instead of to each row, without losing digits: m²
    /// operations for each row less.
    pub(crate) fn maps_moments(&self) -> bool {
        self.rounding <= PRODUCT_ROUNDING
    }

    /// What rounding then does to the trace of the covariance of φ, relative to it.
    pub(crate) fn trace_rounding(&self) -> f64 {
        if self.maps_moments() { self.rounding.max(TRACE_ROUNDING) } else { TRACE_ROUNDING }
    }

    /// Calls `f` with the place of each block in the chunk, E k(Z, x) of its rows (m × b) and E k(x, x) of each.
    pub(crate) fn for_each_block(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(usize, MatMut<'_, f64>, Vec<f64>) -> Result<()>,
    ) -> Result<()> {
        self.points.for_each_block(chunk, |first, block, values, known| {
            f(first, values, self.points.diagonal(block, known))
        })
    }
}

/// The map of complete rows; what it knows of missing cells stays behind.
impl Serial for FeatureMap {
    type Sent = (Kernel, Cells, Vec<f64>);

    fn sent(&self) -> Self::Sent {
        (self.kernel(), self.landmarks.sent(), self.origin().to_vec())
    }

    fn received((kernel, landmarks, origin): Self::Sent) -> Option<Self> {
        Self::new(kernel, Mat::received(landmarks)?, &origin).ok()
    }
}

/// What rounding each entry of S = Σ k(Z, x) k(Z, x)ᵀ does to the trace of L⁻¹ S L⁻ᵀ at most, relative to that trace:
/// ε Σ |Sᵢⱼ| |K⁻¹ᵢⱼ| / tr S K⁻¹, with the landmarks themselves as the rows: S = K² (m × m).
fn rounding_of_products(gram: MatRef<'_, f64>, factor: &Cholesky) -> f64 {
    let m = gram.nrows();
    let squares = product(gram, gram);
    let mut inverse = Mat::identity(m, m);
    factor.solve(inverse.as_mut());
    let entries = squares.col_iter().zip(inverse.col_iter());
    let sizes = entries.map(|(s, k)| s.iter().zip(k.iter()).map(|(s, k)| (s * k).abs()).sum::<f64>());
    f64::EPSILON * sizes.sum::<f64>() / gram.diagonal().column_vector().sum()
}
