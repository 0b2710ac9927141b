//! What all work on rows with missing values is made of: sums over the features that each row has.
//!
//! A row with missing values is known by its deviations e and the set of features that it has. Whether rows
//! come as a dense block with a mask ([`MaskedBlock`](super::masked::MaskedBlock)) or as lists of cells
//! ([`ListedRows`](super::listed::ListedRows)) changes how sums are done, not which.

use crate::linalg::serial::{Cells, Serial};
use crate::linalg::{Mat, MatRef, clean_zeros, comparable, packed_len, pair_products};

/// Packed products of loadings are kept when they are at most this many numbers.
const KEPT_PRODUCTS: usize = 1 << 22;

/// The loadings A of each feature, ready for sums over some of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FeatureLoadings {
    /// Aᵀ (q × p): those of a feature side by side.
    pub(crate) a: Mat<f64>,
    /// Packed products aⱼaⱼᵀ (q(q+1)/2 × p), unless they are too many.
    pub(crate) pairs: Option<Mat<f64>>,
    squares: Vec<f64>, // ‖aⱼ‖²
    range: [f64; 2],   // of those
}

impl FeatureLoadings {
    /// Of Aᵀ (q × p).
    pub(crate) fn new(loadings: &Mat<f64>) -> Self {
        let mut a = clean_zeros(loadings.nrows(), loadings.ncols());
        a.copy_from(loadings);
        let pairs = (packed_len(a.nrows()) * a.ncols() <= KEPT_PRODUCTS).then(|| pair_products(a.as_ref()));
        let squares: Vec<f64> = a.col_iter().map(|a| a.squared_norm_l2()).collect();
        let range = squares.iter().fold([f64::INFINITY, 0.0], |[a, b], x| [x.min(a), x.max(b)]);
        Self { a, pairs, squares, range }
    }

    /// ‖aⱼ‖² of each feature.
    pub(crate) fn squares(&self) -> &[f64] {
        &self.squares
    }

    /// Whether features with noise s differ so much in scale that the large ones would drown the small in
    /// sums over both.
    pub(crate) fn graded(&self, noise: f64) -> bool {
        !comparable(self.range.iter().map(|square| square + noise))
    }

    /// q.
    pub(crate) fn q(&self) -> usize {
        self.a.nrows()
    }
}

/// The loadings; all else follows from them.
impl Serial for FeatureLoadings {
    type Sent = Cells;

    fn sent(&self) -> Cells {
        self.a.sent()
    }

    fn received(sent: Cells) -> Option<Self> {
        Mat::received(sent).map(|a| Self::new(&a))
    }
}

/// What is subtracted from cells: a mean and, where there is one, what rounding has taken off it.
#[derive(Clone, Copy)]
pub(crate) struct Mean<'a> {
    pub(crate) value: &'a [f64],
    pub(crate) rest: Option<&'a [f64]>,
}

impl<'a> From<&'a [f64]> for Mean<'a> {
    fn from(value: &'a [f64]) -> Self {
        Self { value, rest: None }
    }
}

/// Some rows with missing values; those that have the same features share a pattern.
pub(crate) trait IncompleteRows {
    /// The pattern of each row.
    fn pattern(&self) -> &[usize];
    /// Number of features of each pattern.
    fn observed(&self) -> &[usize];
    /// The features of a row, and its deviations eⱼ there.
    fn cells(&self, row: usize) -> (Vec<usize>, Vec<f64>);
    /// Sums of one number per feature over the features of each pattern.
    fn sums(&self, of: &[f64]) -> Vec<f64>;
    /// The same of m numbers per feature (m × p): (patterns × m).
    fn sums_of(&self, of: &Mat<f64>) -> Mat<f64>;
    /// Σ aⱼaⱼᵀ over the features of each pattern, packed (patterns × q(q+1)/2).
    fn grams(&self, loadings: &FeatureLoadings) -> Mat<f64>;
    /// Σ aⱼeⱼ over the features of each row (rows × q).
    fn projections(&self, loadings: &FeatureLoadings) -> Mat<f64>;
    /// Σ (eⱼ − aⱼᵀz)² over the features of each row, each multiplied by its `scale` before it is squared; z
    /// (rows × q).
    fn squared_residuals(&self, loadings: &FeatureLoadings, z: &Mat<f64>, scale: Option<&[f64]>) -> Vec<f64>;
    /// Adds numbers of each pattern (patterns × m) to the features that it has (m × p).
    fn scatter(&self, of_patterns: MatRef<'_, f64>, to: &mut Mat<f64>);
    /// Adds eⱼ times numbers of each row (rows × m) to the features that it has (m × p).
    fn scatter_deviations(&self, of_rows: MatRef<'_, f64>, to: &mut Mat<f64>);
    /// Adds eⱼ² times the weight of each row to the features that it has (p).
    fn scatter_squares(&self, weights: &[f64], to: &mut [f64]);
}
