//! The expected information of the normal likelihood about loadings, factor correlations and uniquenesses.

use super::parameters::FactorModel;
use crate::error::Result;
use crate::linalg::{Cholesky, Mat, product};

/// What the entries of the parameter vector are, in order: Λ by columns, Φ below the diagonal by columns, ψ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) features: usize,
    pub(super) factors: usize,
    /// Whether Φ is estimated.
    pub(super) oblique: bool,
    /// The features whose ψ is estimated and not fixed.
    pub(super) free: Vec<usize>,
}

impl Layout {
    pub(super) fn loadings(&self) -> usize {
        self.features * self.factors
    }

    /// Pairs of factors (r, s) with r > s whose correlation is estimated.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        let q = if self.oblique { self.factors } else { 0 };
        (0..q).flat_map(|s| (s + 1..q).map(move |r| (r, s))).collect()
    }

    /// K, the number of parameters.
    pub(super) fn len(&self) -> usize {
        self.loadings() + self.pairs().len() + self.free.len()
    }

    /// Λ, Φ and ψ as one vector.
    pub(super) fn flatten(&self, loadings: &Mat<f64>, correlation: &Mat<f64>, psi: &[f64]) -> Vec<f64> {
        let columns = (0..self.factors).flat_map(|k| loadings.col_as_slice(k).iter().copied());
        let correlations = self.pairs().into_iter().map(|rs| correlation[rs]);
        columns.chain(correlations).chain(self.free.iter().map(|&j| psi[j])).collect()
    }

    /// Λ, Φ and ψ from the vector; what is fixed comes from `psi`.
    pub(super) fn unflatten(&self, theta: &[f64], psi: &[f64]) -> (Mat<f64>, Mat<f64>, Vec<f64>) {
        let (p, q) = (self.features, self.factors);
        let loadings = Mat::from_fn(p, q, |j, k| theta[j + p * k]);
        let mut phi = Mat::identity(q, q);
        let pairs = self.pairs();
        for (&(r, s), value) in pairs.iter().zip(&theta[p * q..]) {
            (phi[(r, s)], phi[(s, r)]) = (*value, *value);
        }
        let mut psi = psi.to_vec();
        let rest = &theta[p * q + pairs.len()..];
        self.free.iter().zip(rest).for_each(|(&j, value)| psi[j] = *value);
        (loadings, phi, psi)
    }
}

/// ½ tr(P ∂Σ/∂θₐ P ∂Σ/∂θᵦ) with P = Σ⁻¹, of one row: (K × K), the lower triangle.
///
/// With B = ΛΦ: λᵢᵣ and λⱼₛ share pᵢⱼ(BᵀPB)ᵣₛ + (PB)ᵢₛ(PB)ⱼᵣ, and so on for the other pairs \[JT73\].
pub(super) fn information(model: &FactorModel<'_>, layout: &Layout) -> Result<Mat<f64>> {
    let parts = Parts::new(model)?;
    let (p, k) = (layout.features, layout.len());
    let pairs = layout.pairs();
    let kind = |a: usize| match a {
        a if a < layout.loadings() => Kind::Loading(a % p, a / p),
        a if a < layout.loadings() + pairs.len() => {
            let (r, s) = pairs[a - layout.loadings()];
            Kind::Correlation(r, s)
        }
        a => Kind::Uniqueness(layout.free[a - layout.loadings() - pairs.len()]),
    };
    let kinds: Vec<Kind> = (0..k).map(kind).collect();
    Ok(Mat::from_fn(k, k, |a, b| if a >= b { parts.shared(kinds[a], kinds[b]) } else { 0.0 }))
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Loading(usize, usize),
    Correlation(usize, usize),
    Uniqueness(usize),
}

/// The products with P = Σ⁻¹ that all entries are made of.
struct Parts {
    p: Mat<f64>,   // P (p × p)
    pb: Mat<f64>,  // PB (p × q)
    pl: Mat<f64>,  // PΛ (p × q)
    bpb: Mat<f64>, // BᵀPB (q × q)
    bpl: Mat<f64>, // BᵀPΛ (q × q)
    lpl: Mat<f64>, // ΛᵀPΛ (q × q)
}

impl Parts {
    fn new(model: &FactorModel<'_>) -> Result<Self> {
        let n = model.n_features();
        let mut p = Mat::identity(n, n);
        Cholesky::new(model.covariance(), "the covariance of the model")?.solve(p.as_mut());
        let (l, b) = (model.loadings(), model.structure());
        let (pb, pl) = (product(p.as_ref(), b.as_ref()), product(p.as_ref(), l));
        Ok(Self {
            bpb: product(b.transpose(), pb.as_ref()),
            bpl: product(b.transpose(), pl.as_ref()),
            lpl: product(l.transpose(), pl.as_ref()),
            p,
            pb,
            pl,
        })
    }

    /// The entry of the information for two parameters, the later one first.
    fn shared(&self, later: Kind, earlier: Kind) -> f64 {
        use Kind::{Correlation, Loading, Uniqueness};
        match (later, earlier) {
            (Loading(i, r), Loading(j, s)) => {
                self.p[(i, j)] * self.bpb[(r, s)] + self.pb[(i, s)] * self.pb[(j, r)]
            }
            (Correlation(s, t), Loading(i, r)) | (Loading(i, r), Correlation(s, t)) => {
                self.pl[(i, s)] * self.bpl[(r, t)] + self.pl[(i, t)] * self.bpl[(r, s)]
            }
            (Correlation(r, s), Correlation(t, u)) => {
                self.lpl[(r, t)] * self.lpl[(s, u)] + self.lpl[(r, u)] * self.lpl[(s, t)]
            }
            (Uniqueness(j), Loading(i, r)) | (Loading(i, r), Uniqueness(j)) => {
                self.p[(i, j)] * self.pb[(j, r)]
            }
            (Uniqueness(j), Correlation(s, t)) | (Correlation(s, t), Uniqueness(j)) => {
                self.pl[(j, s)] * self.pl[(j, t)]
            }
            (Uniqueness(i), Uniqueness(j)) => 0.5 * self.p[(i, j)].powi(2),
        }
    }
}
