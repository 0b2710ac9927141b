//! Independent components: PPCA's latent space turned so that each latent variable is a source.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{
    Decode, Density, Encode, Explain, Fill, LatentPosterior, Loadings, Reconstruct, numbered,
};
use super::gaussian::Gaussian;
use super::{AnyModel, Capability, Factors, Kind, LinearGaussian, Model, Noise, ppca};
use crate::data::RowSource;
use crate::error::Result;
use crate::linalg::{Cholesky, Mat, mirror_lower, product};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "ica",
    title: "independent component analysis",
    about: "sources that are independent, not only uncorrelated",
    components: "sources",
    capabilities: &Capability::LINEAR_GAUSSIAN,
    read: |file| Ok(Arc::new(read(file)?)),
};

fn read(file: &dyn StoredArrays) -> Result<IndependentComponents> {
    let gaussian = ppca::read(file)?;
    let q = gaussian.n_latent();
    IndependentComponents::new(gaussian, file.matrix("turn", [Some(q), Some(q)])?)
}

/// x = A s + μ + ε with sources s = Tᵀz of variance 1: a linear-Gaussian model read through a turn T (q × q) that
/// makes its latent variables independent.
///
/// The mixing matrix is A = W T⁻ᵀ (p × q). Where T is orthogonal, sources are uncorrelated; without that
/// constraint they have the correlation TᵀT. The density of rows is the normal one of W, μ and the noise whatever
/// the turn is, so every question of PPCA has PPCA's answer, and coordinates are its posterior, turned. That
/// sources are not normal is what T was found by; the density does not know it.
///
/// ```
/// use covary::linalg::Mat;
/// use covary::model::{IndependentComponents, LinearGaussian, Noise};
///
/// let w = Mat::from_fn(2, 2, |i, j| [[2.0, 0.0], [0.0, 1.0]][i][j]);
/// let gaussian = LinearGaussian::new(vec![0.0; 2], w, Noise::Isotropic(0.0))?;
/// let turn = Mat::from_fn(2, 2, |i, j| [[0.6, -0.8], [0.8, 0.6]][i][j]);
/// let model = IndependentComponents::new(gaussian, turn)?;
/// assert!((model.mixing()[(0, 0)] - 1.2).abs() < 1e-15);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct IndependentComponents {
    factors: Factors,
}

impl IndependentComponents {
    /// Sources s = Tᵀz of a linear-Gaussian model.
    ///
    /// # Errors
    /// When T is not q × q, a column is not of length 1, or columns depend on each other.
    pub fn new(gaussian: LinearGaussian, turn: Mat<f64>) -> Result<Self> {
        Ok(Self { factors: Factors::new(gaussian).with_turn(turn)? })
    }

    /// The density, with loadings W as PPCA has them.
    pub fn gaussian(&self) -> &LinearGaussian {
        self.factors.gaussian()
    }

    /// A (p × q): what each source does to each feature.
    pub fn mixing(&self) -> &Mat<f64> {
        self.factors.pattern()
    }

    /// What each source adds to the variance of the features: ‖a‖² (q).
    pub fn source_variances(&self) -> Vec<f64> {
        self.mixing().col_iter().map(|a| a.squared_norm_l2()).collect()
    }

    /// T (q × q).
    pub fn turn(&self) -> Mat<f64> {
        let q = self.n_sources();
        self.factors.turn().cloned().unwrap_or_else(|| Mat::identity(q, q))
    }

    /// Correlation of the sources, TᵀT (q × q): I unless the turn is oblique.
    pub fn correlation(&self) -> Mat<f64> {
        self.factors.correlation()
    }

    /// q.
    pub fn n_sources(&self) -> usize {
        self.factors.n_factors()
    }

    /// B = TᵀV (q × p), V the [`whitening`](Self::whitening): the sources of a complete row are B(x − μ).
    ///
    /// # Errors
    /// When the loadings have no length in some direction.
    pub fn unmixing(&self) -> Result<Mat<f64>> {
        Ok(product(self.turn().transpose(), self.whitening()?.as_ref()))
    }

    /// V (q × p): the latent variables of a complete row before the turn are V(x − μ). (WᵀΨ⁻¹W + I)⁻¹WᵀΨ⁻¹ with
    /// noise Ψ, and the pseudo-inverse of W without.
    ///
    /// # Errors
    /// When the loadings have no length in some direction.
    pub fn whitening(&self) -> Result<Mat<f64>> {
        let (w, noise) = (self.gaussian().loadings(), self.gaussian().noise());
        let free = noise.mean() == 0.0;
        let divide = |j: usize| if free { 1.0 } else { noise.of(j) };
        let divided = Mat::from_fn(w.ncols(), w.nrows(), |k, j| w[(j, k)] / divide(j)); // WᵀΨ⁻¹
        let mut gram = product(divided.as_ref(), w.as_ref());
        mirror_lower(&mut gram);
        if !free {
            (0..w.ncols()).for_each(|k| gram[(k, k)] += 1.0);
        }
        let factor = Cholesky::new(gram, "the inner products of the loadings")?;
        let mut latent = divided;
        factor.solve(latent.as_mut());
        Ok(latent)
    }

    /// The model of some of the features: the same sources.
    ///
    /// # Errors
    /// When a feature does not exist or is asked for twice.
    pub fn marginal(&self, features: &[usize]) -> Result<Self> {
        Ok(Self { factors: self.factors.marginal(features)? })
    }
}

impl Model for IndependentComponents {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.factors.n_features()
    }

    fn n_latent(&self) -> usize {
        self.n_sources()
    }

    fn arrays(&self) -> Arrays {
        let mut arrays = ppca::arrays(self.gaussian());
        arrays.insert("turn", Array::Matrix(self.turn()));
        arrays
    }

    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        Ok(Arc::new(Self::new(ppca::rescaled(self.gaussian(), scale)?, self.turn())?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
        Some(&self.factors)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(&self.factors)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(&self.factors)
    }

    fn as_density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn as_explain(&self) -> Option<&dyn Explain> {
        Some(self)
    }

    fn as_fill(&self) -> Option<&dyn Fill> {
        Some(self)
    }

    fn as_loadings(&self) -> Option<&dyn Loadings> {
        Some(self)
    }
}

impl Gaussian for IndependentComponents {
    fn gaussian(&self) -> &LinearGaussian {
        self.factors.gaussian()
    }

    fn marginal_model(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(self.marginal(features)?))
    }
}

impl Encode for IndependentComponents {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('s', self.n_sources())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        Encode::encode(&self.factors, rows)
    }
}

impl Loadings for IndependentComponents {
    fn mean(&self) -> &[f64] {
        self.factors.mean()
    }

    fn loadings(&self) -> &Mat<f64> {
        self.mixing()
    }

    fn noise(&self) -> Noise {
        self.gaussian().noise().clone()
    }

    fn axes(&self) -> Result<Mat<f64>> {
        Ok(self.mixing().clone())
    }

    fn variances(&self) -> Result<Vec<f64>> {
        Loadings::variances(&self.factors)
    }

    fn factors(&self) -> Factors {
        self.factors.clone()
    }
}
