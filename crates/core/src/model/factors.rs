//! Factor analysis as people read it: loadings on turned factors, what they explain, and scores.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{
    Decode, Density, Encode, Explain, Fill, LatentPosterior, Loadings, Reconstruct, numbered,
};
use super::gaussian::Gaussian;
use super::{AnyModel, Capability, Kind, LinearGaussian, Model, Noise, Posterior, Reconstruction, ppca};
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, MatRef, column_norm, inverse, mirror_lower, product};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "fa",
    title: "factor analysis",
    about: "a noise variance for each feature",
    components: "factors",
    capabilities: &Capability::LINEAR_GAUSSIAN,
    read: |file| Ok(Arc::new(read(file)?)),
};

fn read(file: &dyn StoredArrays) -> Result<Factors> {
    let factors = Factors::new(ppca::read(file)?);
    let q = factors.n_factors();
    match file.has("turn") {
        true => factors.with_turn(file.matrix("turn", [Some(q), Some(q)])?),
        false => Ok(factors),
    }
}

/// How far the length of a column of a turn may be from 1.
const UNIT: f64 = 1e-8;
/// Largest entry of T⁻¹: above, factors are so nearly dependent that loadings on them mean nothing.
const LARGEST: f64 = 1e6;

/// How factor scores are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scores {
    /// The posterior mean E\[f | x\], of least mean squared error; also known as Thomson's or regression
    /// scores.
    #[default]
    Regression,
    /// Weighted least squares $(\Lambda^\top \Psi^{-1} \Lambda)^{-1} \Lambda^\top \Psi^{-1} (x - \mu)$,
    /// unbiased given f.
    Bartlett,
}

/// A linear-Gaussian model read through factors f = Tᵀz, with correlation Φ = TᵀT and loadings Λ = W T⁻ᵀ.
///
/// The turn T (q × q) has columns of length 1; orthogonal or oblique, it never changes the density: ΛΦΛᵀ =
/// WWᵀ. Loadings of PPCA can be read in the same way.
///
/// ```
/// use covary::linalg::Mat;
/// use covary::model::{Factors, LinearGaussian, Noise};
///
/// let w = Mat::from_fn(3, 2, |i, j| [[0.8, 0.1], [0.7, -0.3], [0.2, 0.6]][i][j]);
/// let gaussian = LinearGaussian::new(vec![0.0; 3], w, Noise::Diagonal(vec![0.35, 0.42, 0.6]))?;
/// let turn = Mat::from_fn(2, 2, |i, j| [[1.0, 0.6], [0.0, 0.8]][i][j]);
/// let factors = Factors::new(gaussian).with_turn(turn)?;
/// assert!((factors.correlation()[(0, 1)] - 0.6).abs() < 1e-15);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Factors {
    gaussian: LinearGaussian,
    turned: Option<Turned>,
}

/// A turn and what follows from it.
#[derive(Debug, Clone)]
struct Turned {
    turn: Mat<f64>,        // T (q × q)
    correlation: Mat<f64>, // Φ (q × q)
    pattern: Mat<f64>,     // Λ (p × q)
}

impl From<LinearGaussian> for Factors {
    fn from(gaussian: LinearGaussian) -> Self {
        Self::new(gaussian)
    }
}

impl Factors {
    /// Factors as the loadings have them: f = z.
    pub fn new(gaussian: LinearGaussian) -> Self {
        Self { gaussian, turned: None }
    }

    /// The same model with factors f = Tᵀz; a turn that was there before is replaced.
    ///
    /// # Errors
    /// When T is not q × q, a column is not of length 1, or factors depend on each other.
    pub fn with_turn(self, turn: Mat<f64>) -> Result<Self> {
        let turned = Turned::new(&self.gaussian, turn)?;
        Ok(Self { turned: Some(turned), ..self })
    }

    /// The same model with factors f = z.
    pub fn without_turn(self) -> Self {
        Self { turned: None, ..self }
    }

    /// A model of given numbers: pattern Λ (p × q) and correlation Φ (q × q) of the factors, from which W =
    /// ΛTᵀ with Φ = TᵀT.
    ///
    /// # Errors
    /// When shapes disagree, numbers are not finite, or Φ is not a correlation matrix of independent factors.
    pub fn given(
        mean: Vec<f64>,
        pattern: MatRef<'_, f64>,
        phi: MatRef<'_, f64>,
        noise: Noise,
    ) -> Result<Self> {
        check_correlation(phi, pattern.ncols())?;
        let factor = Cholesky::new(phi.to_owned(), "the correlation of the factors")?;
        let lower = factor.lower();
        let gaussian = LinearGaussian::new(mean, product(pattern, lower.as_ref()), noise)?;
        Self::new(gaussian).with_turn(lower.transpose().to_owned())
    }

    /// The density, with loadings W as they were found.
    pub fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    /// T (q × q), when there is one.
    pub fn turn(&self) -> Option<&Mat<f64>> {
        self.turned.as_ref().map(|t| &t.turn)
    }

    /// μ (p).
    pub fn mean(&self) -> &[f64] {
        self.gaussian.mean()
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.gaussian.n_features()
    }

    /// q.
    pub fn n_factors(&self) -> usize {
        self.gaussian.n_latent()
    }

    /// Λ = W T⁻ᵀ (p × q): what each factor, the others held fixed, does to each feature.
    pub fn pattern(&self) -> &Mat<f64> {
        self.turned.as_ref().map_or(self.gaussian.loadings(), |t| &t.pattern)
    }

    /// ΛΦ = W T (p × q): the covariance of features and factors.
    pub fn structure(&self) -> Mat<f64> {
        let w = self.gaussian.loadings();
        self.turn().map_or_else(|| w.clone(), |t| product(w.as_ref(), t.as_ref()))
    }

    /// Φ = TᵀT (q × q): the correlation of the factors.
    pub fn correlation(&self) -> Mat<f64> {
        let q = self.n_factors();
        self.turned.as_ref().map_or_else(|| Mat::identity(q, q), |t| t.correlation.clone())
    }

    /// Variance of each feature under the model: the diagonal of ΛΦΛᵀ + Ψ (p).
    pub fn feature_variances(&self) -> Vec<f64> {
        let noise = self.gaussian.noise();
        self.common().into_iter().enumerate().map(|(j, common)| common + noise.of(j)).collect()
    }

    /// Share of each feature's variance that the factors explain (p); 0 where there is no variance.
    pub fn communalities(&self) -> Vec<f64> {
        let variances = self.feature_variances();
        let share = |(common, v): (f64, f64)| if v > 0.0 { common / v } else { 0.0 };
        self.common().into_iter().zip(variances).map(share).collect()
    }

    /// Share of each feature's variance that is its own, ψ/variance (p); 1 where there is no variance.
    pub fn uniquenesses(&self) -> Vec<f64> {
        let noise = self.gaussian.noise();
        let share = |(j, v): (usize, f64)| if v > 0.0 { noise.of(j) / v } else { 1.0 };
        self.feature_variances().into_iter().enumerate().map(share).collect()
    }

    /// Λ on the scale of correlations: each row divided by the feature's standard deviation (p × q).
    pub fn standardised_pattern(&self) -> Mat<f64> {
        self.standardised(self.pattern().as_ref())
    }

    /// ΛΦ on the scale of correlations: the correlation of features and factors (p × q).
    pub fn standardised_structure(&self) -> Mat<f64> {
        self.standardised(self.structure().as_ref())
    }

    /// What each factor explains of features of unit variance (q): Σⱼ Λⱼₖ(ΛΦ)ⱼₖ of the standardised loadings,
    /// which adds up to the sum of the communalities.
    pub fn factor_variances(&self) -> Vec<f64> {
        let (pattern, structure) = (self.standardised_pattern(), self.standardised_structure());
        let columns = pattern.col_iter().zip(structure.col_iter());
        columns.map(|(a, b)| a.iter().zip(b.iter()).map(|(a, b)| a * b).sum()).collect()
    }

    /// Rows μ + Λf of factors f (n × q).
    ///
    /// # Errors
    /// When the factors are not q.
    pub fn decode(&self, factors: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let Some(turned) = &self.turned else { return self.gaussian.decode(factors) };
        let noise = self.gaussian.noise().clone();
        LinearGaussian::new(self.mean().to_vec(), turned.pattern.clone(), noise)?.decode(factors)
    }

    /// The model of some of the features: the same factors, turned as here.
    ///
    /// # Errors
    /// When a feature does not exist or is asked for twice.
    pub fn marginal(&self, features: &[usize]) -> Result<Self> {
        let marginal = Self::new(self.gaussian.marginal(features)?);
        match self.turn() {
            Some(turn) => marginal.with_turn(turn.clone()),
            None => Ok(marginal),
        }
    }

    /// Scores of each row (n × q).
    ///
    /// Missing values are integrated out. A row whose cells do not determine all factors (fewer than q, or
    /// cells that say nothing of some factor) has no Bartlett scores: NaN.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn transform<'a>(&self, rows: impl Into<Rows<'a>>, scores: Scores) -> Result<Mat<f64>> {
        match scores {
            Scores::Regression => self.gaussian.turned_latent_mean(rows, self.turn()),
            // They turn as those of the posterior do: (T⁻¹GT⁻ᵀ)⁻¹T⁻¹b = TᵀG⁻¹b.
            Scores::Bartlett => Ok(self.turned_rows(self.gaussian.least_squares(rows)?)),
        }
    }

    /// The posterior of the factors of each row: mean Tᵀ E\[z | x\] and covariance TᵀCT.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn posterior<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Posterior> {
        let Posterior { mean, covariance } = self.gaussian.posterior(rows)?;
        let Some(t) = self.turn() else { return Ok(Posterior { mean, covariance }) };
        Ok(Posterior { mean: self.turned_rows(mean), covariance: covariance.map(|c| congruent(t, c)) })
    }

    /// Rows of latent coordinates z (n × q) as factors Tᵀz.
    fn turned_rows(&self, z: Mat<f64>) -> Mat<f64> {
        match self.turn() {
            Some(t) => product(z.as_ref(), t.as_ref()),
            None => z,
        }
    }

    /// The diagonal of WWᵀ.
    fn common(&self) -> Vec<f64> {
        self.gaussian.loadings().row_iter().map(|w| w.squared_norm_l2()).collect()
    }

    /// Loadings of some kind (p × q) on the scale of correlations; those of a feature without variance are 0
    /// and stay so.
    pub(crate) fn standardised(&self, loadings: MatRef<'_, f64>) -> Mat<f64> {
        let deviation = |v: f64| if v > 0.0 { v.sqrt() } else { 1.0 };
        let deviations: Vec<f64> = self.feature_variances().into_iter().map(deviation).collect();
        Mat::from_fn(loadings.nrows(), loadings.ncols(), |i, j| loadings[(i, j)] / deviations[i])
    }
}

impl Turned {
    fn new(gaussian: &LinearGaussian, turn: Mat<f64>) -> Result<Self> {
        let q = gaussian.n_latent();
        if (turn.nrows(), turn.ncols()) != (q, q) {
            return Err(Error::Length { what: "rows of the turn", expected: q, found: turn.nrows() });
        }
        let length = |j: usize| column_norm(turn.as_ref(), j);
        if let Some(l) = (0..q).map(length).find(|l| l.is_nan() || (l - 1.0).abs() > UNIT) {
            let (name, value) = ("the length of a column of the turn", l.to_string());
            return Err(Error::Parameter { name, value, allowed: "1, so that factors have unit variance" });
        }
        let Some(inverse) = inverse(turn.as_ref()).filter(|t| t.norm_max() < LARGEST) else {
            let (name, value) = ("the turn", "singular".into());
            return Err(Error::Parameter { name, value, allowed: "a matrix with independent columns" });
        };
        let mut correlation = product(turn.transpose(), turn.as_ref());
        mirror_lower(&mut correlation);
        (0..q).for_each(|k| correlation[(k, k)] = 1.0);
        let pattern = product(gaussian.loadings().as_ref(), inverse.transpose());
        Ok(Self { turn, correlation, pattern })
    }
}

/// A finite symmetric matrix of this size.
fn check_correlation(phi: MatRef<'_, f64>, q: usize) -> Result<()> {
    let sides =
        [("rows of the factor correlation", phi.nrows()), ("columns of the factor correlation", phi.ncols())];
    if let Some((what, found)) = sides.into_iter().find(|(_, side)| *side != q) {
        return Err(Error::Length { what, expected: q, found });
    }
    let mut cells = (0..q).flat_map(|j| (0..=j).map(move |i| (j, i)));
    let differs = |d: f64| d.is_nan() || d.abs() > UNIT;
    match cells.find(|&(i, j)| differs(phi[(i, j)] - phi[(j, i)])) {
        Some((row, column)) => {
            let (value, mirrored) = (phi[(row, column)], phi[(column, row)]);
            Err(Error::Asymmetric { row, column, value, mirrored })
        }
        None => Ok(()),
    }
}

/// TᵀCT, exactly symmetric.
fn congruent(t: &Mat<f64>, c: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = product(product(t.transpose(), c).as_ref(), t.as_ref());
    mirror_lower(&mut out);
    out
}
impl Model for Factors {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.gaussian.n_features()
    }

    fn n_latent(&self) -> usize {
        self.n_factors()
    }

    fn arrays(&self) -> Arrays {
        let mut arrays = ppca::arrays(&self.gaussian);
        if let Some(turn) = self.turn() {
            arrays.insert("turn", Array::Matrix(turn.clone()));
        }
        arrays
    }

    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let rescaled = Self::new(ppca::rescaled(&self.gaussian, scale)?);
        Ok(Arc::new(self.turn().cloned().map_or(Ok(rescaled.clone()), |turn| rescaled.with_turn(turn))?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
        Some(self)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
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

impl Gaussian for Factors {
    fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    fn marginal_model(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(self.marginal(features)?))
    }
}

impl Encode for Factors {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('f', self.n_factors())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.transform(rows, Scores::Regression)
    }
}

impl LatentPosterior for Factors {
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        Self::posterior(self, rows)
    }
}

impl Decode for Factors {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        Self::decode(self, latent)
    }
}

impl Reconstruct for Factors {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        self.gaussian.reconstruct(rows, kind)
    }
}

impl Loadings for Factors {
    fn mean(&self) -> &[f64] {
        self.gaussian.mean()
    }

    fn loadings(&self) -> &Mat<f64> {
        self.pattern()
    }

    fn noise(&self) -> Noise {
        self.gaussian.noise().clone()
    }

    fn axes(&self) -> Result<Mat<f64>> {
        Ok(self.pattern().clone())
    }

    /// What each factor explains of the data, which oblique factors share.
    fn variances(&self) -> Result<Vec<f64>> {
        let (pattern, structure) = (self.pattern(), self.structure());
        let columns = pattern.col_iter().zip(structure.col_iter());
        let mut along: Vec<f64> =
            columns.map(|(a, b)| a.iter().zip(b.iter()).map(|(a, b)| a * b).sum()).collect();
        along.sort_by(|a, b| b.total_cmp(a));
        Ok(along)
    }

    fn factors(&self) -> Factors {
        self.clone()
    }
}
