//! What a rotation gives: turn, pattern, structure and correlations of the factors that belong together.

use super::turn::Space;
use crate::algorithm::Stop;
use crate::linalg::{Mat, MatRef, descending, leading_entry, product};

/// Variances of factors that agree to this, relative to the largest, are a tie.
const TIE: f64 = 1e-10;

/// Rotated loadings.
///
/// Factors are f = Tᵀz with columns of T of length 1, so that $\Phi = T^\mathsf{T} T$, the pattern is
/// $\Lambda = A T^{-\mathsf{T}}$, the structure (covariances of features with factors) $\Lambda\Phi = A T$,
/// and $\Lambda\Phi\Lambda^\mathsf{T} = A A^\mathsf{T}$.
///
/// **Order and sign**, the same in all four: factors in descending [`explained`](Self::explained) variance,
/// ties by the position of the largest loading; the entry of largest magnitude in each column of the pattern
/// is positive (the first such entry on ties). It is the rule for components everywhere in this library.
/// (Positive column sums, as psych has them, hang on rounding when a factor is bipolar.) Factors that were
/// rotated towards a target keep the target's order and sign.
#[derive(Debug, Clone)]
pub struct Rotated {
    /// T (q × q), columns of length 1; orthogonal for orthogonal rotations.
    pub turn: Mat<f64>,
    /// Λ (p × q): regression coefficients of the features on the factors.
    pub pattern: Mat<f64>,
    /// ΛΦ (p × q): covariances of features and factors; the pattern itself when factors are uncorrelated.
    pub structure: Mat<f64>,
    /// Φ (q × q): correlations of the factors.
    pub correlation: Mat<f64>,
    /// What was minimised, at the pattern (at the normalised one under Kaiser's normalisation); varimax's for
    /// promax. Beyond loadings of 1e±75 its fourth power of them leaves the range of doubles, though the
    /// rotation is found all the same.
    pub criterion: f64,
    /// Steps of the descent that won; 0 for closed forms.
    pub iterations: usize,
    /// Whether that descent has converged.
    pub converged: bool,
    /// Why that descent ended; converged for closed forms.
    pub stop: Stop,
    /// The criterion at the end of each start: the first from the given loadings, the others from random
    /// turns. NaN for a start in which factors fell together.
    pub starts: Vec<f64>,
    /// How many starts ended at the value that won, up to rounding: 1 of many speaks for more starts.
    pub agreeing: usize,
}

impl Rotated {
    /// Everything that follows from a turn; `None` when it is singular.
    pub(super) fn new(a: MatRef<'_, f64>, turn: Mat<f64>, space: Space) -> Option<Self> {
        let pattern = product(a, space.sound_inverse(turn.as_ref())?.transpose());
        let (structure, correlation) = match space {
            Space::Orthogonal => (pattern.clone(), Mat::identity(turn.ncols(), turn.ncols())),
            Space::Oblique => (product(a, turn.as_ref()), correlation(&turn)),
        };
        Some(Self {
            turn,
            pattern,
            structure,
            correlation,
            criterion: 0.0,
            iterations: 0,
            converged: true,
            stop: Stop::Converged,
            starts: Vec::new(),
            agreeing: 0,
        })
    }

    /// Variance of all features that goes with each factor, diag(ΦΛᵀΛ); they add up to the sum of squares of
    /// A.
    pub fn explained(&self) -> Vec<f64> {
        let column = |j| self.pattern.col_as_slice(j).iter().zip(self.structure.col_as_slice(j));
        (0..self.pattern.ncols()).map(|j| column(j).map(|(l, s)| l * s).sum()).collect()
    }

    /// Factors in standard order and sign.
    pub(super) fn standard(mut self) -> Self {
        let order = self.order();
        let leading = |j: usize| self.pattern[(leading_entry(self.pattern.col_as_slice(j)), j)];
        let signs: Vec<f64> = order.iter().map(|&j| if leading(j) < 0.0 { -1.0 } else { 1.0 }).collect();
        // Adding 0 turns −0 into 0.
        let columns =
            |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| signs[j] * m[(i, order[j])] + 0.0);
        let half = columns(&self.correlation);
        self.correlation =
            Mat::from_fn(order.len(), order.len(), |i, j| signs[i] * half[(order[i], j)] + 0.0);
        (self.turn, self.pattern, self.structure) =
            (columns(&self.turn), columns(&self.pattern), columns(&self.structure));
        self
    }

    /// Columns by descending variance; those that tie, by the row of their largest entry.
    fn order(&self) -> Vec<usize> {
        let unit = self.pattern.norm_max().max(f64::MIN_POSITIVE);
        let column = |j| self.pattern.col_as_slice(j).iter().zip(self.structure.col_as_slice(j));
        let variance: Vec<f64> = (0..self.pattern.ncols())
            .map(|j| column(j).map(|(l, s)| (l / unit) * (s / unit)).sum())
            .collect();
        let row: Vec<usize> =
            (0..variance.len()).map(|j| leading_entry(self.pattern.col_as_slice(j))).collect();
        let mut order = descending(&variance);
        let tied = TIE * variance.iter().fold(0.0, |m: f64, v| m.max(*v));
        for group in order.chunk_by_mut(|&a, &b| variance[a] - variance[b] <= tied) {
            group.sort_by(|&a, &b| row[a].cmp(&row[b]));
        }
        order
    }
}

/// TᵀT, its diagonal exactly 1.
fn correlation(turn: &Mat<f64>) -> Mat<f64> {
    let inner = product(turn.transpose(), turn.as_ref());
    let q = inner.ncols();
    Mat::from_fn(q, q, |i, j| if i == j { 1.0 } else { 0.5 * (inner[(i, j)] + inner[(j, i)]) })
}
